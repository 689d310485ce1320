package app

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
)

// What the operator starts is what serve understands, whatever the project and the operator's flags.
func TestServe_takes_what_the_operator_renders(t *testing.T) {
	deployments := map[string]*appsv1ac.DeploymentApplyConfiguration{
		"pool": render.PoolChildren(rendertest.Pool(), rendertest.Options()).Deployment,
	}
	for _, c := range rendertest.Cases() {
		deployments[c.Name] = render.Deployment(c.Project, c.Options)
	}
	for name, d := range deployments {
		g := NewWithT(t)
		container := d.Spec.Template.Spec.Containers[0]
		args := container.Args
		g.Expect(args[0]).To(Equal(newServeCommand(server.Dependencies{}).Name()))

		var (
			o   server.Options
			log logging.Options
		)
		flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
		o.AddFlags(flags)
		log.AddFlags(flags)
		g.Expect(flags.Parse(args[1:])).To(Succeed(), name)
		g.Expect(flags.Args()).To(BeEmpty(), name)
		g.Expect(o.Complete()).To(Succeed(), name)
		addresses := []string{o.Address}
		if len(o.Members) > 0 {
			addresses = nil
		}
		for _, m := range o.Members {
			addresses = append(addresses, m.Address)
		}
		for i, address := range append(addresses, o.HealthAddress) {
			g.Expect(address).To(Equal(fmt.Sprintf(":%d", *container.Ports[i].ContainerPort)), name)
		}
		_, _, err := o.Webhook.Rules()
		g.Expect(err).NotTo(HaveOccurred(), name)
	}
}
