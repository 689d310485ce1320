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

// eventually says whether something comes true within a time, without failing the spec.
func eventually(ctx context.Context, ask func() bool, timeout time.Duration) bool {
	return wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, timeout, true,
		func(context.Context) (bool, error) { return ask(), nil }) == nil
}

// holder returns the pod that holds a lease.
func holder(ctx context.Context, namespace, name string) string {
	lease, err := clientset.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod
}

// leading is holder once there is one: who goes in order gives the lease up, and the next one takes it a moment later.
func leading(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	var leader string
	Eventually(func() string {
		leader = holder(ctx, namespace, name)
		return leader
	}).WithContext(ctx).ShouldNot(BeEmpty())
	return leader
}

// lives returns what tells every life of the project's containers from another.
func lives(ctx context.Context, s *shop) []string {
	GinkgoHelper()
	var all []string
	for _, pod := range s.pods(ctx) {
		for _, container := range pod.Status.ContainerStatuses {
			all = append(all, string(pod.UID)+"/"+container.ContainerID)
		}
	}
	return all
}

func restartSpecs() {
	It("replaces every pod under load without a failed request", func(ctx SpecContext) {
		before := lives(ctx, theShop)
		load := theShop.load(ctx)
		kubectl(ctx, "--namespace "+shopNamespace+" rollout restart deployment/phoneproof-shop")
		kubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=3m deployment/phoneproof-shop")
		Eventually(func(g Gomega) {
			g.Expect(lives(ctx, theShop)).To(And(HaveLen(2), Not(ContainElement(BeElementOf(before)))))
		}).WithContext(ctx).Should(Succeed())
		load.keepsOn(ctx)
		Expect(load.end()).To(BeEmpty())
		eventuallyReady(ctx, shopNamespace)
	})

	It("goes on with another leader when the leading pod is killed, and loses no event", func(ctx SpecContext) {
		leader := leading(ctx, shopNamespace, "phoneproof-shop")
		var requests []request
		for range 5 {
			requests = append(requests, theShop.init(ctx, "WHATSAPP"))
		}
		killed := time.Now()
		kubectl(ctx, "--namespace "+shopNamespace+" delete pod --grace-period=0 --force "+leader)
		for _, r := range requests {
			Eventually(func() error { return InterceptGomegaFailure(func() { theShop.send(ctx, r) }) }).
				WithContext(ctx).Should(Succeed())
			theShop.eventuallyVerified(ctx, r)
			theShop.eventuallyAccepted(ctx, r)
		}
		Eventually(holder).WithContext(ctx).WithArguments(shopNamespace, "phoneproof-shop").ShouldNot(Equal(leader))
		AddReportEntry("events of a killed leader were delivered after", time.Since(killed).Round(time.Millisecond).String())
		theShop.verify(ctx, "TELEGRAM")
	})

	It("serves on while kubelet restarts", func(ctx SpecContext) {
		kubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=3m deployment/phoneproof-shop")
		Eventually(theShop.pods).WithContext(ctx).Should(HaveLen(2))
		before := lives(ctx, theShop)
		load := theShop.load(ctx)
		restart(ctx, "kubelet")
		kubectl(ctx, "wait --for=condition=Ready node --all --timeout=2m")
		load.keepsOn(ctx)
		Expect(load.end()).To(BeEmpty())
		Expect(lives(ctx, theShop)).To(ConsistOf(before))
	})

	It("serves nothing wrong while the API server restarts, and then goes on by itself", func(ctx SpecContext) {
		before := lives(ctx, theShop)
		pending := theShop.init(ctx, "WHATSAPP")
		done := theShop.init(ctx, "WHATSAPP")
		theShop.send(ctx, done)
		theShop.eventuallyVerified(ctx, done)
		load := theShop.load(ctx)

		restart(ctx, "kube-apiserver")

		theShop.eventuallyVerified(ctx, done)
		Eventually(func() error { return InterceptGomegaFailure(func() { theShop.send(ctx, pending) }) }).
			WithContext(ctx).Should(Succeed())
		theShop.eventuallyVerified(ctx, pending)
		theShop.eventuallyAccepted(ctx, pending)
		load.keepsOn(ctx)
		for _, failure := range load.end() {
			// A pod without its store is not ready, and one that was killed before may be gone, both of which the Service learns
			// when the API server is back.
			Expect(failure).To(Or(ContainSubstring(": 503 "), ContainSubstring("connection refused"), ContainSubstring("no route to host")),
				"all that a client may see")
		}
		Expect(lives(ctx, theShop)).To(ConsistOf(before), "no process ends because the API server does")
		eventuallyReady(ctx, shopNamespace)
		theShop.verify(ctx, "TELEGRAM")
	})

	It("works on without an operator, and takes up changes when another one leads", func(ctx SpecContext) {
		leader := leading(ctx, releaseNamespace, "phoneproof-operator")
		kubectl(ctx, "--namespace "+releaseNamespace+" delete pod --grace-period=0 --force "+leader)
		change(ctx, shopNamespace, `{"spec":{"server":{"replicas":3}}}`)
		Eventually(theShop.pods).WithContext(ctx).Should(HaveLen(3))
		// The one that was killed may have done that with its last breath.
		Eventually(holder).WithContext(ctx).WithArguments(releaseNamespace, "phoneproof-operator").ShouldNot(BeElementOf(leader, ""))
		change(ctx, shopNamespace, `{"spec":{"server":{"replicas":2}}}`)
		Eventually(theShop.pods).WithContext(ctx).Should(HaveLen(2))
		got, err := theShop.do(ctx, theShop.http, http.MethodGet, theShop.api+"/openapi.json", "", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.code).To(Equal(http.StatusOK))
	})
}
