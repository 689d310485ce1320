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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// scaleVariable is the number of projects in the specs below; the operator is made for 500. At that size the one with a manager
// also checks for a whole minute that nothing is written at rest.
const scaleVariable = "PHONEPROOF_SCALE"

var _ = Describe("Many projects", func() {
	It("cost no more writes than they have children, and two for their status", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		projects := newProjects(namespace)
		op := startSteppedOperator(ctx, operator, usual(), namespace)
		for _, project := range projects {
			create(ctx, project)
		}
		settle(ctx)
		made, reconciled := op.written(), op.reconciled
		elapse(ctx, 24*time.Hour)
		Expect(op.written()).To(Equal(made), "at rest, though no pod ever answers")
		Expect(op.reconciled).To(Equal(reconciled), "at rest, though no pod ever answers")
		for _, project := range projects {
			report(ctx, project) // a pod reports before it answers
		}
		finishRollouts(ctx, namespace)
		for _, project := range projects {
			expectReady(ctx, project)
		}
		asked := op.written()
		Expect(refusals(asked)).To(BeEmpty())
		for name, writes := range extraWrites(ctx, perProject(asked), projects) {
			Expect(writes).To(BeNumerically("<=", 2), name)
		}
		reconciled = op.reconciled
		elapse(ctx, 24*time.Hour)
		Expect(op.written()).To(Equal(asked), "at rest")
		Expect(op.reconciled).To(Equal(reconciled), "at rest")

		By("costing nothing either when another operator takes over")
		op.stop()
		next := startSteppedOperator(ctx, operator, usual(), namespace)
		last := projects[len(projects)-1]
		change(ctx, last, func(s *spec) { s.Server.Resources = nil; s.DisplayName = "Shop" })
		expectCondition(ctx, last, verifyv1.ConditionReady, metav1.ConditionUnknown, verifyv1.ReasonNotReported)
		Expect(next.written()).To(ConsistOf(ContainSubstring("%s/status", last.Name)))
	})

	It("cost no more accepted writes with the workers and the stale cache of a manager", func(ctx SpecContext) {
		const full, whole = 500, time.Minute
		namespace := newNamespace(ctx)
		projects := newProjects(namespace)
		n, idle := len(projects), 10*settling
		if n >= full {
			idle = whole
		}
		as, seen := rest.CopyConfig(operator), &requests{}
		as.Wrap(seen.count)
		startManager(ctx, as, usual(), namespace)

		began := time.Now()
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { create(ctx, project) })
		for _, project := range projects {
			eventuallySucceeds(ctx, func() { deployment(ctx, project) })
		}
		made := time.Since(began)
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { report(ctx, project) })
		forEach(ctx, projects, func(project *verifyv1.VerificationProject) { setRollout(ctx, project, allReady) })
		for _, project := range projects {
			eventuallySucceeds(ctx, func() { expectReady(ctx, project) })
		}
		all := time.Since(began)

		var asked []string
		eventuallySucceeds(ctx, func() { // the last reconciliations may still be running
			asked = seen.written()
			Consistently(func() []string { return seen.written() }).WithContext(ctx).WithTimeout(idle).WithPolling(settling).
				Should(Equal(asked), "at rest")
		})
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
	})
})

// newProjects returns projects with different children.
func newProjects(namespace string) []*verifyv1.VerificationProject {
	GinkgoHelper()
	n := 16
	if text := os.Getenv(scaleVariable); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		Expect(err).NotTo(HaveOccurred())
	}
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
	return projects
}

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
