//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// waitFor reports whether a condition becomes true within a time, without failing the spec.
func waitFor(ctx context.Context, ask func() bool, timeout time.Duration) bool {
	return wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, timeout, true,
		func(context.Context) (bool, error) { return ask(), nil }) == nil
}

// leaseHolder returns the pod that holds a lease.
func leaseHolder(ctx context.Context, namespace, name string) string {
	lease, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// awaitHolder is leaseHolder once there is one: a graceful shutdown releases the lease, and the next leader takes it later.
func awaitHolder(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	var leader string
	Eventually(func() string {
		leader = leaseHolder(ctx, namespace, name)
		return leader
	}).WithContext(ctx).ShouldNot(BeEmpty())
	return leader
}

// containerIDs returns an id for each run of the project's containers, which changes with a restart. Pods that are being deleted are left
// out: those of an earlier rollout end a while after it.
func containerIDs(ctx context.Context, s *shop) []string {
	GinkgoHelper()
	var all []string
	for _, pod := range s.listPods(ctx) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		for _, container := range pod.Status.ContainerStatuses {
			all = append(all, string(pod.UID)+"/"+container.ContainerID)
		}
	}
	return all
}

func restartSpecs() {
	It("replaces every pod under load without a failed request", func(ctx SpecContext) {
		before := containerIDs(ctx, theShop)
		load := theShop.startLoad(ctx)
		runKubectl(ctx, "--namespace "+shopNamespace+" rollout restart deployment/phoneproof-shop")
		runKubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=5m deployment/phoneproof-shop")
		Eventually(func(g Gomega) {
			g.Expect(containerIDs(ctx, theShop)).To(And(HaveLen(2), Not(ContainElement(BeElementOf(before)))))
		}).WithContext(ctx).Should(Succeed())
		load.awaitMore(ctx)
		Expect(load.stop()).To(BeEmpty())
		eventuallyReady(ctx, shopNamespace)
	})

	It("continues with another leader when the leading pod is killed, and loses no event", func(ctx SpecContext) {
		theShop.eventuallySettled(ctx)
		leader := awaitHolder(ctx, shopNamespace, "phoneproof-shop")
		var requests []request
		for range 5 {
			requests = append(requests, theShop.initRequest(ctx, "WHATSAPP"))
		}
		killed := time.Now()
		runKubectl(ctx, "--namespace "+shopNamespace+" delete pod --grace-period=0 --force "+leader)
		for _, r := range requests {
			Eventually(func() error { return InterceptGomegaFailure(func() { theShop.sendMessage(ctx, r) }) }).
				WithContext(ctx).Should(Succeed())
			theShop.eventuallyVerified(ctx, r)
			theShop.eventuallyAccepted(ctx, r)
		}
		Eventually(leaseHolder).WithContext(ctx).WithArguments(shopNamespace, "phoneproof-shop").ShouldNot(BeElementOf(leader, ""))
		AddReportEntry("events of a killed leader were delivered after", time.Since(killed).Round(time.Millisecond).String())
		theShop.verifyNumber(ctx, "TELEGRAM")
	})

	It("keeps serving while kubelet restarts", func(ctx SpecContext) {
		theShop.eventuallySettled(ctx)
		before := containerIDs(ctx, theShop)
		load := theShop.startLoad(ctx)
		restartComponent(ctx, "kubelet")
		runKubectl(ctx, "wait --for=condition=Ready node --all --timeout=5m")
		load.awaitMore(ctx)
		Expect(load.stop()).To(BeEmpty())
		Expect(containerIDs(ctx, theShop)).To(ConsistOf(before))
	})

	It("gives no wrong answer while the API server restarts, and then recovers", func(ctx SpecContext) {
		before := containerIDs(ctx, theShop)
		pending := theShop.initRequest(ctx, "WHATSAPP")
		done := theShop.initRequest(ctx, "WHATSAPP")
		theShop.sendMessage(ctx, done)
		theShop.eventuallyVerified(ctx, done)
		load := theShop.startLoad(ctx)

		restartComponent(ctx, "kube-apiserver")

		theShop.eventuallyVerified(ctx, done)
		Eventually(func() error { return InterceptGomegaFailure(func() { theShop.sendMessage(ctx, pending) }) }).
			WithContext(ctx).Should(Succeed())
		theShop.eventuallyVerified(ctx, pending)
		theShop.eventuallyAccepted(ctx, pending)
		load.awaitMore(ctx)
		for _, failure := range load.stop() {
			// A pod without its store is not ready, and one that was killed before may be gone. The Service receives both only when the API
			// server is back.
			Expect(failure).To(Or(ContainSubstring(": 503 "), ContainSubstring("connection refused"), ContainSubstring("no route to host")),
				"the only failures that a client may see")
		}
		Expect(containerIDs(ctx, theShop)).To(ConsistOf(before), "no process ends with the API server")
		eventuallyReady(ctx, shopNamespace)
		// A pod may have become unready after that condition was written, and the Service learns of its recovery later than we do.
		Eventually(func() error { return InterceptGomegaFailure(func() { theShop.verifyNumber(ctx, "TELEGRAM") }) }).
			WithContext(ctx).Should(Succeed())
	})

	It("keeps working without an operator, and applies changes when another one leads", func(ctx SpecContext) {
		leader := awaitHolder(ctx, releaseNamespace, "phoneproof-operator")
		runKubectl(ctx, "--namespace "+releaseNamespace+" delete pod --grace-period=0 --force "+leader)
		patchProject(ctx, shopNamespace, `{"spec":{"server":{"replicas":3}}}`)
		Eventually(theShop.listPods).WithContext(ctx).Should(HaveLen(3))
		// The killed operator may have applied that just before its end.
		Eventually(leaseHolder).WithContext(ctx).WithArguments(releaseNamespace, "phoneproof-operator").ShouldNot(BeElementOf(leader, ""))
		patchProject(ctx, shopNamespace, `{"spec":{"server":{"replicas":2}}}`)
		Eventually(theShop.listPods).WithContext(ctx).Should(HaveLen(2))
		theShop.eventuallyServed(ctx)
		got, err := theShop.sendRequest(ctx, theShop.http, http.MethodGet, theShop.api+"/openapi.json", "", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.code).To(Equal(http.StatusOK))
	})
}
