package project

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// scaleVariable is the number of projects in the spec below; the operator is made for 500. At that size the spec also checks for
// a whole minute that nothing is written at rest.
const scaleVariable = "PHONEPROOF_SCALE"

var _ = Describe("Many projects", func() {
	It("cost no more writes than they have children, and two for their status", func(ctx SpecContext) {
		const full, whole = 500, time.Minute
		n, rest := 40, 5*time.Second
		if text := os.Getenv(scaleVariable); text != "" {
			var err error
			n, err = strconv.Atoi(text)
			Expect(err).NotTo(HaveOccurred())
		}
		if n >= full {
			rest = whole
		}
		namespace := newNamespace(ctx)
		op := operate(ctx, operator, usual(), namespace)
		projects := make([]*verifyv1.VerificationProject, n)
		for i := range projects {
			projects[i] = newProject(namespace, fmt.Sprintf("p%d", i))
			switch i % 3 {
			case 1:
				projects[i].Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: verifyv1.Hostname(projects[i].Name + ".example.com")}
			case 2:
				projects[i].Spec.NetworkPolicy = &verifyv1.NetworkPolicy{}
				projects[i].Spec.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{}
				projects[i].Spec.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 5}
			}
		}

		start := time.Now()
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { create(ctx, project) })
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { deployment(ctx, project) })
		made := time.Since(start)
		// A pod reports before it answers.
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { report(ctx, project) })
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { setRollout(ctx, project, allReady) })
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { expectReady(ctx, project) })
		all := time.Since(start)

		var asked []string
		Eventually(func(g Gomega) { // the last reconciliations may still be running
			asked = op.written()
			g.Consistently(op.written).WithContext(ctx).WithArguments().WithTimeout(rest).WithPolling(time.Second).Should(Equal(asked))
		}).WithContext(ctx).WithTimeout(5*rest).Should(Succeed(), "at rest")
		refused := refusals(asked)
		writes := perProject(asked)
		most := slices.Max(slices.Collect(maps.Values(extraWrites(ctx, writes, projects))))
		AddReportEntry("cost", fmt.Sprintf("%d projects: %s until all had pods, %s until all were Ready; %d writes in all, "+
			"%d refused, "+
			"at most %d more than children; heap %d MiB with the tests' own", n, made.Round(time.Millisecond),
			all.Round(time.Millisecond), len(asked), len(refused), most, heap()>>20), ReportEntryVisibilityAlways)
		Expect(most).To(BeNumerically("<=", 2), "%v", writes)
		// Serve's report may come between the operator's read and its write, which is then refused. So is a write that a stale
		// cache repeats, which is common on a slow machine; a loop of them would exceed all other writes.
		Expect(len(refused)).To(BeNumerically("<", len(accepted(asked))), "%v", refused)

		By("costing nothing either when another operator takes over")
		op.stop()
		next := operate(ctx, operator, usual(), namespace)
		last := projects[n-1]
		change(ctx, last, func(s *spec) { s.Server.Resources = nil; s.DisplayName = "Shop" })
		Eventually(find).WithContext(ctx).WithArguments(ctx, last, verifyv1.ConditionReady).WithTimeout(5 * time.Minute).
			Should(HaveField("Reason", verifyv1.ReasonNotReported))
		// A reconciliation with a slightly stale cache may repeat the write, which is refused.
		Eventually(func() []string { return accepted(next.written()) }).WithContext(ctx).
			Should(ConsistOf(ContainSubstring("%s/status", last.Name)))
	})
})

// forEach calls a function for every project, some at a time.
func forEach(ctx context.Context, projects []*verifyv1.VerificationProject, do func(*verifyv1.VerificationProject)) {
	GinkgoHelper()
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, project := range projects {
		group.Go(func() error {
			defer GinkgoRecover()
			do(project)
			return nil
		})
	}
	Expect(group.Wait()).To(Succeed())
}

var ofProject = regexp.MustCompile(`/(?:phoneproof-)?(p[0-9]+)(?:[-/ ]|$)`)

// perProject groups requests by their project. Only problems have Events, so there are none here.
func perProject(writes []string) map[string][]string {
	GinkgoHelper()
	out := map[string][]string{}
	for _, write := range accepted(writes) {
		found := ofProject.FindStringSubmatch(write)
		Expect(found).NotTo(BeNil(), write)
		out[found[1]] = append(out[found[1]], write)
	}
	return out
}

// extraWrites returns how many more writes each project cost than it has children.
func extraWrites(ctx context.Context, writes map[string][]string, projects []*verifyv1.VerificationProject) map[string]int {
	GinkgoHelper()
	owned := map[string]int{}
	for _, object := range objectsOf(ctx, projects[0].Namespace) {
		for _, owner := range object.GetOwnerReferences() {
			owned[owner.Name]++
		}
	}
	out := map[string]int{}
	for _, project := range projects {
		Expect(owned[project.Name]).To(BeNumerically(">=", 4))
		out[project.Name] = len(writes[project.Name]) - owned[project.Name]
	}
	return out
}

// refusals returns the refused requests, which wrote nothing.
func refusals(writes []string) []string {
	return slices.DeleteFunc(slices.Clone(writes), isAccepted)
}

// accepted returns the other requests.
func accepted(writes []string) []string {
	return slices.DeleteFunc(slices.Clone(writes), func(write string) bool { return !isAccepted(write) })
}

func isAccepted(write string) bool {
	return strings.HasSuffix(write, " 200") || strings.HasSuffix(write, " 201")
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
