package whatsapp

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestHook_handshake(t *testing.T) {
	f := newFixture(t)
	token := VerifyToken(project, []byte(appSecret))
	good := url.Values{"hub.mode": {"subscribe"}, "hub.challenge": {"1158201444"}, "hub.verify_token": {token}}
	with := func(name string, values ...string) url.Values {
		changed := url.Values{}
		maps.Copy(changed, good)
		changed[name] = values
		return changed
	}
	for name, c := range map[string]struct {
		query  url.Values
		status int
	}{
		"good":             {good, 200},
		"markup":           {with("hub.challenge", "<script>alert(1)</script>"), 200},
		"no mode":          {with("hub.mode"), 403},
		"unsubscribe":      {with("hub.mode", "unsubscribe"), 403},
		"two modes":        {with("hub.mode", "subscribe", "subscribe"), 403},
		"no token":         {with("hub.verify_token"), 403},
		"empty token":      {with("hub.verify_token", ""), 403},
		"wrong token":      {with("hub.verify_token", token[:63]+"x"), 403},
		"upper case token": {with("hub.verify_token", strings.ToUpper(token)), 403},
		"two tokens":       {with("hub.verify_token", token, token), 403},
		"the app secret":   {with("hub.verify_token", appSecret), 403},
		"other project's":  {with("hub.verify_token", VerifyToken("books/other", []byte(appSecret))), 403},
		"other secret's":   {with("hub.verify_token", VerifyToken(project, []byte("other"))), 403},
		"no challenge":     {with("hub.challenge"), 403},
		"256 bytes":        {with("hub.challenge", strings.Repeat("1", 256)), 200},
		"257 bytes":        {with("hub.challenge", strings.Repeat("1", 257)), 403},
		"1 MB challenge":   {with("hub.challenge", strings.Repeat("1", 1<<20)), 403},
		"nothing":          {nil, 403},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := f.serve(f.hook, httptest.NewRequest(http.MethodGet, Path+"?"+c.query.Encode(), nil))
			g.Expect(w.Code).To(Equal(c.status))
			if c.status == http.StatusOK {
				g.Expect(w.Body.String()).To(Equal(c.query.Get("hub.challenge")), "as it is")
				g.Expect(w.Header().Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))
				g.Expect(w.Header().Get("X-Content-Type-Options")).To(Equal("nosniff"))
			} else {
				g.Expect(w.Body.Len()).To(BeZero())
			}
		})
	}
	w := f.serve(f.hook, httptest.NewRequest(http.MethodGet, Path+"?hub.mode=%zz&"+good.Encode(), nil))
	f.Expect(w.Code).To(Equal(http.StatusForbidden), "a query that cannot be read")
}

// TestHook_signatures refuses what Meta did not sign, and stores nothing of it.
func TestHook_signatures(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	body := golden(t, "in/text_escaped")
	right := sign(body, appSecret)
	old := hmac.New(sha1.New, []byte(appSecret))
	old.Write(body)
	var decoded any
	f.Expect(json.Unmarshal(body, &decoded)).To(Succeed())

	for name, signatures := range map[string][]string{
		"none":                    nil,
		"empty":                   {""},
		"prefix only":             {"sha256="},
		"odd hex":                 {right[:len(right)-1]},
		"one digit more":          {right + "0"},
		"no hex":                  {right[:len(right)-1] + "g"},
		"upper hex":               {"sha256=" + strings.ToUpper(right[7:])},
		"upper prefix":            {"SHA256=" + right[7:]},
		"no prefix":               {right[7:]},
		"space":                   {" " + right},
		"two, both right":         {right, right},
		"two in one":              {right + ", " + right},
		"sha1":                    {"sha1=" + hex.EncodeToString(old.Sum(nil))},
		"sha1 padded":             {"sha256=" + hex.EncodeToString(old.Sum(nil)) + strings.Repeat("0", 24)},
		"empty secret":            {sign(body, "")},
		"other app's secret":      {sign(body, "b1b2c3")},
		"the verify token":        {sign(body, VerifyToken(project, []byte(appSecret)))},
		"another body's":          {sign(golden(t, "in/text"), appSecret)},
		"the re-serialised body":  {sign(encode(decoded), appSecret)},
		"one bit":                 {right[:7] + flipped(right[7:])},
		"zeros":                   {"sha256=" + strings.Repeat("0", 64)},
		"a secret with a newline": {sign(body, appSecret+"\n")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := f.postTo(f.hook, body, signatures...)
			g.Expect(w.Code).To(Equal(http.StatusForbidden))
			g.Expect(w.Body.Len()).To(BeZero())
		})
	}
	t.Run("X-Hub-Signature only", func(t *testing.T) {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body))
		r.Header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(old.Sum(nil)))
		NewWithT(t).Expect(f.serve(f.hook, r).Code).To(Equal(http.StatusForbidden))
	})
	t.Run("right signature, one byte more", func(t *testing.T) {
		NewWithT(t).Expect(f.postTo(f.hook, append(bytes.Clone(body), ' '), right).Code).To(Equal(http.StatusForbidden))
	})
	f.Expect(f.state(made.Request.ID).Version).To(Equal(made.Request.Version), "the store is as it was")
	f.Expect(f.outcomes()).To(BeEmpty(), "nothing was parsed")
	f.Expect(f.postTo(f.hook, body, right).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Verified))
}

