package integration_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/ports"
)

var _ = Describe("A pool", func() {
	It("serves several projects by one process and one lease, and what becomes of one leaves the others alone", func(ctx SpecContext) {
		s := newShop(ctx)
		second := s.addProject(ctx, "second")
		first, other := s.startPool("shop", "second"), s.startPool("shop", "second")
		for _, p := range []*poolReplica{first, other} {
			Eventually(p.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), p.output)
		}

		By("answering each project's clients at an address of its own")
		at, beside := first.member("shop"), first.member("second")
		id := s.initRequest(ctx, at, "+4915112345678")
		status, _ := at.callAPI(ctx, second, http.MethodGet, "/api/verify/status?id="+id, "")
		Expect(status).To(Equal(http.StatusUnauthorized), "a key of another project")
		Eventually(func() int {
			code, _ := beside.callAPI(ctx, second, http.MethodGet, "/api/verify/status?id="+id, "")
			return code
		}).WithContext(ctx).Should(Equal(http.StatusNotFound), "a request of another project")
		elsewhere := beside.mustCall(ctx, second, http.MethodPost, "/api/verify/init", `{"phoneNumber": "+4915112345679"}`)
		canaries.addText(elsewhere["expectedText"].(string))

		By("holding one lease, which no project takes along when it is deleted")
		var lease *coordinationv1.Lease
		Eventually(func(g Gomega) {
			leases, err := s.clients.CoordinationV1().Leases(s.namespace).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(leases.Items).To(HaveLen(1))
			lease = &leases.Items[0]
		}).WithContext(ctx).Should(Succeed())
		Expect(lease.Name).To(Equal("phoneproofpool-shops"))
		Expect(lease.OwnerReferences).To(BeEmpty())

		By("delivering the events of each")
		Expect(s.verifyRequest(ctx, id)).To(Succeed())
		s.awaitDelivered(ctx, []string{id}, 1)

		By("storing the Events of each")
		Eventually(func() []string {
			events, err := s.clients.EventsV1().Events(s.namespace).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			var about []string
			for _, event := range events.Items {
				about = append(about, event.Regarding.Name)
			}
			return about
		}).WithContext(ctx).Should(ContainElements("shop", "second"))

		By("labelling the metrics of each")
		for _, project := range []string{"shop", "second"} {
			Expect(first.getBody(ctx, first.health, "/metrics")).To(MatchRegexp(
				`phoneproof_verifications_started_total\{method="WHATSAPP",project=%q\} [1-9]`, project))
		}

		By("answering one while strangers take all connections of another")
		release := s.openConnections(ctx, beside, 2000)
		Expect(first.member("shop").mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")).To(HaveKeyWithValue("status", "VERIFIED"))
		Eventually(first.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		release()

		By("going on without a project that is deleted")
		Expect(s.admin.Delete(ctx, &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "second"}})).To(Succeed())
		Eventually(func() int {
			code, _ := beside.callAPI(ctx, second, http.MethodGet, "/api/verify/status?id="+id, "")
			return code
		}).WithContext(ctx).Should(BeZero(), "its address no longer answers")
		late := s.startPool("second", "shop")
		Eventually(func() int {
			code, _ := late.member("shop").callAPI(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
			return code
		}).WithContext(ctx).Should(Equal(http.StatusOK), late.output)
		status, _ = late.member("second").callAPI(ctx, second, http.MethodGet, "/api/verify/status?id="+id, "")
		Expect(status).To(BeZero(), "a project that does not exist has no address that answers")
		Expect(late.getBody(ctx, late.health, "/problems")).To(MatchJSON(`{"projects": {
			"second": {"project": "the VerificationProject cannot be served", "problems": []},
			"shop": {"problems": []}}}`))
		at.mustCall(ctx, s.key, http.MethodGet, "/api/verify/status?id="+id, "")
		Eventually(first.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue())

		By("delivering by another process when the leading one is killed")
		var leader *poolReplica
		Eventually(func() *poolReplica {
			for _, p := range []*poolReplica{first, other, late} {
				if p.isLeading() {
					leader = p
				}
			}
			return leader
		}).WithContext(ctx).ShouldNot(BeNil())
		leader.kill()
		rest := slices.DeleteFunc([]*poolReplica{first, other, late}, func(p *poolReplica) bool { return p == leader })
		again := s.initRequest(ctx, rest[0].member("shop"), "+4915112345680")
		Expect(s.verifyRequest(ctx, again)).To(Succeed())
		s.awaitDelivered(ctx, []string{again}, 1)

		By("shutting down gracefully, and releasing the lease")
		for _, p := range rest {
			p.sendSignal(syscall.SIGTERM)
		}
		for _, p := range rest {
			Eventually(p.exited).WithContext(ctx).Should(BeClosed(), p.output)
			Expect(p.cmd.ProcessState.ExitCode()).To(BeZero(), p.output)
		}
		lease, err := s.clients.CoordinationV1().Leases(s.namespace).Get(ctx, lease.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*lease.Spec.HolderIdentity).To(BeEmpty())
	}, SpecTimeout(hang))

	It("serves a project whose address was taken as soon as it is free, and one that comes back after its suspension or deletion", func(ctx SpecContext) {
		s := newShop(ctx)
		second := s.addProject(ctx, "second")
		p := s.newPool("shop", "second")
		var config net.ListenConfig
		taken, err := config.Listen(ctx, "tcp", p.addresses["second"])
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = taken.Close() })
		p.run(s)
		Eventually(p.output).WithContext(ctx).Should(ContainSubstring("listen failed, will retry"))
		const nothing = "/api/verify/status?id=vraaaaaaaaaaaaaaaaaaaaaaaa"
		Eventually(func() int {
			code, _ := p.member("shop").callAPI(ctx, s.key, http.MethodGet, nothing, "")
			return code
		}).WithContext(ctx).Should(Equal(http.StatusNotFound), p.output)
		id := s.initRequest(ctx, p.member("shop"), "+4915112345678")
		Expect(s.verifyRequest(ctx, id)).To(Succeed())
		s.awaitDelivered(ctx, []string{id}, 1)
		Expect(taken.Close()).To(Succeed())
		status := func() int {
			code, _ := p.member("second").callAPI(ctx, second, http.MethodGet, nothing, "")
			return code
		}
		Eventually(status).WithContext(ctx).Should(Equal(http.StatusNotFound), "it is tried again once a minute at least")

		By("holding the events of a project that is suspended, and none of the others")
		suspend := func(project string, suspended bool) {
			GinkgoHelper()
			Expect(s.admin.Patch(ctx, &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: project}},
				client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"suspend": %t}}`, suspended)))).To(Succeed())
		}
		suspend("second", true)
		Eventually(status).WithContext(ctx).Should(BeZero(), "nothing listens")
		Eventually(p.isReady).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
		late := s.initRequest(ctx, p.member("shop"), "+4915112345681")
		suspend("shop", true)
		Eventually(func() int {
			code, _ := p.member("shop").callAPI(ctx, s.key, http.MethodGet, nothing, "")
			return code
		}).WithContext(ctx).Should(BeZero())
		Expect(s.verifyRequest(ctx, late)).To(Succeed())
		suspend("second", false)
		Eventually(status).WithContext(ctx).Should(Equal(http.StatusNotFound), p.output)
		Expect(s.listUndelivered(ctx, []string{late})).To(HaveLen(1), "it waits")
		suspend("shop", false)
		s.awaitDelivered(ctx, []string{late}, 1)

		By("waiting for a project that is deleted")
		project := &verifyv1.VerificationProject{}
		Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "second"}, project)).To(Succeed())
		Expect(s.admin.Delete(ctx, project)).To(Succeed())
		Eventually(status).WithContext(ctx).Should(BeZero())
		Expect(s.admin.Create(ctx, &verifyv1.VerificationProject{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "second"}, Spec: project.Spec,
		})).To(Succeed())
		Eventually(status).WithContext(ctx).Should(Equal(http.StatusNotFound), p.output)
		Expect(strings.Count(p.getBody(ctx, p.health, "/metrics"), `phoneproof_server_info{project="second"`)).To(Equal(1))
		p.sendSignal(syscall.SIGTERM)
		Eventually(p.exited).WithContext(ctx).Should(BeClosed(), p.output)
		Expect(p.cmd.ProcessState.ExitCode()).To(BeZero(), p.output)
	}, SpecTimeout(hang))
})

// addProject creates one more project in the shop's namespace, and returns its API key.
func (s *shop) addProject(ctx context.Context, name string) string {
	GinkgoHelper()
	key, err := settings.NewAPIKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	s.writeSecret(name+"-key", key)
	project := s.newProject()
	project.Name = name
	project.Spec.APIKeys[0].SecretRef.Key = name + "-key"
	Expect(s.admin.Create(ctx, project)).To(Succeed())
	return key
}

// poolReplica is a process that serves several projects.
type poolReplica struct {
	*replica

	addresses map[string]string
}

// newPool returns a process for the pool shops, with those members, that is not started.
func (s *shop) newPool(members ...string) *poolReplica {
	GinkgoHelper()
	p := &poolReplica{&replica{health: ports.Address(GinkgoT()), exited: make(chan struct{})}, map[string]string{}}
	for _, name := range members {
		p.addresses[name] = ports.Address(GinkgoT())
	}
	return p
}

// startPool starts a process for the pool shops, with those members.
func (s *shop) startPool(members ...string) *poolReplica {
	GinkgoHelper()
	p := s.newPool(members...)
	p.run(s)
	return p
}

// run starts the process.
func (p *poolReplica) run(s *shop) {
	GinkgoHelper()
	args := []string{
		"serve", "--pool", s.namespace + "/shops", "--kubeconfig", s.kubeconfig, "--secrets-dir", s.secrets, "--log-level=debug",
		"--drain-delay=200ms", "--whatsapp-url=http://127.0.0.1:1", "--telegram-url=http://127.0.0.1:1", "--health-bind-address", p.health,
	}
	for name, address := range p.addresses {
		args = append(args, fmt.Sprintf("--member=name=%s,address=%s", name, address))
	}
	p.start("log of a pool", slices.Concat(args, s.lease)...)
}

// member returns the process as a replica of one project.
func (p *poolReplica) member(name string) *replica {
	return &replica{api: p.addresses[name], health: p.health, cmd: p.cmd, exited: p.exited, log: p.log}
}
