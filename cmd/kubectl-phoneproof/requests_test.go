package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin/requests"
)

const masked = "+49*********78"

// idsOf returns the ids of a list in JSON.
func (w *world) idsOf(printed string) []string {
	w.t.Helper()
	var list requests.Requests
	w.Expect(json.Unmarshal([]byte(printed), &list)).To(Succeed())
	ids := []string{}
	for _, r := range list.Requests {
		ids = append(ids, r.RequestID)
	}
	return ids
}

// createSeveral makes requests in each state.
func (w *world) createSeveral() {
	w.createRequest("pending", time.Minute, nil)
	w.createRequest("verified", 2*time.Minute, makeVerified(false))
	w.createRequest("exhausted", 3*time.Hour, makeVerified(true))
	w.createRequest("lapsed", time.Hour, nil)
	w.createRequest("declined", 4*time.Minute, func(r *verifyv1.VerificationRequest) {
		r.Status.Phase = verifyv1.PhaseExpired
		r.Status.Hints = []verifyv1.Hint{
			{Kind: "TEXT_CHANGED", At: metav1.NewMicroTime(r.Spec.Init.CreatedAt.Add(time.Second))},
			{Kind: "DECLINED", At: metav1.NewMicroTime(r.Spec.Init.CreatedAt.Add(time.Minute))},
		}
	})
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "of-another-project"},
		Spec:       verifyv1.VerificationRequestSpec{ProjectRef: verifyv1.ProjectRef{Name: "bakery"}, PhoneNumber: number},
	})
}

func TestRequests_list(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.must("requests", "list", "shop")).To(BeEmpty())
	w.createSeveral()

	table := w.must("requests", "list", "shop")
	w.Expect(table).To(ContainSubstring(masked))
	w.Expect(table).NotTo(ContainSubstring(number))
	w.Expect(table).To(MatchRegexp(`declined +\S+ +TELEGRAM +EXPIRED +DECLINED`))
	w.Expect(table).To(MatchRegexp(`lapsed +\S+ +TELEGRAM +EXPIRED +-`), "as the API answers it, before a server has written it")
	w.Expect(w.must("requests", "list", "shop", "--show-numbers")).To(ContainSubstring(number))
	w.Expect(w.must("requests", "list", "shop", "-o", "wide")).To(And(ContainSubstring("ref-pending"), Not(ContainSubstring(number))))

	all := w.must("requests", "list", "shop", "-o", "json")
	w.Expect(all).To(ContainSubstring(number))
	w.Expect(w.idsOf(all)).To(Equal([]string{"pending", "verified", "declined", "lapsed", "exhausted"}), "newest first")
	for flags, ids := range map[string][]string{
		"--limit=2":              {"pending", "verified"},
		"--status=verified":      {"verified", "exhausted"},
		"--status=EXPIRED":       {"declined", "lapsed"},
		"--reference=ref-lapsed": {"lapsed"},
		"--since=3m":             {"pending", "verified"},
		"--since=3m --limit=1":   {"pending"},
		"--since=2020-01-01T00:00:00Z --status=PENDING": {"pending"},
	} {
		printed := w.must(append([]string{"requests", "list", "shop", "-o", "json"}, strings.Fields(flags)...)...)
		w.Expect(w.idsOf(printed)).To(Equal(ids), flags)
	}
	w.Expect(w.mustFail("requests", "list", "shop", "--status=open")).To(ContainSubstring("use PENDING, VERIFIED or EXPIRED"))
	w.Expect(w.mustFail("requests", "list", "shop", "--since=yesterday")).To(ContainSubstring("neither a duration"))
	w.Expect(w.mustFail("requests", "list", "shop", "--limit=0")).To(ContainSubstring("1 or more"))

	w.Expect(w.idsOf(w.must("requests", "declines", "shop", "-o", "json"))).To(Equal([]string{"declined"}))
}

func TestRequests_tellWhichAreOfTestKeys(t *testing.T) {
	w := newWorld(t)
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "of-a-test-key"},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTestTelegram,
			Init: &verifyv1.Init{
				CreatedAt: metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)), ExpiresAt: metav1.NewMicroTime(time.Now().Add(time.Hour)),
			},
		},
	})
	w.createRequest("live", time.Minute, nil)
	w.Expect(w.must("requests", "list", "shop")).To(And(
		MatchRegexp(`of-a-test-key +\S+ +TELEGRAM +PENDING \(test\)`), MatchRegexp(`live +\S+ +TELEGRAM +PENDING +`), Not(MatchRegexp(`live.*test`)),
	))
}

func TestRequests_listReadsChunks(t *testing.T) {
	w := newWorld(t)
	const many = 1_100 // three chunks
	for i := range many {
		created := metav1.NewMicroTime(time.Now().Add(-time.Duration(i) * time.Second).Truncate(time.Microsecond))
		w.create(&verifyv1.VerificationRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: "r-"},
			Spec: verifyv1.VerificationRequestSpec{
				ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTelegram,
				Init: &verifyv1.Init{CreatedAt: created, ExpiresAt: metav1.NewMicroTime(created.Add(time.Hour))},
			},
		})
	}
	w.Expect(w.idsOf(w.must("requests", "list", "shop", "-o", "json", "--limit=5000"))).To(HaveLen(many))
}