// TestHook_countsUnsignedPostsApart, because a scanner makes those, and none of them is evidence about the app secret.
func TestHook_countsUnsignedPostsApart(t *testing.T) {
	f := newFixture(t)
	body := golden(t, "in/text_escaped")
	right := sign(body, appSecret)
	for _, signatures := range [][]string{nil, {""}, {"sha1=00"}, {right, right}} {
		f.postTo(f.hook, body, signatures...)
	}
	f.postTo(f.hook, body, sign(body, "b1b2c3"))
	counted := func(result string) float64 {
		return testutil.ToFloat64(f.hook.metrics.Requests.WithLabelValues(result))
	}
	f.Expect(counted(messenger.RequestUnsigned)).To(Equal(4.0))
	f.Expect(counted(messenger.RequestUnauthorized)).To(Equal(1.0))
}

func flipped(digits string) string {
	mac, _ := hex.DecodeString(digits)
	mac[0] ^= 1
	return hex.EncodeToString(mac)
}

func TestHook_withoutSecretOrAccount(t *testing.T) {
	f := newFixture(t)
	body := golden(t, "in/text")
	f.settings.WhatsApp.AppSecret = settings.Secret{}
	for _, signature := range []string{sign(body, ""), sign(body, appSecret), ""} {
		w := f.postTo(f.hook, body, signature)
		f.Expect(w.Code).To(Equal(http.StatusServiceUnavailable), "Meta keeps the messages until the secret is back")
		f.Expect(w.Header().Get("Retry-After")).NotTo(BeEmpty())
	}
	query := url.Values{"hub.mode": {"subscribe"}, "hub.challenge": {"1"}, "hub.verify_token": {VerifyToken(project, nil)}}
	f.Expect(f.serve(f.hook, httptest.NewRequest(http.MethodGet, Path+"?"+query.Encode(), nil)).Code).To(Equal(http.StatusForbidden))
	f.settings.WhatsApp = nil
	f.Expect(f.postTo(f.hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusNotFound))
}

// TestHook_simulatedAccountWithoutSimulator: its secrets are made up, so a caller who guesses one could speak for any number.
func TestHook_simulatedAccountWithoutSimulator(t *testing.T) {
	f := newFixture(t)
	body := golden(t, "in/text")
	f.settings.WhatsApp.Simulated = true
	f.Expect(f.postTo(f.hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusNotFound))
	f.settings.WhatsApp.Simulated = false
	f.Expect(f.postTo(f.hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusOK))
}

func TestHook_methods(t *testing.T) {
	f := newFixture(t)
	for _, method := range []string{"HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X"} {
		w := f.serve(f.hook, httptest.NewRequest(method, Path, nil))
		f.Expect(w.Code).To(Equal(http.StatusMethodNotAllowed), method)
		f.Expect(w.Header().Get("Allow")).To(Equal("GET, POST"))
	}
}

// rotated returns app secrets as they are after one was replaced a minute ago. It replaces an access token, which may have any form.
func rotated(t *testing.T, before, after string) settings.Secret {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	write := func(name, value string) {
		g.Expect(os.MkdirAll(filepath.Join(dir, "shop"), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, "shop", name), []byte(value), 0o600)).To(Succeed())
	}
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	p := &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: "books", Name: "shop"},
		Spec: verifyv1.VerificationProjectSpec{WhatsApp: &verifyv1.WhatsApp{
			PhoneNumber: "+" + businessNumber, PhoneNumberID: numberID, AccessTokenSecretRef: ref("token"), AppSecretRef: ref("app"),
		}},
	}
	p.Default()
	write("app", "0123456789abcdef0123456789abcdef")
	write("token", before)
	files := settings.NewSecretFiles(dir)
	first := files.Read(p, settings.Secrets{}, started)
	write("token", after)
	second := settings.FromProject(p, files.Read(p, first, started.Add(time.Minute))).WhatsApp.AccessToken
	g.Expect(second.Accepted(started.Add(2 * time.Minute))).To(HaveLen(2))
	return second
}

// TestHook_rotation replaces the app secret: both values count until the overlap is over.
func TestHook_rotation(t *testing.T) {
	f := newFixture(t)
	f.settings.WhatsApp.AppSecret = rotated(t, appSecret, "d4e5f6canarynew")
	body := golden(t, "in/status")
	shake := func(secret string) int {
		query := url.Values{"hub.mode": {"subscribe"}, "hub.challenge": {"1"}, "hub.verify_token": {VerifyToken(project, []byte(secret))}}
		return f.serve(f.hook, httptest.NewRequest(http.MethodGet, Path+"?"+query.Encode(), nil)).Code
	}
	f.clock.SetTime(started.Add(10 * time.Minute))
	for _, secret := range []string{appSecret, "d4e5f6canarynew"} {
		f.Expect(f.postTo(f.hook, body, sign(body, secret)).Code).To(Equal(http.StatusOK))
		f.Expect(shake(secret)).To(Equal(http.StatusOK))
	}
	f.clock.SetTime(started.Add(12 * time.Minute))
	f.Expect(f.postTo(f.hook, body, sign(body, appSecret)).Code).To(Equal(http.StatusForbidden))
	f.Expect(shake(appSecret)).To(Equal(http.StatusForbidden))
	f.Expect(f.postTo(f.hook, body, sign(body, "d4e5f6canarynew")).Code).To(Equal(http.StatusOK))
}

