package verification

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRequest_Apply(t *testing.T) {
	g := NewWithT(t)
	before := *pending(t)
	before.Contacts = []Contact{{Binding: "sender", BoundAt: created}}
	fine := created.Add(time.Second + time.Nanosecond).In(time.FixedZone("east", 3600))
	after, err := before.Apply(func(r *Request, now time.Time) error {
		r.Phase, r.VerifiedAt, r.Actual = Verified, now, r.Phone
		r.Contacts[0].BoundAt = now
		r.Delivery = Delivery{NextAttemptAt: now, LastAttemptAt: now, DeliveredAt: now, ExhaustedAt: now}
		return nil
	}, fine)
	g.Expect(err).NotTo(HaveOccurred())
	whole := created.Add(time.Second).UTC()
	for _, got := range []time.Time{
		after.VerifiedAt, after.Contacts[0].BoundAt, after.Delivery.NextAttemptAt, after.Delivery.LastAttemptAt,
		after.Delivery.DeliveredAt, after.Delivery.ExhaustedAt,
	} {
		g.Expect(got).To(Equal(whole))
	}
	g.Expect(before.Contacts[0].BoundAt).To(Equal(created), "the state before is not touched")
}

func TestRequest_Apply_returnsTheErrorOfTheMutation(t *testing.T) {
	g := NewWithT(t)
	mine := errors.New("mine")
	_, err := pending(t).Apply(func(*Request, time.Time) error { return mine }, created)
	g.Expect(err).To(Equal(mine))
}

func TestRequest_Apply_refusesWhatOnlyTheStoreDecides(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"id":            func(r *Request) { r.ID += "x" },
		"number":        func(r *Request) { r.Phone = number(t, "+15550100200") },
		"method":        func(r *Request) { r.Method = Telegram },
		"other methods": func(r *Request) { r.OtherMethods = []Method{Telegram} },
		"return URL":    func(r *Request) { r.ReturnURL += "x" },
		"created at":    func(r *Request) { r.CreatedAt = r.CreatedAt.Add(1) },
		"expires at":    func(r *Request) { r.ExpiresAt = r.ExpiresAt.Add(1) },
		"key":           func(r *Request) { r.KeyName += "x" },
		"body":          func(r *Request) { r.BodyHash += "x" },
		"display name":  func(r *Request) { r.DisplayName += "x" },
		"epoch":         func(r *Request) { r.Epoch++ },
		"version":       func(r *Request) { r.Version += "x" },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pending(t).Apply(func(r *Request, _ time.Time) error { change(r); return nil }, created)
			NewWithT(t).Expect(err).To(MatchError(ErrContent))
		})
	}
}
