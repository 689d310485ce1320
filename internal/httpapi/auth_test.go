package httpapi

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestAuth_refusals(t *testing.T) {
	base := func(values ...string) request {
		r := initRequest("", `{"phoneNumber":"+4915123456789"}`)
		return r.withHeader("Authorization", values...)
	}
	flipped := []byte(keyAll)
	flipped[len(flipped)/2] ^= 1
	none := base()
	delete(none.header, "Authorization")
	inURL := none
	inURL.target += "?access_token=" + keyAll + "&api_key=" + keyAll
	expectEach(t, []badRequest{
		{"no header", none, 401, codeMissingKey, ""},
		{"in the URL", inURL, 401, codeMissingKey, ""},
		{"empty", base(""), 401, codeMalformedKey, ""},
		{"only the scheme", base("Bearer"), 401, codeMalformedKey, ""},
		{"scheme and space", base("Bearer "), 401, codeMalformedKey, ""},
		{"no scheme", base(keyAll), 401, codeMalformedKey, ""},
		{"Basic", base("Basic dXNlcjpwYXNz"), 401, codeMalformedKey, ""},
		{"two headers", base("Bearer "+keyAll, "Bearer "+keyAll), 401, codeMalformedKey, ""},
		{"two in one", base("Bearer " + keyAll + ", Bearer " + keyAll), 401, codeMalformedKey, ""},
		{"spaces, then a tab", base("Bearer  \t" + keyAll), 401, codeMalformedKey, ""},
		{"spaces alone", base("Bearer   "), 401, codeMalformedKey, ""},
		{"tab", base("Bearer\t" + keyAll), 401, codeMalformedKey, ""},
		{"space in the key", base("Bearer " + keyAll[:20] + " " + keyAll[20:]), 401, codeMalformedKey, ""},
		{"look-alike", base("Bearer " + strings.Replace(keyAll, "p", "р", 1)), 401, codeMalformedKey, ""},
		{"one bit changed", base("Bearer " + string(flipped)), 401, codeUnknownKey, ""},
		{"wrong checksum", base("Bearer " + keyAll[:len(keyAll)-1] + "!"), 401, codeUnknownKey, ""},
		{"prefix, wrong length", base("Bearer " + keyAll[:len(keyAll)-1]), 401, codeUnknownKey, ""},
		{"lower case", base("Bearer " + strings.ToLower(keyAll)), 401, codeUnknownKey, ""},
		{"quoted", base(`Bearer "` + keyAll + `"`), 401, codeUnknownKey, ""},
		{"its hash", base(fmt.Sprintf("Bearer %x", sha256.Sum256([]byte(keyAll)))), 401, codeUnknownKey, ""},
		{"long", base("Bearer " + strings.Repeat("a", 10_000)), 401, codeUnknownKey, ""},
		{"expired", base("Bearer " + keyExpired), 401, codeExpiredKey, ""},
		{"scope", base("Bearer " + keyStatus), 403, codeInsufficientScope, ""},
		{"several spaces", base("Bearer   " + keyAll), 200, "", ""},
		{"scheme in capitals", base("BEARER " + keyAll), 200, "", ""},
		{"scheme in lower case", base("bearer " + keyAll), 200, "", ""},
		{"key without the prefix pp_", base("Bearer " + keyInit), 200, "", ""},
	})
}

func TestAuth_explainsEachRefusal(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	none := statusRequest("", "id=x")
	delete(none.header, "Authorization")
	messages := map[string]bool{}
	for challenge, r := range map[string]request{
		`Bearer realm="phoneproof"`: none,
		`Bearer realm="phoneproof", error="invalid_request", error_description="The Authorization header cannot be read"`: statusRequest("", "id=x"),
		`Bearer realm="phoneproof", error="invalid_token", error_description="The API key is not known"`:                  statusRequest("unknown", "id=x"),
		`Bearer realm="phoneproof", error="invalid_token", error_description="The API key is expired"`:                    statusRequest(keyExpired, "id=x"),
		`Bearer realm="phoneproof", error="insufficient_scope", scope="Status"`:                                           statusRequest(keyInit, "id=x"),
		`Bearer realm="phoneproof", error="insufficient_scope", scope="Read"`:                                             listRequest(keyAll, ""),
		`Bearer realm="phoneproof", error="insufficient_scope", scope="Redeliver"`:                                        changeRequest(keyAll, pathRedeliver, "x"),
	} {
		a := h.do(r)
		g.Expect(a.joinedHeader("WWW-Authenticate")).To(Equal(challenge))
		messages[a.errorField("message")] = true
	}
	g.Expect(messages).To(HaveLen(7), "each refusal must have its own message")
	g.Expect(h.do(initFor(keyStatus, h.newNumber(1))).joinedHeader("WWW-Authenticate")).To(HaveSuffix(`scope="Init"`))
}