func TestRequests_get(t *testing.T) {
	w := newWorld(t)
	w.createSeveral()
	w.Expect(w.must("requests", "get", "shop", "exhausted")).To(And(
		ContainSubstring(masked), Not(ContainSubstring(number)), ContainSubstring("EXHAUSTED, 10 attempts"), MatchRegexp(`500 +http_500`),
	))
	w.Expect(w.must("requests", "get", "shop", "declined")).To(And(ContainSubstring("TEXT_CHANGED"), ContainSubstring("DECLINED")))
	var request requests.Request
	w.Expect(json.Unmarshal([]byte(w.must("requests", "get", "shop", "verified", "-o", "json")), &request)).To(Succeed())
	w.Expect(request.ActualPhoneNumber).To(Equal(number))
	w.Expect(request.Delivery.State).To(Equal("DELIVERED"))
	w.Expect(w.mustFail("requests", "get", "shop", "of-another-project")).To(ContainSubstring("belongs to project bakery"))
	w.Expect(w.mustFail("requests", "get", "shop", "absent")).To(ContainSubstring("not found"))
}

func TestRequests_skippedAndDelete(t *testing.T) {
	w := newWorld(t)
	w.createSeveral()
	w.createRequest("malformed", time.Minute, func(r *verifyv1.VerificationRequest) { r.Status.Phase = verifyv1.PhaseVerified }) // and no time
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "awaited"},
		Spec:       verifyv1.VerificationRequestSpec{ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTelegram},
	})
	skipped := w.must("requests", "skipped", "shop")
	w.Expect(skipped).To(And(ContainSubstring("Malformed: "), ContainSubstring("no server has taken it up yet")))
	w.Expect(w.idsOf(w.must("requests", "skipped", "shop", "-o", "json"))).To(ConsistOf("malformed", "awaited"))

	w.Expect(w.must("requests", "delete", "shop", "malformed", "verified")).To(Equal("request malformed deleted\nrequest verified deleted\n"))
	w.Expect(w.mustFail("requests", "delete", "shop", "pending")).To(ContainSubstring("it is pending; use --force"))
	w.must("requests", "delete", "shop", "pending", "--force")
	w.Expect(w.mustFail("requests", "delete", "shop", "of-another-project", "--force")).To(ContainSubstring("belongs to project bakery"))
	err := w.kube.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "pending"}, &verifyv1.VerificationRequest{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue())
}

// watchRequest runs requests watch of one request, and returns how it ended. A watch that does not end fails the test.
func (w *world) watchRequest(ended chan<- string, id string, args ...string) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	printed, _, err := w.runIn(ctx, append([]string{"requests", "watch", "shop", id}, args...)...)
	switch {
	case err != nil:
		printed += err.Error()
	case ctx.Err() != nil:
		printed += "it did not end"
	}
	ended <- printed
}

func TestRequests_watchEndsForAnAbsentRequest(t *testing.T) {
	w := newWorld(t)
	w.createSeveral()
	for _, id := range []string{"absent", "of-another-project", "a/b"} {
		ended := make(chan string, 1)
		w.watchRequest(ended, id)
		w.Expect(ended).To(Receive(Equal("request " + id + ": not found")))
	}
	ended := make(chan string, 1)
	go w.watchRequest(ended, "pending")
	w.Eventually(w.printed).Should(gbytes.Say("PENDING"))
	w.Expect(w.kube.Delete(t.Context(), &verifyv1.VerificationRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "verified"}})).To(Succeed())
	w.Consistently(ended, time.Second).ShouldNot(Receive(), "that was another one")
	w.Expect(w.kube.Delete(t.Context(), &verifyv1.VerificationRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "pending"}})).To(Succeed())
	w.Eventually(ended).Should(Receive(And(ContainSubstring("PENDING"), HaveSuffix("request pending: deleted while it was watched"))))
}

func TestRequests_watch(t *testing.T) {
	w := newWorld(t)
	request := w.createRequest("watched", time.Minute, nil)
	w.createRequest("other", time.Minute, nil)
	ended := make(chan string, 1)
	go func() {
		printed, _, err := w.runIn(t.Context(), "requests", "watch", "shop", "watched")
		if err != nil {
			printed = err.Error()
		}
		ended <- printed
	}()
	w.Eventually(w.printed).Should(gbytes.Say("PENDING"))
	makeVerified(false)(request)
	w.Expect(w.kube.Status().Update(t.Context(), request)).To(Succeed())
	var printed string
	w.Eventually(ended).Should(Receive(&printed))
	w.Expect(printed).To(And(MatchRegexp(`watched +\S+ +TELEGRAM +VERIFIED`), ContainSubstring(masked), Not(ContainSubstring("other"))))

	w.Expect(w.must("requests", "watch", "shop", "watched", "--status=pending")).To(BeEmpty(), "it is finished")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		printed, _, err := w.runIn(ctx, "requests", "watch", "shop", "-o", "json")
		if err != nil {
			printed = err.Error()
		}
		ended <- printed
	}()
	w.Eventually(w.printed).Should(gbytes.Say(`"watched"`))
	delivery := &verifyv1.VerificationRequest{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "delivery"}, Spec: request.Spec}
	delivery.Spec.Init = request.Spec.Init.DeepCopy()
	delivery.Spec.Method, delivery.Spec.Init.Deliver = verifyv1.MethodWhatsApp, verifyv1.DeliverGiven
	w.create(delivery)
	w.createRequest("later", time.Minute, nil)
	w.Eventually(w.printed).Should(gbytes.Say(`"later"`))
	cancel()
	w.Eventually(ended).Should(Receive(&printed))
	w.Expect(strings.Split(strings.TrimSpace(printed), "\n")).To(HaveLen(3), "no delivery")
	w.Expect(w.must("requests", "list", "shop")).NotTo(ContainSubstring("delivery"))
}
