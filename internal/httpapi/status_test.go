package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestStatus_ofEachPhase(t *testing.T) {
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Now())
	h := newHarness(t, func(s *setup) { s.options.Clock = fake })
	number := h.newNumber(1)
	pending := h.do(initFor(keyAll, number))
	a := h.do(statusRequest(keyStatus, "id="+pending.stringField("requestId")))
	g.Expect(a.fields).To(Equal(map[string]any{"status": "PENDING", "phoneNumber": number, "expiresAt": pending.stringField("expiresAt")}))

	verified := h.do(initFor(keyAll, number))
	h.verifyRequest(verified.stringField("requestId"), number, verification.AssuranceUsual)
	a = h.do(statusRequest(keyStatus, "id="+verified.stringField("requestId")))
	g.Expect(a.fields).To(And(HaveLen(5), HaveKeyWithValue("status", "VERIFIED"), HaveKeyWithValue("actualPhoneNumber", number), HaveKey("verifiedAt")))

	shared := h.do(initFor(keyAll, number))
	h.verifyRequest(shared.stringField("requestId"), number, verification.AssuranceSharedContact)
	a = h.do(statusRequest(keyStatus, "id="+shared.stringField("requestId")))
	g.Expect(a.fields).To(And(HaveLen(6), HaveKeyWithValue("assurance", "shared_contact")))

	fake.Step(10*time.Minute + verification.ExpiryGrace - time.Millisecond)
	g.Expect(h.do(statusRequest(keyStatus, "id="+pending.stringField("requestId"))).stringField("status")).To(Equal("PENDING"))
	fake.Step(time.Millisecond)
	a = h.do(statusRequest(keyStatus, "id="+pending.stringField("requestId")))
	g.Expect(a.fields).To(And(HaveLen(3), HaveKeyWithValue("status", "EXPIRED")))
	g.Expect(h.do(statusRequest(keyStatus, "id="+verified.stringField("requestId"))).stringField("status")).To(Equal("VERIFIED"))
}

// TestStatus_hint: the latest hint is answered while a request is PENDING and after it EXPIRED, and not once it is verified.
func TestStatus_hint(t *testing.T) {
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Now())
	h := newHarness(t, func(s *setup) { s.options.Clock = fake })
	number, other := h.newNumber(1), h.newNumber(2)
	receive := func(text, sender string) {
		t.Helper()
		from, err := phone.FromE164(sender)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = h.service.Receive(t.Context(), verification.Message{
			Evidence: verification.Evidence{Method: verification.WhatsApp, Sender: from, SentAt: fake.Now()}, Text: text,
		}, verification.NewEventKinds(verification.EventSuccess))
		g.Expect(err).NotTo(HaveOccurred())
	}
	begin := func() (id, text string) {
		a := h.do(initFor(keyAll, number))
		return a.stringField("requestId"), a.stringField("expectedText")
	}
	statusOf := func(id string) map[string]any { return h.do(statusRequest(keyStatus, "id="+id)).fields }

	id, text := begin()
	g.Expect(statusOf(id)).NotTo(HaveKey("hint"))
	receive(text, other)
	g.Expect(statusOf(id)).To(And(HaveLen(4), HaveKeyWithValue("status", "PENDING"), HaveKeyWithValue("hint", "OTHER_NUMBER")))
	receive(text, number)
	g.Expect(statusOf(id)).To(And(HaveKeyWithValue("status", "VERIFIED"), Not(HaveKey("hint"))))

	id, text = begin()
	late, lateText := begin()
	receive(text, other)
	fake.Step(10*time.Minute + verification.ExpiryGrace)
	receive(lateText, number)
	g.Expect(statusOf(id)).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "OTHER_NUMBER")))
	g.Expect(statusOf(late)).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "TOO_LATE")))
}

