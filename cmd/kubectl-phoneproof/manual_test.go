package main

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// serveManual does once what a server does with a manual request: change writes its status.
func (w *world) serveManual(changes ...func(*verifyv1.VerificationRequest)) {
	done := make(chan struct{})
	w.t.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for _, change := range changes {
			var list verifyv1.VerificationRequestList
			for ctx := w.t.Context(); ctx.Err() == nil; {
				if err := w.kube.List(ctx, &list, client.InNamespace(w.namespace)); err == nil && len(list.Items) == 1 {
					change(&list.Items[0])
					if w.kube.Status().Update(ctx, &list.Items[0]) == nil {
						break
					}
				}
				waitABit(ctx)
			}
			waitABit(w.t.Context())
		}
	}()
}

func waitABit(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(700 * time.Millisecond):
	}
}

func accept(r *verifyv1.VerificationRequest) {
	created := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	r.Status.Init = &verifyv1.Init{CreatedAt: created, ExpiresAt: metav1.NewMicroTime(created.Add(time.Minute))}
	r.Status.Link, r.Status.ExpectedText = "https://t.me/shop_bot?start=ABCD-EFGH", "/start ABCD-EFGH"
}

func verifyManual(r *verifyv1.VerificationRequest) {
	r.Status.Phase, r.Status.VerifiedAt, r.Status.Link, r.Status.ExpectedText = verifyv1.PhaseVerified, &r.Status.Init.ExpiresAt, "", ""
}

func TestVerify_manual(t *testing.T) {
	w := newWorld(t)
	w.serveManual(accept, verifyManual)
	printed := w.must("verify", "shop", number, "--reference=mine", "--wait")
	w.Expect(printed).To(And(
		MatchRegexp(`request shop-[a-z0-9]{5}\n`), ContainSubstring("https://t.me/shop_bot?start=ABCD-EFGH"), HaveSuffix("VERIFIED\n")))
	var list verifyv1.VerificationRequestList
	w.Expect(w.kube.List(t.Context(), &list, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(list.Items[0].Spec.Method).To(Equal(verifyv1.MethodTelegram), "the one that the project has")
	w.Expect(list.Items[0].Spec.Reference).To(Equal("mine"))
}

func TestVerify_manualThatExpires(t *testing.T) {
	w := newWorld(t)
	w.serveManual(accept, func(r *verifyv1.VerificationRequest) { r.Status.Phase = verifyv1.PhaseExpired })
	w.Expect(w.mustFail("verify", "shop", number, "--wait")).To(ContainSubstring("the number was not verified"))
}

func TestVerify_manualThatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.serveManual(func(r *verifyv1.VerificationRequest) {
		r.Status.Conditions = []metav1.Condition{{
			Type: "Accepted", Status: "False", Reason: "RateLimited", Message: "try again later", LastTransitionTime: metav1.Now(),
		}}
	})
	w.Expect(w.mustFail("verify", "shop", number)).To(ContainSubstring("was refused: RateLimited: try again later"))
}

func TestVerify_manualThatNothingWorksOn(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.mustFail("verify", "shop", number, "--timeout=1s")).To(ContainSubstring("no server has taken request shop-"))
}

func TestCancel_manual(t *testing.T) {
	w := newWorld(t)
	w.createRequest("made-by-the-api", time.Minute, nil)
	w.create(&verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "manual"},
		Spec:       verifyv1.VerificationRequestSpec{ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTelegram},
	})
	w.Expect(w.must("cancel", "shop", "manual")).To(Equal("manual request manual deleted\n"))
	w.Expect(w.mustFail("cancel", "shop", "manual")).To(ContainSubstring("not found"))
	w.Expect(w.mustFail("cancel", "shop", "made-by-the-api")).To(ContainSubstring("name a key that has the scope Init"))
}
