package httpapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// signAsZitadel returns a call with that body, signed now with a key for the entry of that name.
func (w *codesWorld) signAsZitadel(body, name, key string) request {
	at := strconv.FormatInt(w.clock.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(at + "." + body))
	r := signedRequests()["zitadel"].withHeader("ZITADEL-Signature", "t="+at+",v1="+hex.EncodeToString(mac.Sum(nil)))
	r.body, r.target = body, pathDeliver+"?format=zitadel&key="+name
	return r
}

// signAsSupabase returns a call with that body, signed now.
func (w *codesWorld) signAsSupabase(body string) request {
	w.t.Helper()
	signer, err := standardwebhooks.NewWebhook(strings.TrimPrefix(supabaseSecret, "v1,"))
	w.g.Expect(err).NotTo(HaveOccurred())
	signature, err := signer.Sign(supabaseID, w.clock.Now(), []byte(body))
	w.g.Expect(err).NotTo(HaveOccurred())
	r := signedRequests()["supabase"].withHeader("webhook-signature", signature).
		withHeader("webhook-timestamp", strconv.FormatInt(w.clock.Now().Unix(), 10))
	r.body = body
	return r
}

// TestDeliver_bodies reads what the servers send for other occasions, and for users whose id cannot be a subject.
func TestDeliver_bodies(t *testing.T) {
	zitadel := func(args string) string {
		return `{"contextInfo":{"recipientPhoneNumber":"+4915123456789"},"args":{` + args + `}}`
	}
	for name, row := range map[string]struct {
		zitadel, supabase string
		refused           verification.ErrorCode
	}{
		"a new number":       {zitadel: zitadel(`"code":"482915"`)},
		"no user":            {zitadel: zitadel(`"oTP":"482915","userID":""`)},
		"a long user":        {zitadel: zitadel(`"oTP":"482915","userID":"` + strings.Repeat("u", maxSubject+1) + `"`)},
		"a code as a number": {zitadel: zitadel(`"code":482915,"oTP":"482915"`), refused: codeInvalidType},
		"no number for SMS":  {supabase: `{"user":{"id":"","phone":"4915123456789"},"sms":{"otp":"482915"}}`},
	} {
		w := newSignedWorld(t)
		r := w.signAsZitadel(row.zitadel, "zitadel", zitadelKey)
		if row.supabase != "" {
			r = w.signAsSupabase(row.supabase)
		}
		a := w.do(r)
		if row.refused != "" {
			expectRefusal(w.g, a, 400, row.refused, "code")
			continue
		}
		w.g.Expect(a.status).To(Equal(http.StatusAccepted), "%s: %s", name, a.body)
		w.g.Expect(w.sender.ListGiven()).To(Equal([]string{"482915"}), name)
		w.g.Expect(w.sender.ListSent()).To(HaveExactElements(HaveField("Phone.E164()", "+4915123456789")), name)
	}
}

// TestDeliver_signers: an entry that is expired, for tests or without its secret, and one that is an API key.
func TestDeliver_signers(t *testing.T) {
	w := newSignedWorld(t)
	test := strings.Replace(zitadelBody, `"recipientPhoneNumber":"+4915123456789"`, `"recipientPhoneNumber":"+12025550110"`, 1)
	w.changeSettings(func(s *settings.Settings) {
		s.Keys = signingKeys(map[string]string{"expired": zitadelKey + "1", "test": zitadelKey + "2", "missing": "", "backend": keyCodes})
	})
	for name, row := range map[string]struct {
		body, key string
		status    int
		code      verification.ErrorCode
	}{
		"expired": {zitadelBody, zitadelKey + "1", 401, codeExpiredKey},
		"test":    {zitadelBody, zitadelKey + "2", 400, verification.CodeNoTestNumber},
		"missing": {zitadelBody, zitadelKey, 503, codeKeysUnavailable},
		"backend": {zitadelBody, keyCodes, 401, codeInvalidSignature},
	} {
		a := w.do(w.signAsZitadel(row.body, name, row.key))
		w.g.Expect([]any{a.status, a.errorField("code")}).To(Equal([]any{row.status, string(row.code)}), name)
		if name != "backend" {
			w.g.Expect(w.logText()).To(ContainSubstring(`"keyName":"`+name+`"`), "the entry that fails")
		}
	}
	w.g.Expect(testutil.ToFloat64(w.api.metrics.requests.WithLabelValues(pathDeliver+strangersSuffix, "POST", "503"))).To(Equal(1.0))
	a := w.do(w.signAsZitadel(test, "test", zitadelKey+"2"))
	w.g.Expect([]any{a.status, a.fields["test"]}).To(Equal([]any{202, true}))
	w.g.Expect(w.sender.ListSent()).To(BeEmpty())

	bearer := w.signAsZitadel(zitadelBody, "backend", zitadelKey).withHeader("Authorization", "Bearer "+keyCodes)
	refused := w.do(bearer)
	expectRefusal(w.g, refused, 401, codeInvalidSignature, "")
	w.g.Expect(refused.joinedHeader("WWW-Authenticate")).To(Equal(`Signature realm="phoneproof"`), "an API key is not asked for")
}

