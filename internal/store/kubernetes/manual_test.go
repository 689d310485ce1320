package kubernetes

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

var _ = Describe("A request made with kubectl", func() {
	var (
		a, b    *Store
		project string
		kubectl func(ctx context.Context, input string, arguments ...string) string
	)
	BeforeEach(func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		project = namespace + "/shop"
		a, b = open(ctx, project, Options{}), open(ctx, project, Options{})
		file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(controlplane.WriteKubeconfig(file, plane.Config)).To(Succeed())
		kubectl = func(ctx context.Context, input string, arguments ...string) string {
			GinkgoHelper()
			command := exec.CommandContext(ctx, plane.Kubectl, append([]string{"--kubeconfig", file, "-n", namespace}, arguments...)...)
			if input != "" {
				stdin, err := command.StdinPipe()
				Expect(err).NotTo(HaveOccurred())
				_, err = stdin.Write([]byte(input))
				Expect(err).NotTo(HaveOccurred())
				Expect(stdin.Close()).To(Succeed())
			}
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(output))
			return string(output)
		}
	})
	manifest := func(name, extra string) string {
		return `{"apiVersion":"phoneproof.dev/v1alpha1","kind":"VerificationRequest","metadata":{"name":"` + name +
			`"},"spec":{"projectRef":{"name":"shop"},"phoneNumber":"+15550100199"` + extra + `}}`
	}
	apply := func(ctx context.Context, m string) {
		GinkgoHelper()
		_, err := a.api.client.Post().Namespace(a.api.namespace).Resource(resourceName).Body([]byte(m)).Do(ctx).Raw()
		Expect(err).NotTo(HaveOccurred())
	}
	stored := func(ctx context.Context, name string) *verifyv1.VerificationRequest {
		GinkgoHelper()
		raw, err := a.api.client.Get().Namespace(a.api.namespace).Resource(resourceName).Name(name).Do(ctx).Raw()
		Expect(err).NotTo(HaveOccurred())
		o := &verifyv1.VerificationRequest{}
		Expect(json.Unmarshal(raw, o)).To(Succeed())
		return o
	}
	completion := func(id string) Completion {
		return Completion{CodeID: id, Text: "verify ABCD-EFGH", Link: "https://wa.me/1555?text=ABCD", TTL: 10 * time.Minute, DisplayName: "Acme"}
	}

	It("cannot be verified until it is completed, and is then like any other, at every replica at once", func(ctx SpecContext) {
		var news sync.Map
		defer a.Watch(func(c Change) { news.Store(c, true) })()
		apply(ctx, manifest("by-hand", `,"locale":"es-MX"`))
		settle(ctx, a)
		Eventually(func() bool {
			_, told := news.Load(Change{ID: "by-hand", Kind: KindIncomplete})
			return told
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeTrue())
		Expect(a.All()).To(ConsistOf(Change{ID: "by-hand", Kind: KindIncomplete}))
		Expect(a.Read(ctx, "by-hand")).Error().To(MatchError(verification.ErrNotFound))
		Expect(a.ReadManual(ctx, "by-hand")).To(Equal(ManualRequest{
			Name: "by-hand", Phone: number("+15550100199"), Method: verification.WhatsApp, Locale: "es-MX",
		}))

		id := newRequest(project).ID
		limits := verification.Limits{PerPhoneNumber: verification.Rate{Requests: 2, Period: time.Hour}}
		r, err := a.CompleteManual(ctx, "by-hand", completion(id), limits)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.ID).To(Equal("by-hand"))
		Expect(r.DisplayName).To(Equal("Acme"), "the name in its text")
		Expect(b.Read(ctx, id)).To(Equal(r), "by the code, at another replica")
		Expect(b.Read(ctx, "by-hand")).To(Equal(r))
		Expect(b.ReadFinal(ctx, "by-hand")).To(Equal(r))
		Expect(a.CompleteManual(ctx, "by-hand", completion(newRequest(project).ID), limits)).To(Equal(r), "once")

		o := stored(ctx, "by-hand")
		Expect(o.Labels).To(Equal(map[string]string{verifyv1.ProjectLabel: "shop", verifyv1.CodeIDLabel: id}))
		Expect(o.OwnerReferences).To(ConsistOf(And(HaveField("UID", ownerUID), HaveField("BlockOwnerDeletion", BeNil()))))
		Expect(o.Status.ExpectedText).NotTo(BeEmpty())
		Expect(o.Status.Link).NotTo(BeEmpty())

		n := newRequest(project)
		_, err = a.Create(ctx, n, limits)
		Expect(err).NotTo(HaveOccurred())
		_, err = a.Create(ctx, newRequest(project), limits)
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}), "made by hand counts, too")

		verified, err := b.Update(ctx, id, verifyNow)
		Expect(err).NotTo(HaveOccurred())
		Expect(verified.ID).To(Equal("by-hand"))
		o = stored(ctx, "by-hand")
		Expect(o.Status.ExpectedText).To(BeEmpty())
		Expect(o.Status.Link).To(BeEmpty())
		kubectl(ctx, "", "wait", "--for=condition=Verified", "vreq/by-hand", "--timeout=60s")
		_, err = b.Update(ctx, "by-hand", attempt(true))
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "", "wait", "--for=condition=WebhookDelivered", "vreq/by-hand", "--timeout=60s")
	})

	It("is not completed while there is no project to own it", func(ctx SpecContext) {
		orphan := open(ctx, project, Options{ProjectUID: func() types.UID { return "" }})
		apply(ctx, manifest("by-hand", ""))
		settle(ctx, orphan)
		before := stored(ctx, "by-hand").ResourceVersion
		Expect(orphan.CompleteManual(ctx, "by-hand", completion(newRequest(project).ID), verification.Limits{})).Error().
			To(MatchError(verification.Unavailable(nil)))
		Expect(stored(ctx, "by-hand").ResourceVersion).To(Equal(before))
	})

	It("is refused by the limits, and marked", func(ctx SpecContext) {
		apply(ctx, manifest("one", ""))
		apply(ctx, manifest("two", ""))
		settle(ctx, a)
		limits := verification.Limits{PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Hour}}
		_, err := a.CompleteManual(ctx, "one", completion(newRequest(project).ID), limits)
		Expect(err).NotTo(HaveOccurred())
		_, err = a.CompleteManual(ctx, "two", completion(newRequest(project).ID), limits)
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}))
		_, err = a.CompleteManual(ctx, "two", completion(newRequest(project).ID), verification.Limits{MaxStored: 1})
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeTooManyStored}))
		Expect(a.RejectManual(ctx, "two", verifyv1.ReasonRateLimited, "The number has too many requests.")).To(Succeed())
		before := stored(ctx, "two").ResourceVersion
		Expect(a.RejectManual(ctx, "two", verifyv1.ReasonRateLimited, "The number has too many requests.")).To(Succeed())
		Expect(stored(ctx, "two").ResourceVersion).To(Equal(before), "nothing to write a second time")
		_, err = a.CompleteManual(ctx, "two", completion(newRequest(project).ID), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("is skipped where it makes no sense, marked, and harms nothing else",
		func(ctx SpecContext, spec, status string) {
			good := newRequest(project)
			_, err := a.Create(ctx, good, verification.Limits{})
			Expect(err).NotTo(HaveOccurred())
			apply(ctx, manifest("poison", spec))
			patch := []byte(`{"status":` + status + `}`)
			_, err = a.api.client.Patch("application/merge-patch+json").Namespace(a.api.namespace).Resource(resourceName).
				Name("poison").SubResource("status").Body(patch).Do(ctx).Raw()
			Expect(err).NotTo(HaveOccurred())
			settle(ctx, a)
			Expect(a.All()).To(ConsistOf(Change{ID: "poison", Kind: KindMalformed}, Change{ID: good.ID, Kind: KindRequest}))

			for _, call := range []func() error{
				func() error { _, err := a.Read(ctx, "poison"); return err },
				func() error { _, err := a.ReadFinal(ctx, "poison"); return err },
				func() error { _, err := a.Update(ctx, "poison", verifyNow); return err },
			} {
				err := call()
				Expect(err).To(MatchError(verification.ErrNotFound), "to clients and messengers")
				Expect(err).To(MatchError(verification.ErrContent), "to the loop")
			}
			Expect(a.RejectManual(ctx, "poison", verifyv1.ReasonMalformed, "The object's content makes no sense.")).To(Succeed())
			kubectl(ctx, "", "wait", "--for=condition=Accepted=false", "vreq/poison", "--timeout=60s")
			_, err = a.Update(ctx, good.ID, verifyNow)
			Expect(err).NotTo(HaveOccurred())
			Expect(b.Awaiting(ctx, bindingOf(1))).Error().To(MatchError(verification.ErrNotFound))
			_, err = b.Create(ctx, newRequest(project), verification.Limits{MaxStored: 3})
			Expect(err).NotTo(HaveOccurred())
		},
		Entry("final without ever having begun", "", `{"phase":"Verified"}`),
		Entry("expired without ever having begun", "", `{"phase":"Expired"}`),
		Entry("verified at no time", `,"init":{"createdAt":"2026-11-21T00:00:00.000000Z","expiresAt":"2026-11-21T00:10:00.000000Z"}`,
			`{"phase":"Verified","contacts":[{"binding":"`+bindingOf(1)[:16]+`","boundAt":"2026-11-21T00:00:00.000000Z"}]}`),
		Entry("with a wrong code of no request", `,"init":{"createdAt":"2026-11-21T00:00:00.000000Z","expiresAt":"2026-11-21T00:10:00.000000Z"}`,
			`{"phase":"Verified","provenAt":"2026-11-21T00:00:00.000000Z","wrongCodes":5}`),
		Entry("accepted in the year zero", `,"init":{"createdAt":"0001-01-01T00:00:00.000000Z","expiresAt":"2026-11-21T00:10:00.000000Z"}`, `{}`),
	)

	It("may carry anything else that the schema lets through", func(ctx SpecContext) {
		apply(ctx, `{"apiVersion":"phoneproof.dev/v1alpha1","kind":"VerificationRequest","metadata":{"name":"odd",
			"labels":{"phoneproof.dev/project":"another","phoneproof.dev/code-id":"x"},"finalizers":["example.com/stuck"],
			"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"forged","uid":"1"}]},
			"spec":{"projectRef":{"name":"shop"},"phoneNumber":"+999999999999999","init":{
			"createdAt":"9999-12-31T23:59:58.000000Z","expiresAt":"9999-12-31T23:59:59.000000Z","keyName":"k"}},"status":{"phase":"Verified"}}`)
		settle(ctx, a)
		Expect(a.Read(ctx, "odd")).To(HaveField("Phase", verification.Pending), "status is dropped on create")
		Expect(a.Read(ctx, "x")).Error().To(MatchError(verification.ErrNotFound), "no id of ours")
		r, err := a.Read(ctx, "odd")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Delete(ctx, "odd", r.Version)).To(Succeed())
		Expect(a.Read(ctx, "odd")).Error().To(MatchError(verification.ErrNotFound), "gone, even if a finalizer holds the object")
		Expect(b.Delete(ctx, "odd", r.Version)).To(Succeed())
		settle(ctx, a)
		Expect(a.All()).To(ConsistOf(Change{ID: "odd", Kind: KindGone}))
		Expect(a.Create(ctx, verification.New{
			ID: "odd", Phone: number("+15550100199"), Method: verification.WhatsApp, TTL: time.Minute,
		}, verification.Limits{})).Error().To(MatchError(verification.Unavailable(nil)))
		kubectl(ctx, "", "patch", "vreq/odd", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		settle(ctx, a)
		Expect(a.All()).To(BeEmpty())
	})

	It("belongs to the project that it names", func(ctx SpecContext) {
		foreign := open(ctx, a.api.namespace+"/other", Options{})
		n := newRequest(project)
		_, err := foreign.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Read(ctx, n.ID)).Error().To(MatchError(verification.ErrNotFound))
		_, err = a.Create(ctx, n, verification.Limits{})
		Expect(err).To(MatchError(verification.Unavailable(nil)))
		Expect(a.All()).To(BeEmpty())
	})

	It("is not completed while its number cools down after a decline", func(ctx SpecContext) {
		declined := newSession(project)
		for _, step := range []func() error{
			func() error { _, err := a.Create(ctx, declined, verification.Limits{}); return err },
			func() error { _, err := a.Update(ctx, declined.ID, proveNow); return err },
			func() error { _, err := a.Update(ctx, declined.ID, declineProven); return err },
		} {
			Expect(step()).To(Succeed())
		}
		apply(ctx, manifest("by-hand", ""))
		limits := verification.Limits{DeclineCooldown: time.Hour}
		settle(ctx, b)
		for _, s := range []*Store{a, b} {
			_, err := s.CompleteManual(ctx, "by-hand", completion(newRequest(project).ID), limits)
			Expect(err).To(MatchError(verification.RateLimited(verification.LimitDeclined, 0)))
		}
		Expect(stored(ctx, "by-hand").Status.Init).To(BeNil())
		r, err := b.CompleteManual(ctx, "by-hand", completion(newRequest(project).ID), verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Terms).To(BeZero(), "a message is enough")
	})

	It("says what it is in conditions", func(ctx SpecContext) {
		condition := func(name, kind string) (metav1.ConditionStatus, string) {
			GinkgoHelper()
			for _, c := range stored(ctx, name).Status.Conditions {
				if c.Type == kind {
					return c.Status, c.Reason
				}
			}
			return "", ""
		}
		expect := func(name, kind string, status metav1.ConditionStatus, reason string) {
			GinkgoHelper()
			gotStatus, gotReason := condition(name, kind)
			Expect(gotStatus).To(Equal(status), kind)
			Expect(gotReason).To(Equal(reason), kind)
		}
		n := newRequest(project)
		_, err := a.Create(ctx, n, verification.Limits{})
		Expect(err).NotTo(HaveOccurred())
		step := func(m verification.Mutation) {
			GinkgoHelper()
			_, err := a.Update(ctx, n.ID, m)
			Expect(err).NotTo(HaveOccurred())
		}
		step(bindTo(bindingOf(1)))
		expect(n.ID, verifyv1.ConditionVerified, metav1.ConditionUnknown, verifyv1.ReasonPending)
		expect(n.ID, verifyv1.ConditionWebhookDelivered, "", "")
		step(func(r *verification.Request, now time.Time) error {
			r.ProvenAt = now
			return nil
		})
		expect(n.ID, verifyv1.ConditionVerified, metav1.ConditionUnknown, verifyv1.ReasonAwaitingConfirmation)
		expect(n.ID, verifyv1.ConditionReconciling, metav1.ConditionTrue, verifyv1.ReasonAwaitingConfirmation)
		step(func(r *verification.Request, _ time.Time) error {
			r.ProvenAt = time.Time{}
			return nil
		})
		step(verifyNow)
		expect(n.ID, verifyv1.ConditionVerified, metav1.ConditionTrue, verifyv1.ReasonNumberMatched)
		expect(n.ID, verifyv1.ConditionWebhookDelivered, metav1.ConditionFalse, verifyv1.ReasonDue)
		step(func(r *verification.Request, now time.Time) error {
			return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 1, At: now, StatusCode: 410, Reason: "gone"})
		})
		expect(n.ID, verifyv1.ConditionWebhookDelivered, metav1.ConditionFalse, verifyv1.ReasonGone)
		step(func(r *verification.Request, now time.Time) error {
			r.Delivery.ExhaustedAt, r.Delivery.LastStatusCode = now, 500
			return nil
		})
		expect(n.ID, verifyv1.ConditionWebhookDelivered, metav1.ConditionFalse, verifyv1.ReasonExhausted)
		step(func(r *verification.Request, now time.Time) error {
			r.Delivery = verification.Delivery{Attempts: 2, DeliveredAt: now}
			r.Assurance = verification.AssuranceSharedContact
			return nil
		})
		expect(n.ID, verifyv1.ConditionWebhookDelivered, metav1.ConditionTrue, verifyv1.ReasonDelivered)
		expect(n.ID, verifyv1.ConditionVerified, metav1.ConditionTrue, verifyv1.ReasonContactShared)
		step(func(r *verification.Request, _ time.Time) error {
			r.Phase, r.Delivery = verification.Expired, verification.Delivery{}
			return nil
		})
		expect(n.ID, verifyv1.ConditionVerified, metav1.ConditionFalse, verifyv1.ReasonExpired)
		expect(n.ID, verifyv1.ConditionWebhookDelivered, "", "")
	})
})
