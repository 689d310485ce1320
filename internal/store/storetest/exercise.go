package storetest

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	_ "github.com/phoneproof/phoneproof/test/skipped" // reports skipped checks
)

// specTimeout bounds one spec. The longest make a few hundred writes and wait for a few leases, on a busy machine repeatedly.
const specTimeout = 4 * time.Minute

// check is one rule of the contract. It asserts with the trial's own Gomega, so that it can also run against a store that
// must fail it.
type check struct {
	name  string
	needs need
	run   func(ctx context.Context, t *trial)
}

type topic struct {
	name   string
	checks []check
}

func allTopics() []topic {
	return []topic{
		{"creation", creationChecks()},
		{"state", stateChecks()},
		{"update", updateChecks()},
		{"races", raceChecks()},
		{"contacts", contactChecks()},
		{"deletion", deletionChecks()},
		{"counts", countChecks()},
		{"activity", activityChecks()},
		{"lists", listChecks()},
		{"subscription", subscriptionChecks()},
		{"rates", rateChecks()},
		{"windows", windowChecks()},
		{"storage cap", storageCapChecks()},
		{"queue", queueChecks()},
		{"events", eventChecks()},
		{"leases", leaseChecks()},
		{"session", sessionChecks()},
		{"declines", declineChecks()},
		{"test keys", testKeyChecks()},
		{"outage", outageChecks()},
	}
}

// Exercise registers the whole suite. Call it inside a Describe; newHarness is called once at the start of each spec.
func Exercise(newHarness func() Harness) {
	for _, topic := range allTopics() {
		ginkgo.Describe(topic.name, func() {
			for _, c := range topic.checks {
				ginkgo.It(c.name, ginkgo.NodeTimeout(specTimeout), func(ctx ginkgo.SpecContext) {
					harness := newHarness()
					if why := harness.missingNeed(c.needs); why != "" {
						ginkgo.Skip(why)
					}
					c.run(ctx, newTrial(gomega.NewGomega(ginkgo.Fail), harness))
				})
			}
		})
	}
}
