//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// awaitRollout waits until every pod of the project runs an image, and the project is ready.
func (s *shop) awaitRollout(ctx context.Context, image string) {
	GinkgoHelper()
	runKubectl(ctx, "--namespace "+s.namespace+" wait --timeout=5m deployment/phoneproof-shop --for",
		"jsonpath={.spec.template.spec.containers[0].image}="+image)
	runKubectl(ctx, "--namespace "+s.namespace+" rollout status --timeout=5m deployment/phoneproof-shop")
	eventuallyReady(ctx, s.namespace)
	// The former leader may work by its own rules until it has ended.
	Eventually(s.listPods).WithContext(ctx).Should(HaveEach(HaveField("Spec.Containers", ContainElement(HaveField("Image", image)))))
}

// rollbackPause slows the clients of this spec: two projects under load share the machine with two rollouts.
const rollbackPause = time.Second

func rollbackSpecs() {
	It("goes back to the last release and upgrades again, and loses nothing that it acknowledged in either store", func(ctx SpecContext) {
		shops := []*shop{theShop}
		if theBakery == nil {
			AddReportEntry("rollback and upgrade with PostgreSQL", "NOT PROVEN: there is no project that uses it")
		} else {
			shops = append(shops, theBakery)
		}
		runs := startVerifications(ctx, rollbackPause, shops...)
		for _, to := range []struct{ name, chart, image string }{
			{"back to the last release", baseChart, baseImage},
			{"upgraded again", "charts/phoneproof", image},
		} {
			By(to.name)
			began := time.Now()
			for _, run := range runs {
				run.awaitMore(ctx, 5)
			}
			stored := map[*shop][]request{}
			for _, s := range shops {
				stored[s] = []request{s.initRequest(ctx, "WHATSAPP"), s.initRequest(ctx, "TELEGRAM")}
			}
			helm4.install(ctx, to.chart, to.image, "--values", "test/e2e/testdata/values.yaml")
			for i, s := range shops {
				s.awaitRollout(ctx, to.image)
				runs[i].awaitMore(ctx, 5)
				for _, r := range stored[s] {
					s.sendMessage(ctx, r)
					s.eventuallyVerified(ctx, r)
				}
			}
			AddReportEntry(to.name+" under load", time.Since(began).Round(time.Second).String())
		}
		for _, run := range runs {
			run.stop()
		}
		for _, run := range runs {
			AddReportEntry(run.shop.namespace+" went back to the last release and forth", run.checkResults(ctx))
		}
	})
}
