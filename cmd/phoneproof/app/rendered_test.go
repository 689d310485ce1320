package app

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/controllers/project/render/rendertest"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
)

// What the operator starts is what serve understands, whatever the project and the operator's flags.
func TestServe_takes_what_the_operator_renders(t *testing.T) {
	for _, c := range rendertest.Cases() {
		g := NewWithT(t)
		container := render.Deployment(c.Project, c.Options).Spec.Template.Spec.Containers[0]
		args := container.Args
		g.Expect(args[0]).To(Equal(newServeCommand(server.Dependencies{}).Name()))

		var (
			o   server.Options
			log logging.Options
		)
		flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
		o.AddFlags(flags)
		log.AddFlags(flags)
		g.Expect(flags.Parse(args[1:])).To(Succeed(), c.Name)
		g.Expect(flags.Args()).To(BeEmpty(), c.Name)
		g.Expect(o.Complete()).To(Succeed(), c.Name)
		for i, address := range []string{o.Address, o.HealthAddress} {
			g.Expect(address).To(Equal(fmt.Sprintf(":%d", *container.Ports[i].ContainerPort)), c.Name)
		}
		_, _, err := o.Webhook.Rules()
		g.Expect(err).NotTo(HaveOccurred(), c.Name)
	}
}