// TestDeliver_signedRoom refuses a body that is too long, whatever its length was said to be, and one that has no room.
func TestDeliver_signedRoom(t *testing.T) {
	w := newSignedWorld(t)
	chunked := signedRequests()["zitadel"]
	chunked.stream = strings.NewReader(strings.Repeat(" ", maxSignedBytes+1))
	expectRefusal(w.g, w.do(chunked), 413, codeBodyTooLarge, "")

	large := signedRequests()["zitadel"]
	large.body += strings.Repeat(" ", 32<<10)
	for _, size := range []int{3 << 20, 32 << 10} {
		for full := false; !full; {
			content := strings.NewReader(strings.Repeat(" ", size))
			_, release, err := w.hook.ReadUnsigned(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/other", content))
			defer release()
			full = err != nil
		}
	}
	a := w.do(large)
	expectRefusal(w.g, a, 503, verification.CodeCodesBusy, "")
	w.g.Expect(a.joinedHeader("Retry-After")).To(Equal("2"))
	w.g.Expect(testutil.ToFloat64(w.api.metrics.requests.WithLabelValues(pathDeliver+strangersSuffix, "POST", "503"))).To(Equal(1.0))
	w.g.Expect(w.logText()).NotTo(ContainSubstring(`"level":"ERROR"`), "strangers can cause it")
	w.g.Expect(w.do(signedRequests()["zitadel"]).status).To(Equal(202), "ordinary ones need no room")

	before := w.store.calls.Load()
	for name, r := range map[string]request{
		"no signature": large.withHeader("ZITADEL-Signature"),
		"too old":      large.withHeader("ZITADEL-Signature", "t=1772358899,v1="+zitadelSignature),
		"no entry":     {method: large.method, target: pathDeliver + "?format=zitadel&key=none", body: large.body, header: large.header, invalid: true},
	} {
		a := w.do(r)
		w.g.Expect(a.errorField("code")).To(Equal("invalid_signature"), "%s: refused before there is a need for room", name)
	}
	w.g.Expect(w.store.calls.Load()).To(Equal(before))
}

// TestDeliver_supabaseRefusals: Supabase reads a refusal from a 200, and sees an error of the server as one.
func TestDeliver_supabaseRefusals(t *testing.T) {
	w := newSignedWorld(t)
	w.g.Expect(w.do(signedRequests()["supabase"]).status).To(Equal(202))
	limited := w.do(w.signAsSupabase(strings.Replace(supabaseBody, "561166", "561167", 1)))
	w.g.Expect([]any{limited.status, limited.fields["error"]}).To(Equal([]any{200, map[string]any{
		"http_code": 429.0, "message": "No more codes are sent to this phone number for now. Wait for the time in Retry-After.",
	}}))
	w.g.Expect(limited.joinedHeader("Retry-After")).To(Equal("60"), "without it Supabase does not repeat")
	fail := func(context.Context) error { return errors.New("a bug") }
	w.store.before.Store(&fail)
	expectRefusal(w.g, w.do(signedRequests()["supabase"]), 500, codeInternal, "")
}

// TestDeliver_replays floods with one signed call: other users get their codes.
func TestDeliver_replays(t *testing.T) {
	w := newSignedWorld(t)
	for range int(deliveryRate.Burst) {
		w.g.Expect(w.do(signedRequests()["zitadel"]).status).To(Equal(202))
	}
	before := w.store.calls.Load()
	expectRefusal(w.g, w.do(signedRequests()["zitadel"]), 429, verification.CodeCodesLimited, "phoneNumber")
	w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store must not be called")
	w.changeSettings(func(s *settings.Settings) {
		s.Keys = keysOf(settings.Key{Name: "staging", Hash: sha256.Sum256([]byte(keyTest)), Scopes: settings.ScopeDeliver, Test: true})
	})
	test := deliverFor(keyTest, numberOf(verification.TestVerifiedAtOnce), "1234", "")
	for range int(keyDeliveryRate.Burst) {
		w.g.Expect(w.do(test).status).To(Equal(202), "a test key has no limit of numbers")
	}
	expectRefusal(w.g, w.do(test), 429, verification.CodeRateLimited, "")
	w = newSignedWorld(t)
	other := strings.ReplaceAll(zitadelBody, "+4915123456789", w.newNumber(2))
	w.g.Expect(w.do(w.signAsZitadel(other, "zitadel", zitadelKey)).status).To(Equal(202))
}

// signingKeys returns the keys of a project with these signing secrets, by name. The entry backend has an API key in its place, an empty
// secret is missing, and the entries expired and test are what they are called.
func signingKeys(secrets map[string]string) settings.Keys {
	project := &verifyv1.VerificationProject{}
	for name := range secrets {
		ref := verifyv1.SecretKeyRef{Name: "login", Key: name}
		entry := verifyv1.APIKey{Name: name, SigningSecretRef: &ref, Scopes: []verifyv1.Scope{verifyv1.ScopeDeliver}}
		switch name {
		case "backend":
			entry.SecretRef, entry.SigningSecretRef = ref, nil
		case "expired":
			entry.ExpiresAt = &metav1.Time{Time: time.Unix(1, 0)}
		case "test":
			entry.Mode = verifyv1.KeyModeTest
		}
		project.Spec.APIKeys = append(project.Spec.APIKeys, entry)
	}
	read := settings.InspectSecrets(project, func(ref verifyv1.SecretKeyRef) ([]byte, bool) {
		return []byte(secrets[ref.Key]), secrets[ref.Key] != ""
	}, time.Now())
	return settings.FromProject(project, read).Keys
}
