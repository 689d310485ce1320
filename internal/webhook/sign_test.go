package webhook

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
)

const (
	rawSecret    = "an ordinary secret with spaces, $igns and 'quotes'"
	base64Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	// Computed with openssl.
	pinnedHex      = "390414d09d77cb8a536f415c8f9359ede6703558482b925c2843c65f344cb174"
	pinnedStandard = "v1,bRV0qDJd9O5fyaz8XSSEEF0NDrEaxu09UEPsqhf8/+4= v1,30dnYR/QgnG2jDwZu3Q1/3BlZZ83STtHTFnWWD7wX8I="
)

// signedHeaders returns the headers of an event that is signed now.
func signedHeaders(secrets ...string) http.Header {
	h := http.Header{}
	values := make([][]byte, 0, len(secrets))
	for _, s := range secrets {
		values = append(values, []byte(s))
	}
	signEvent(h, testEvent(), values, time.Now())
	return h
}

func TestSign_satisfiesTheStandardLibrary(t *testing.T) {
	body := testEvent().body.Reveal()
	standard := func(secret string) *standardwebhooks.Webhook {
		wh, err := standardwebhooks.NewWebhook(secret)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return wh
	}
	raw := func(secret string) *standardwebhooks.Webhook {
		wh, err := standardwebhooks.NewWebhookRaw([]byte(secret))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return wh
	}
	t.Run("base64 key", func(t *testing.T) {
		NewWithT(t).Expect(standard(base64Secret).Verify(body, signedHeaders(base64Secret))).To(Succeed())
	})
	t.Run("raw key", func(t *testing.T) {
		NewWithT(t).Expect(raw(rawSecret).Verify(body, signedHeaders(rawSecret))).To(Succeed())
	})
	t.Run("rotation: either secret verifies", func(t *testing.T) {
		g := NewWithT(t)
		h := signedHeaders(rawSecret, base64Secret)
		g.Expect(raw(rawSecret).Verify(body, h)).To(Succeed())
		g.Expect(standard(base64Secret).Verify(body, h)).To(Succeed())
		g.Expect(raw("another").Verify(body, h)).NotTo(Succeed())
		g.Expect(strings.Fields(h.Get(headerStandardSignatures))).To(HaveLen(2))
	})
	t.Run("another body is refused", func(t *testing.T) {
		NewWithT(t).Expect(raw(rawSecret).Verify(append([]byte(" "), body...), signedHeaders(rawSecret))).NotTo(Succeed())
	})
}

func TestSign_pinned(t *testing.T) {
	g := NewWithT(t)
	h := http.Header{}
	e := Event{id: "evt_1", body: redact.New([]byte(`{"event":"verification.success"}`))}
	signEvent(h, e, [][]byte{[]byte(base64Secret), []byte("old")}, time.Unix(1_795_000_000, 999))
	g.Expect(h).To(Equal(http.Header{
		"Webhook-Id":          {"evt_1"},
		"Webhook-Timestamp":   {"1795000000"},
		"X-Webhook-Signature": {pinnedHex},
		"Webhook-Signature":   {pinnedStandard},
	}))
}

func TestActiveSecrets(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = "former" + strconv.Itoa(i)
	}
	for name, c := range map[string]struct {
		current, previous fakeSecret
		want              []string
	}{
		"one":                 {fakeSecret{current: "a"}, fakeSecret{}, []string{"a"}},
		"declared previous":   {fakeSecret{current: "a"}, fakeSecret{current: "b"}, []string{"a", "b"}},
		"replaced in place":   {fakeSecret{"a", []string{"z"}}, fakeSecret{}, []string{"a", "z"}},
		"all":                 {fakeSecret{"a", []string{"z"}}, fakeSecret{"b", []string{"y"}}, []string{"a", "b", "y", "z"}},
		"none twice":          {fakeSecret{"a", []string{"b", "a"}}, fakeSecret{"b", []string{"a"}}, []string{"a", "b"}},
		"unreadable":          {fakeSecret{}, fakeSecret{current: "b"}, nil},
		"previous unreadable": {fakeSecret{current: "a"}, fakeSecret{former: []string{"b"}}, []string{"a"}},
		"bounded":             {fakeSecret{"a", many}, fakeSecret{current: "b"}, append([]string{"a", "b"}, many[:6]...)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range activeSecrets(c.current, c.previous, time.Time{}) {
				got = append(got, string(s))
			}
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}

func TestActiveSecrets_ofAnUnreadableSetting(t *testing.T) {
	NewWithT(t).Expect(activeSecrets(settings.Secret{}, settings.Secret{}, time.Now())).To(BeEmpty())
}

func TestStandardKey(t *testing.T) {
	g := NewWithT(t)
	want, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(standardKey([]byte(base64Secret))).To(Equal(want))
	for _, refused := range []string{"whsec_MfKQ9r8", "whsec_"} {
		g.Expect(standardKey([]byte(refused))).To(BeEquivalentTo(refused), "never an empty key")
	}
	g.Expect(standardKey([]byte("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))).To(BeEquivalentTo("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
}
