package webhook

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func verifiedRequest() *verification.Request {
	return &verification.Request{
		ID: "vrmfrggzdfmztwq2lknnwg23tpob", Phone: mustPhone("+5215512345678"), Actual: mustPhone("+525512345678"),
		Method: verification.WhatsApp, Phase: verification.Verified,
		CreatedAt:  time.Date(2026, 11, 20, 9, 58, 7, 123456789, time.UTC),
		VerifiedAt: time.Date(2026, 11, 20, 11, 1, 2, 3999999, time.FixedZone("", 3600)),
	}
}

func mustPhone(e164 string) phone.Number {
	n, err := phone.FromE164(e164)
	if err != nil {
		panic(err)
	}
	return n
}

func testEvent() Event {
	e, err := NewEvent("shop/checkout", verifiedRequest())
	if err != nil {
		panic(err)
	}
	return e
}

// fakeSecret is a secret with former values.
type fakeSecret struct {
	current string
	former  []string
}

func (s fakeSecret) Current() []byte { return []byte(s.current) }

func (s fakeSecret) Accepted(time.Time) [][]byte {
	if s.current == "" {
		return nil
	}
	values := [][]byte{[]byte(s.current)}
	for _, f := range s.former {
		values = append(values, []byte(f))
	}
	return values
}