// verifyRequest moves a request to VERIFIED, as a message of its user does.
func (h *harness) verifyRequest(id, number string, assurance verification.Assurance) {
	sender, err := phone.FromE164(number)
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = h.store.Update(context.Background(), id, func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: sender, SentAt: now, Assurance: assurance}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// Status answers a pasted number in the form that a client can compare and call.
func TestStatus_answersAPastedNumberAsE164(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	for _, pasted := range []string{"\u202a+49\u00a01512\u20113456789\u202c", "\u200f٤٩ ١٥١٢ ٣٤٥٦٧٨٩", "＋４９　１５１２　３４５６７８９", "49 (1512) 345-67.89"} {
		id := h.do(initFor(keyAll, pasted)).stringField("requestId")
		g.Expect(h.do(statusRequest(keyStatus, "id="+id)).stringField("phoneNumber")).To(Equal("+4915123456789"), "%q", pasted)
	}
}

func TestStatus_badQueries(t *testing.T) {
	q := func(query string) request { return statusRequest(keyAll, query) }
	id := func(id string) request { return q("id=" + url.QueryEscape(id)) }
	absent := verification.CodeNotFound
	noQuery := q("")
	noQuery.target = pathStatus
	valid := "vr" + strings.Repeat("a", 24)
	expectEach(t, []badRequest{
		{"no query", noQuery, 400, codeMissingParameter, "id"},
		{"empty query", q(""), 400, codeMissingParameter, "id"},
		{"empty", q("id="), 400, codeMissingParameter, "id"},
		{"no value", q("id"), 400, codeMissingParameter, "id"},
		{"other case", q("ID=" + valid), 400, codeMissingParameter, "id"},
		{"repeated", q("id=" + valid + "&id=" + valid), 400, codeInvalidParameter, "id"},
		{"repeated by escape", q("id=" + valid + "&%69d=" + valid), 400, codeInvalidParameter, "id"},
		{"repeated, empty first", q("id=&id=" + valid), 400, codeInvalidParameter, "id"},
		{"bad escape", q("id=%zz"), 400, codeInvalidParameter, ""},
		{"bad escape elsewhere", q("id=" + valid + "&x=%"), 400, codeInvalidParameter, ""},
		{"absent", q("id=" + valid), 404, absent, ""},
		{"unknown parameter", q("x=1&&id=" + valid + "&"), 404, absent, ""},
		{"semicolon", q("id=" + valid + ";x=1"), 404, absent, ""},
		{"10 kB", q("id=" + strings.Repeat("a", 10_000)), 404, absent, ""},
		{"upper case", id(strings.ToUpper(valid)), 404, absent, ""},
		{"SQL", id("' OR 1=1 --"), 404, absent, ""},
		{"CEL", id("has(self.x) || true"), 404, absent, ""},
		{"label selector", id("a in (b,c)"), 404, absent, ""},
		{"path", id("../../secrets/x"), 404, absent, ""},
		{"NUL", id(valid + "\x00"), 404, absent, ""},
		{"line feed", id(valid + "\n"), 404, absent, ""},
		{"wait without unit", q("id=" + valid + "&wait=20"), 400, codeInvalidParameter, "wait"},
		{"wait too long", q("id=" + valid + "&wait=31s"), 400, codeInvalidParameter, "wait"},
		{"wait far too long", q("id=" + valid + "&wait=99999999999999999999s"), 400, codeInvalidParameter, "wait"},
		{"negative wait", q("id=" + valid + "&wait=-1s"), 400, codeInvalidParameter, "wait"},
		{"signed wait", q("id=" + valid + "&wait=%2B1s"), 400, codeInvalidParameter, "wait"},
		{"wait in minutes", q("id=" + valid + "&wait=1m"), 400, codeInvalidParameter, "wait"},
		{"empty wait", q("id=" + valid + "&wait="), 400, codeInvalidParameter, "wait"},
		{"repeated wait", q("id=" + valid + "&wait=1s&wait=1s"), 400, codeInvalidParameter, "wait"},
		{"wait for an absent request", q("id=" + valid + "&wait=30s"), 404, absent, ""},
		{"wait for an impossible id", q("id=x&wait=30s"), 404, absent, ""},
		{"hint in lower case", q("id=" + valid + "&hint=other_number"), 400, codeInvalidParameter, "hint"},
		{"hint with a line feed", q("id=" + valid + "&wait=1s&hint=A%0A"), 400, codeInvalidParameter, "hint"},
		{"hint that is too long", q("id=" + valid + "&hint=" + strings.Repeat("A", 65)), 400, codeInvalidParameter, "hint"},
		{"repeated hint", q("id=" + valid + "&hint=&hint="), 400, codeInvalidParameter, "hint"},
		{"unknown hint", q("id=" + valid + "&wait=1s&hint=OF_A_LATER_VERSION"), 404, absent, ""},
		{"no hint", q("id=" + valid + "&wait=1s&hint="), 404, absent, ""},
		{"no wait", q("id=" + valid + "&wait=0s"), 404, absent, ""},
	})
}

// A request of another project in the same backend is answered like one that does not exist. Times are not compared.
func TestStatus_foreignAndAbsentLookAlike(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	theirs := h.backend.Open("shop/other")
	other := verification.NewService(verification.NewCodeSpace("shop/other"), theirs)
	number, err := phone.Parse(h.newNumber(1))
	g.Expect(err).NotTo(HaveOccurred())
	foreign, err := other.Initiate(t.Context(), verification.Initiation{Phone: number, Method: verification.WhatsApp, TTL: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = other.Status(t.Context(), foreign.Request.ID)
	g.Expect(err).NotTo(HaveOccurred(), "the other project must find its request")
	for _, query := range []string{"id=%s", "id=%s&wait=1s"} {
		absent := h.readRawStatus(g, fmt.Sprintf(query, "vr"+strings.Repeat("a", 24)))
		g.Expect(absent).To(HavePrefix("HTTP/1.1 404 Not Found\r\n"))
		for _, id := range []string{foreign.Request.ID, "nonsense"} {
			g.Expect(h.readRawStatus(g, fmt.Sprintf(query, id))).To(Equal(absent))
		}
	}

	// The comparison does notice a request that is found.
	absent := h.readRawStatus(g, "id=vr"+strings.Repeat("a", 24))
	own := h.do(initFor(keyAll, h.newNumber(2))).stringField("requestId")
	g.Expect(h.readRawStatus(g, "id="+own)).NotTo(Equal(absent))
}

// readRawStatus returns the whole answer of status in bytes, with its request id and date masked.
func (h *harness) readRawStatus(g Gomega, query string) string {
	_, from := h.dial(g, "GET /api/verify/status?"+query+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer "+keyAll+"\r\n\r\n")
	whole, err := io.ReadAll(from)
	g.Expect(err).NotTo(HaveOccurred())
	masked := regexp.MustCompile(`(?m)^(X-Request-Id|Date): .*$`)
	g.Expect(masked.FindAll(whole, -1)).To(HaveLen(2))
	return masked.ReplaceAllString(string(whole), "$1")
}

func TestStatus_storeUnavailable(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	id := h.do(initFor(keyAll, h.newNumber(1))).stringField("requestId")
	h.backend.Fail(errors.New("dial tcp 10.0.0.7:5432: connection refused"))
	for _, r := range []request{statusRequest(keyAll, "id="+id), statusRequest(keyAll, "id="+id+"&wait=30s"), initFor(keyAll, h.newNumber(1))} {
		a := h.do(r)
		expectRefusal(g, a, 503, verification.CodeStoreUnavailable, "")
		g.Expect(a.joinedHeader("Retry-After")).To(Equal("2"))
		g.Expect(string(a.body)).NotTo(ContainSubstring("10.0.0.7"))
	}
	g.Expect(h.logText()).To(ContainSubstring("connection refused"), "the cause must be logged")
	h.backend.Fail(nil)
	g.Expect(h.do(statusRequest(keyAll, "id="+id)).status).To(Equal(200))
}

func TestStatus_unknownError(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	fail := func(context.Context) error { return errors.New("a fault of the adapter") }
	h.store.before.Store(&fail)
	for _, r := range []request{initFor(keyAll, h.newNumber(1)), statusRequest(keyAll, "id=vr"+strings.Repeat("a", 24))} {
		a := h.do(r)
		expectRefusal(g, a, 500, codeInternal, "")
		g.Expect(string(a.body)).NotTo(ContainSubstring("adapter"))
	}
	g.Expect(h.awaitLogLines(g, 2)[1]).To(And(HaveKeyWithValue("level", "ERROR"), HaveKeyWithValue("err", ContainSubstring("a fault of the adapter"))))
	g.Expect(h.gatherMetrics()).To(ContainSubstring(`phoneproof_http_inits_total{result="internal"} 1`))
}

func TestStatus_panic(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	explode := func(context.Context) error { panic("the fault itself") }
	h.store.before.Store(&explode)
	a := h.do(statusRequest(keyAll, "id=vr"+strings.Repeat("a", 24)).withHeader("X-Request-Id", "the-one"))
	expectRefusal(g, a, 500, codeInternal, "")
	g.Expect(string(a.body)).NotTo(ContainSubstring("fault itself"))
	line := h.awaitLogLines(g, 1)[0]
	g.Expect(line["err"]).To(And(ContainSubstring("the fault itself"), ContainSubstring("status_test.go")))
	g.Expect(line["xRequestId"]).To(Equal("the-one"))
	g.Expect(h.gatherMetrics()).To(ContainSubstring("phoneproof_http_panics_total 1\n"))
	h.store.before.Store(nil)
	g.Expect(h.do(statusRequest(keyAll, "id=vr"+strings.Repeat("a", 24))).status).To(Equal(404))
}

// awaitLogLines waits until n requests are logged, for a line is written after its answer, and returns the lines.
func (h *harness) awaitLogLines(g Gomega, n int) []map[string]any {
	g.Eventually(h.parseLog).Should(HaveLen(n))
	return h.parseLog()
}