func TestAuth_comesBeforeEverythingElse(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	for range 3 {
		expectRefusal(g, h.do(initRequest("unknown", "no JSON").withHeader("Content-Type", "text/plain").markInvalid()), 401, codeUnknownKey, "")
		expectRefusal(g, h.do(statusRequest("unknown", "").markInvalid()), 401, codeUnknownKey, "")
		expectRefusal(g, h.do(statusRequest(keyExpired, "id="+strings.Repeat("a", 26))), 401, codeExpiredKey, "")
	}
	g.Expect(h.store.calls.Load()).To(BeZero(), "invalid keys must not cause a call of the store")
}

func TestAuth_revokedKeyIsRefusedByTheNextRequest(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).status).To(Equal(200))
	reads := h.store.calls.Load()
	h.changeSettings(func(s *settings.Settings) {
		s.Keys = settings.NewKeys(settings.Key{Name: "new", Hash: sha256.Sum256([]byte(keyInit)), Scopes: settings.ScopeStatus})
	})
	expectRefusal(g, h.do(statusRequest(keyAll, "id="+id)), 401, codeUnknownKey, "")
	g.Expect(h.do(statusRequest(keyInit, "id="+id)).status).To(Equal(200))
	h.changeSettings(func(s *settings.Settings) {
		s.Keys = settings.NewKeys(settings.Key{
			Name: "new", Hash: sha256.Sum256([]byte(keyInit)), Scopes: settings.ScopeStatus, ExpiresAt: time.Now(),
		})
	})
	expectRefusal(g, h.do(statusRequest(keyInit, "id="+id)), 401, codeExpiredKey, "")
	g.Expect(h.store.calls.Load()).To(Equal(reads + 1))
}

// A removed key is refused immediately and without a call of the store, also if all keys are gone because the project was deleted.
func TestAuth_removedKey(t *testing.T) {
	for name, keys := range map[string]settings.Keys{
		"another key is left": settings.NewKeys(settings.Key{Name: "left", Hash: sha256.Sum256([]byte(keyInit)), Scopes: settings.ScopeInit}),
		"no key is left":      {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := newHarness(t)
			id := h.do(initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "first")).stringField("requestId")
			calls := h.store.calls.Load()
			if name == "no key is left" {
				h.settings.Store(&settings.Settings{})
			} else {
				h.changeSettings(func(s *settings.Settings) { s.Keys = keys })
			}
			for _, r := range []request{
				statusRequest(keyAll, "id="+id), statusRequest(keyAll, "id="+id+"&wait=30s"), initFor(keyAll, h.newNumber(1)),
				initFor(keyAll, h.newNumber(1)).withHeader("Idempotency-Key", "first"),
			} {
				expectRefusal(g, h.do(r), 401, codeUnknownKey, "")
			}
			g.Expect(h.store.calls.Load()).To(Equal(calls), "the store must not be called")
		})
	}
}

// While the Secret of a key is missing, an unknown key is answered like a server that is not ready, at a route of its own in the metrics.
func TestAuth_keysUnavailable(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	project := &verifyv1.VerificationProject{Spec: verifyv1.VerificationProjectSpec{
		APIKeys: []verifyv1.APIKey{{Name: "gone", SecretRef: verifyv1.SecretKeyRef{Name: "keys", Key: "gone"}}},
	}}
	secrets := settings.NewSecretFiles(t.TempDir()).Read(project, settings.Secrets{}, time.Now())
	h.changeSettings(func(s *settings.Settings) { s.Keys = settings.FromProject(project, secrets).Keys })
	for _, r := range []request{statusRequest(keyAll, "id=x"), initFor(keyAll, h.newNumber(1))} {
		a := h.do(r)
		expectRefusal(g, a, 503, codeKeysUnavailable, "")
		g.Expect(a.header.Get("Retry-After")).NotTo(BeEmpty())
	}
	expectRefusal(g, h.do(statusRequest("pp_malformed", "id=x")), 401, codeUnknownKey, "")
	g.Expect(h.store.calls.Load()).To(BeZero())
	g.Expect(testutil.ToFloat64(h.api.metrics.requests.WithLabelValues(pathInit+strangersSuffix, "POST", "503"))).To(Equal(1.0))
}

func TestAuth_bearerHeader(t *testing.T) {
	g := NewWithT(t)
	for value, want := range map[string]string{
		"Bearer abc": "abc", "Bearer   abc": "abc", "Bearer  a b": "", "bearer a!~": "a!~", "Bearer abc ": "", "Bearer": "", "": "", "Bearer a\x7f": "", "Bearer a\x00b": "",
		"Bearer a\nb": "", "Bearerabc": "", "Bearer\u00a0abc": "", "Token abc": "",
	} {
		token, err := bearerToken(http.Header{"Authorization": {value}})
		g.Expect(token).To(Equal(want), "%q", value)
		g.Expect(err != nil).To(Equal(want == ""), "%q", value)
	}
	_, err := bearerToken(http.Header{"Authorization": {"Bearer abc", "Bearer abc"}})
	g.Expect(err).To(MatchError(errMalformedKey), "a proxy may have checked the other header")
}
