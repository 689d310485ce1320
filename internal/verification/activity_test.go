package verification

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRequest_heardAt(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := Request{CreatedAt: at, ExpiresAt: at.Add(10 * time.Minute), Phase: Expired}
	g.Expect(r.HeardAt()).To(BeZero(), "a request alone is no message")
	r.Contacts = []Contact{{Binding: "b", BoundAt: at.Add(2 * time.Minute)}, {Binding: "a", BoundAt: at.Add(time.Minute)}}
	g.Expect(r.HeardAt()).To(Equal(at.Add(2 * time.Minute)))
	r.VerifiedAt = at.Add(3 * time.Minute)
	g.Expect(r.HeardAt()).To(Equal(at.Add(3 * time.Minute)))
}

// TestRequest_heardAt_ofASession: what clients and the page do is no message, nor is a status.
func TestRequest_heardAt_ofASession(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, kind := range HintKinds() {
		r := Request{Method: WhatsApp, Phase: Expired, ExpiresAt: at, Hints: []Hint{{Kind: kind, At: at}}}
		isMessage := !slices.Contains([]HintKind{
			HintCanceled, HintWrongCode, HintNumberWrong, HintNoQuestion, HintCodeNotSent, HintAwaitingConfirmation,
		}, kind)
		g.Expect(r.HeardAt().IsZero()).To(Equal(!isMessage), string(kind))
	}
	r := Request{Method: WhatsApp, Phase: Verified, ProvenAt: at, VerifiedAt: at.Add(time.Minute)}
	g.Expect(r.HeardAt()).To(Equal(at))
	r.OtherMethods = []Method{Telegram}
	g.Expect(r.HeardAt()).To(Equal(at), "a proof shows which messenger it came by")
	r.Phase, r.VerifiedAt = Pending, time.Time{}
	g.Expect(r.HeardAt()).To(Equal(at))
}

// TestRequest_heardAt_ofSeveralMessengers: a contact or a hint may have come by any of them.
func TestRequest_heardAt_ofSeveralMessengers(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := Request{
		Method: WhatsApp, OtherMethods: []Method{Telegram}, Phase: Expired, ExpiresAt: at,
		Contacts: []Contact{{BoundAt: at}}, Hints: []Hint{{Kind: HintOtherNumber, At: at}},
	}
	g.Expect(r.HeardAt()).To(BeZero())
	var a Activity
	a.Count(&r, at)
	g.Expect(a).To(Equal(Activity{Expired: 1}), "its end still counts")
	r.Phase, r.VerifiedAt, r.VerifiedBy = Verified, at, Telegram
	g.Expect(r.HeardAt()).To(Equal(at))
}

func TestActivity_count(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		r    Request
		want Activity
	}{
		"pending":                       {Request{Phase: Pending, ExpiresAt: at}, Activity{}},
		"expired at that time":          {Request{Phase: Expired, ExpiresAt: at.Add(-ExpiryGrace)}, Activity{Expired: 1}},
		"expired before":                {Request{Phase: Expired, ExpiresAt: at.Add(-ExpiryGrace - 1)}, Activity{}},
		"verified at that time":         {Request{Phase: Verified, ExpiresAt: at, VerifiedAt: at}, Activity{LastHeard: at}},
		"verified before":               {Request{Phase: Verified, ExpiresAt: at.Add(time.Hour), VerifiedAt: at.Add(-1)}, Activity{}},
		"pending, of a sender who asks": {Request{Phase: Pending, ExpiresAt: at, Contacts: []Contact{{BoundAt: at}}}, Activity{LastHeard: at}},
		"canceled":                      {Request{Phase: Expired, ExpiresAt: at, Hints: []Hint{{Kind: HintCanceled, At: at}}}, Activity{}},
		"canceled, of a sender who asked": {
			Request{Phase: Expired, ExpiresAt: at, Contacts: []Contact{{BoundAt: at}}, Hints: []Hint{{Kind: HintCanceled, At: at}}},
			Activity{LastHeard: at}},
		"ended by wrong codes": {
			Request{Phase: Expired, ExpiresAt: at, ProvenAt: at, Hints: []Hint{{Kind: HintWrongCode, At: at}}}, Activity{Expired: 1, LastHeard: at}},
		"expired, of a sender who asked": {
			Request{Phase: Expired, ExpiresAt: at, Contacts: []Contact{{BoundAt: at}}}, Activity{Expired: 1, LastHeard: at}},
	} {
		t.Run(name, func(t *testing.T) {
			var a Activity
			a.Count(&c.r, at)
			NewWithT(t).Expect(a).To(Equal(c.want))
			a.LastHeard = at.Add(time.Hour)
			a.Hear(&c.r, at)
			NewWithT(t).Expect(a.LastHeard).To(Equal(at.Add(time.Hour)), "the latest counts")
		})
	}
}