// TestHook_bodies has bodies of every size, announced and not.
func TestHook_bodies(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.hook)
	defer server.Close()
	for _, size := range []int{0, 1, freeBodyBytes - 1, freeBodyBytes, freeBodyBytes + 1, 1 << 20, maxBodyBytes - 1, maxBodyBytes} {
		body := bytes.Repeat([]byte(" "), size)
		for _, announced := range []bool{true, false} {
			f.Expect(postReader(t, server.URL, bytes.NewReader(body), announced, sign(body, appSecret))).
				To(Equal(http.StatusOK), "%d bytes", size)
		}
	}
	large := bytes.Repeat([]byte(" "), maxBodyBytes+1)
	f.Expect(postReader(t, server.URL, bytes.NewReader(large), true, sign(large, appSecret))).To(Equal(http.StatusRequestEntityTooLarge))
	f.Expect(postReader(t, server.URL, bytes.NewReader(large), false, sign(large, appSecret))).To(Equal(http.StatusRequestEntityTooLarge))
	f.Eventually(f.reserved).Should(BeZero(), "all is released")
	complete := f.hook.bodies.addBody(httptest.NewRecorder())
	f.Expect(complete.reserveBytes(sharedBodyBytes)).To(BeTrue())
	complete.leaveIncomplete() // it is being worked on, and makes no room
	body := bytes.Repeat([]byte(" "), freeBodyBytes+1)
	f.Expect(postReader(t, server.URL, bytes.NewReader(body), true, sign(body, appSecret))).To(Equal(http.StatusServiceUnavailable))
	_, release, err := f.hook.ReadUnsigned(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/other", bytes.NewReader(body)))
	release()
	f.Expect(err).To(MatchError(verification.ErrNoRoom), "others share the room")
	small := golden(t, "in/status")
	f.Expect(postReader(t, server.URL, bytes.NewReader(small), true, sign(small, appSecret))).To(Equal(http.StatusOK), "ordinary ones need no room")
}

func postReader(t *testing.T, to string, body io.Reader, announced bool, signature string) int {
	t.Helper()
	if !announced {
		body = struct{ io.Reader }{body}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to+Path, body)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	r.Header.Set(signatureHeader, signature)
	response, err := http.DefaultClient.Do(r)
	if err != nil { // the server hung up on what was too large
		return http.StatusRequestEntityTooLarge
	}
	defer response.Body.Close()
	return response.StatusCode
}

// endless is a body that never ends.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return len(p), nil
}

func (e *endless) Close() error { return nil }

func TestHook_endlessBody(t *testing.T) {
	f := newFixture(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body := &endless{}
	r := httptest.NewRequest(http.MethodPost, Path, nil)
	r.Body, r.ContentLength = body, -1
	r.Header.Set(signatureHeader, sign(nil, appSecret))
	f.Expect(f.serve(f.hook, r).Code).To(Equal(http.StatusRequestEntityTooLarge))
	runtime.ReadMemStats(&after)
	f.Expect(body.read).To(BeNumerically("<", 4*maxBodyBytes))
	f.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 16<<20))

	unsigned := &endless{}
	r = httptest.NewRequest(http.MethodPost, Path, nil)
	r.Body, r.ContentLength = unsigned, -1
	f.Expect(f.serve(f.hook, r).Code).To(Equal(http.StatusForbidden))
	f.Expect(unsigned.read).To(BeZero(), "without a signature nothing is read")
}

func TestHook_bodyThatBreaks(t *testing.T) {
	f := newFixture(t)
	for _, announced := range []int64{-1, 100, freeBodyBytes + 100} {
		r := httptest.NewRequest(http.MethodPost, Path, io.MultiReader(strings.NewReader("{"), brokenReader{}))
		r.ContentLength = announced
		r.Header.Set(signatureHeader, sign(nil, appSecret))
		f.Expect(f.serve(f.hook, r).Code).To(Equal(http.StatusBadRequest))
	}
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader("{}"))
	r.ContentLength = 3
	r.Header.Set(signatureHeader, sign([]byte("{}"), appSecret))
	f.Expect(f.serve(f.hook, r).Code).To(Equal(http.StatusBadRequest), "shorter than announced")
	f.Expect(testutil.ToFloat64(f.hook.metrics.Requests.WithLabelValues(messenger.RequestUnread))).To(Equal(4.0))
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
