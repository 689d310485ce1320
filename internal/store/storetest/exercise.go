package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// specTimeout bounds one spec. The longest make a few hundred writes and wait for a few leases, on a busy machine repeatedly.
const specTimeout = 4 * time.Minute

// check is one rule of the contract. It asserts with the trial's own Gomega, so that it can also run against a store that
// must fail it.
type check struct {
	name  string
	needs Feature
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
		{"code limits", codeLimitChecks()},
		{"test keys", testKeyChecks()},
		{"outage", outageChecks()},
	}
}

// Exercise registers the suite, without the checks that need what the backend lacks; if topics are named, only these. Call it inside
// a Describe; newHarness is called once at the start of each spec.
func Exercise(newHarness func() Harness, lacks Feature, only ...string) {
	for _, name := range only {
		if !slices.ContainsFunc(allTopics(), func(t topic) bool { return t.name == name }) {
			panic("storetest has no topic " + name)
		}
	}
	for _, topic := range allTopics() {
		if len(only) > 0 && !slices.Contains(only, topic.name) {
			continue
		}
		ginkgo.Describe(topic.name, func() {
			for _, c := range topic.checks {
				if c.needs&lacks != 0 {
					continue
				}
				ginkgo.It(c.name, ginkgo.NodeTimeout(specTimeout), func(ctx ginkgo.SpecContext) {
					harness := newHarness()
					gomega.Expect(harness.Queue == nil).To(gomega.Equal(lacks&Queue != 0), "no queue, and the feature that it lacks")
					gomega.Expect(harness.Advance == nil).To(gomega.Equal(lacks&SteppedClock != 0), "no stepped clock, and the feature that it lacks")
					harness.lacks = lacks
					c.run(ctx, newTrial(gomega.NewGomega(ginkgo.Fail), harness))
				})
			}
		})
	}
}
