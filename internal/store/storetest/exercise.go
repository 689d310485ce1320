package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	_ "github.com/phoneproof/phoneproof/test/skipped" // says which checks a store has no use for
)

// patience bounds one spec; the longest of them make some hundred writes and wait for a few leases, on a busy machine more
// than once.
const patience = 4 * time.Minute

// check is one promise of the contract. It asserts with the trial's own Gomega, so that it runs in a suite as well as
// against a store that must fail it.
type check struct {
	name  string
	needs need
	run   func(ctx context.Context, t *trial)
}

type topic struct {
	name   string
	checks []check
}

func topics() []topic {
	return []topic{
		{"creation", creation()},
		{"state", state()},
		{"update", update()},
		{"races", races()},
		{"contacts", contacts()},
		{"deletion", deletion()},
		{"counts", counts()},
		{"subscription", subscription()},
		{"rates", rates()},
		{"windows", slidingWindows()},
		{"storage cap", storageCap()},
		{"queue", queue()},
		{"leases", leases()},
		{"outage", outage()},
	}
}

// Exercise registers the whole suite. Call it inside a Describe; newHarness is called once at the start of each spec.
func Exercise(newHarness func() Harness) {
	for _, topic := range topics() {
		ginkgo.Describe(topic.name, func() {
			for _, c := range topic.checks {
				ginkgo.It(c.name, ginkgo.NodeTimeout(patience), func(ctx ginkgo.SpecContext) {
					harness := newHarness()
					if why := harness.lacks(c.needs); why != "" {
						ginkgo.Skip(why)
					}
					c.run(ctx, newTrial(gomega.NewGomega(ginkgo.Fail), harness))
				})
			}
		})
	}
}
