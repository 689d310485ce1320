package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func listRequest(key, query string) request {
	r := statusRequest(key, query)
	r.target = pathRequests
	if query != "" {
		r.target += "?" + query
	}
	return r
}

func readRequest(key, id string) request {
	r := statusRequest(key, "")
	r.target = pathRequests + "/" + id
	return r
}

func changeRequest(key, path, id string) request {
	r := initRequest(key, fmt.Sprintf(`{"requestId":%q}`, id))
	r.target = path
	return r
}

// requestsWorld is a project with a webhook for all events, and a clock.
type requestsWorld struct {
	*harness
	g     Gomega
	clock *clocktesting.FakeClock
	all   verification.EventKinds
	count int
}

func newRequestsWorld(t *testing.T) *requestsWorld {
	t.Helper()
	w := &requestsWorld{g: NewWithT(t), clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))}
	w.all = verification.NewEventKinds(
		verification.EventSuccess, verification.EventExpired, verification.EventDeclined, verification.EventAttention)
	w.harness = newHarness(t, func(s *setup) {
		s.options.Clock = w.clock
		s.settings.Webhook = &settings.Webhook{Events: w.all}
	})
	return w
}

// begin starts a request and returns its id and text. more are further fields of the body.
func (w *requestsWorld) begin(more string) (id, text string) {
	w.t.Helper()
	w.count++
	a := w.do(initRequest(keyInit, fmt.Sprintf(`{"phoneNumber":%q%s}`, w.newNumber(w.count), more)))
	w.g.Expect(a.status).To(Equal(http.StatusOK))
	w.clock.Step(time.Second)
	return a.stringField("requestId"), a.stringField("expectedText")
}

// send sends the text from the number of the request.
func (w *requestsWorld) send(id, text string) verification.Outcome {
	w.t.Helper()
	stored, err := w.store.Store.Read(w.t.Context(), id)
	w.g.Expect(err).NotTo(HaveOccurred())
	receipt, err := w.service.Receive(w.t.Context(), verification.Message{
		Evidence: verification.Evidence{Method: stored.Method, Sender: stored.Phone, SentAt: w.clock.Now()}, Text: text,
	}, w.all)
	w.g.Expect(err).NotTo(HaveOccurred())
	return receipt.Outcome
}

// update changes a stored request.
func (w *requestsWorld) update(id string, mutate verification.Mutation) verification.Request {
	w.t.Helper()
	r, err := w.store.Store.Update(w.t.Context(), id, mutate)
	w.g.Expect(err).NotTo(HaveOccurred())
	return r
}

// record records an attempt.
func (w *requestsWorld) record(id string, code int, next time.Time) {
	w.t.Helper()
	w.clock.Step(time.Second)
	w.update(id, func(r *verification.Request, now time.Time) error {
		a := verification.Attempt{
			Event: r.Event(), Number: r.Delivery.Attempts + 1, Redelivered: r.Redelivered, At: now, StatusCode: code,
			Delivered: code == http.StatusNoContent, Next: next,
		}
		if !a.Delivered {
			a.Reason = fmt.Sprintf("http_%d", code)
		}
		return r.RecordAttempt(a)
	})
}

// list returns the ids of a page, and its cursor.
func (w *requestsWorld) list(query string) (ids []string, next string) {
	w.t.Helper()
	a := w.do(listRequest(keyRead, query))
	w.g.Expect(a.status).To(Equal(http.StatusOK), string(a.body))
	for _, r := range a.fields["requests"].([]any) {
		ids = append(ids, r.(map[string]any)["requestId"].(string))
	}
	next, _ = a.fields["nextCursor"].(string)
	return ids, next
}

func TestList_walksNewestFirst(t *testing.T) {
	w := newRequestsWorld(t)
	ids, next := w.list("")
	w.g.Expect(ids).To(BeEmpty())
	w.g.Expect(next).To(BeEmpty())
	var made []string
	for range 5 {
		id, _ := w.begin(`,"reference":"order-7"`)
		made = append([]string{id}, made...)
	}
	query := "reference=order-7&limit=2"
	first, next := w.list(query)
	second, last := w.list(query + "&cursor=" + next)
	third, end := w.list("cursor=" + last + "&limit=3&reference=order-7") // another limit, in another order
	w.g.Expect([][]string{first, second, third}).To(Equal([][]string{made[:2], made[2:4], made[4:]}))
	w.g.Expect(end).To(BeEmpty())
	place, err := base64.RawURLEncoding.DecodeString(next)
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(string(place)).NotTo(ContainSubstring("order"), "a cursor holds a place alone")
	none, _ := w.list("reference=order-8")
	w.g.Expect(none).To(BeEmpty())
}

func TestList_filters(t *testing.T) {
	w := newRequestsWorld(t)
	pending, _ := w.begin("")
	verified, text := w.begin("")
	w.g.Expect(w.send(verified, text)).To(Equal(verification.OutcomeVerified))
	canceled, _ := w.begin("")
	w.g.Expect(w.do(changeRequest(keyInit, pathCancel, canceled)).status).To(Equal(http.StatusOK))
	for query, want := range map[string][]string{
		"status=PENDING":             {pending},
		"status=VERIFIED":            {verified},
		"status=EXPIRED":             {canceled},
		"since=2026-03-01T10:00:01Z": {canceled, verified},
		"since=" + url.QueryEscape("2026-03-01T11:00:01+01:00"): {canceled, verified},
		"since=2026-03-01T10:00:01.000001Z":                     {canceled},
		"since=2026-03-01T10:00:01Z&status=VERIFIED":            {verified},
		"": {canceled, verified, pending},
	} {
		ids, _ := w.list(query)
		w.g.Expect(ids).To(Equal(want), query)
	}
	w.clock.Step(time.Hour)
	ids, _ := w.list("status=PENDING")
	w.g.Expect(ids).To(BeEmpty(), "it is shown as EXPIRED")
}

func TestList_refusesParameters(t *testing.T) {
	w := newRequestsWorld(t)
	for range 3 {
		w.begin(`,"reference":"order-7"`)
	}
	_, cursor := w.list("limit=1")
	_, filtered := w.list("limit=1&reference=order-7")
	foreign := encodeCursor(verification.Position{CreatedAt: w.clock.Now(), ID: "vrx"}, "shop/other", verification.ListFilter{})
	madeUp := func(at time.Time, id string) string {
		return encodeCursor(verification.Position{CreatedAt: at, ID: id}, projectName, verification.ListFilter{})
	}
	flip := func(text string, at int) string { // another character there
		other := byte('A')
		if text[at] == other {
			other = 'B'
		}
		return text[:at] + string(other) + text[at+1:]
	}
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=201": "limit", "limit=-1": "limit", "limit=": "limit", "limit=1e2": "limit", "limit=%2B5": "limit", "limit=05": "limit",
		"limit=99999999999999999999": "limit", "limit=5&limit=5": "limit",
		"status=pending": "status", "status=": "status", "status=PENDING&status=VERIFIED": "status", "status=PENDING,VERIFIED": "status",
		"since=yesterday": "since", "since=1767225600": "since", "since=2026-03-01": "since", "since=2026-03-01T10:00:00Z&since=2026-03-01T10:00:00Z": "since",
		"since=2026-03-01T10:00:00." + strings.Repeat("0", 40) + "Z": "since",
		"reference=": "reference", "reference=a&reference=b": "reference", "reference=%00": "reference", "reference=a%0Ab": "reference",
		"reference=" + strings.Repeat("x", 129): "reference", "reference=%ff": "reference",
		"cursor=": "cursor", "cursor=x": "cursor", "cursor=" + cursor + "&cursor=" + cursor: "cursor", "cursor=" + cursor[:len(cursor)-2]: "cursor",
		"cursor=" + flip(cursor, 0): "cursor", "cursor=" + flip(cursor, 20): "cursor", "cursor=" + cursor + "AA": "cursor",
		"cursor=" + madeUp(w.clock.Now(), "vr\xff"): "cursor", "cursor=" + madeUp(w.clock.Now(), "vr\x00"): "cursor",
		"cursor=" + madeUp(time.UnixMicro(-1), "vrx"): "cursor", "cursor=" + madeUp(time.UnixMicro(1<<62), "vrx"): "cursor",
		"cursor=" + foreign: "cursor", "cursor=" + filtered: "cursor", "reference=order-7&cursor=" + cursor: "cursor",
		"status=PENDING&cursor=" + cursor: "cursor", "since=2026-03-01T10:00:00Z&cursor=" + cursor: "cursor",
		"cursor=" + strings.Repeat("A", 3_000): "cursor",
		"limit=%zz":                            "", "a;b=c": "",
		"phoneNumber=%2B4915100000001": "", "status=PENDING&Status=PENDING": "", "=": "",
	} {
		before := w.store.calls.Load()
		a := w.do(listRequest(keyRead, query).markInvalid())
		w.g.Expect(a.status).To(Equal(http.StatusBadRequest), query[:min(80, len(query))])
		w.g.Expect(a.errorField("code")).To(Equal(string(codeInvalidParameter)))
		w.g.Expect(a.errorField("field")).To(Equal(field), query[:min(80, len(query))])
		w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store is not asked")
	}
	for _, reference := range []string{"'; DROP TABLE phoneproof_requests; --", "order-7' OR '1'='1", "%", "order_7"} {
		ids, _ := w.list("reference=" + url.QueryEscape(reference))
		w.g.Expect(ids).To(BeEmpty(), reference)
	}
}

func TestRequest_showsAllOfIt(t *testing.T) {
	w := newRequestsWorld(t)
	id, text := w.begin(`,"reference":"order-7","metadata":{"cart":"3"},"locale":"es-MX"`)
	w.send(id, text)
	w.record(id, http.StatusInternalServerError, w.clock.Now().Add(time.Minute))
	due := w.do(readRequest(keyRead, id))
	w.g.Expect(due.fields["delivery"]).To(Equal(map[string]any{"state": "WAITING", "attempts": 1.0, "nextAttemptAt": "2026-03-01T10:01:01.000Z"}))
	w.record(id, http.StatusNoContent, time.Time{})
	got := w.do(readRequest(keyRead, id))
	w.g.Expect(got.status).To(Equal(http.StatusOK))
	w.g.Expect(got.fields).To(Equal(map[string]any{
		"requestId": id, "status": "VERIFIED", "phoneNumber": "+4915100000001", "method": "WHATSAPP", "createdAt": "2026-03-01T10:00:00.000Z",
		"expiresAt": "2026-03-01T10:10:00.000Z", "verifiedAt": "2026-03-01T10:00:01.000Z", "actualPhoneNumber": "+4915100000001",
		"reference": "order-7", "metadata": map[string]any{"cart": "3"}, "locale": "es", "apiKey": "init",
		"delivery": map[string]any{"state": "DELIVERED", "attempts": 2.0, "deliveredAt": "2026-03-01T10:00:03.000Z"},
		"attempts": []any{
			map[string]any{"at": "2026-03-01T10:00:03.000Z", "event": "verification.success", "statusCode": 204.0},
			map[string]any{"at": "2026-03-01T10:00:02.000Z", "event": "verification.success", "statusCode": 500.0, "reason": "http_500"},
		},
	}))
	listed := w.do(listRequest(keyRead, "")).fields["requests"].([]any)[0].(map[string]any)
	w.g.Expect(listed).NotTo(HaveKey("attempts"))
	delete(got.fields, "attempts")
	w.g.Expect(listed).To(Equal(got.fields))

	failed, text := w.begin("")
	w.send(failed, text)
	w.record(failed, http.StatusGone, time.Time{})
	w.g.Expect(w.do(readRequest(keyRead, failed)).fields["delivery"]).To(Equal(map[string]any{"state": "EXHAUSTED", "attempts": 1.0}))
	fresh, _ := w.begin("")
	w.g.Expect(w.do(readRequest(keyRead, fresh)).fields).NotTo(Or(HaveKey("delivery"), HaveKey("attempts"), HaveKey("verifiedAt")))
}

func TestRequest_unknown(t *testing.T) {
	w := newRequestsWorld(t)
	other := w.backend.Open("shop/other")
	foreign := "vr" + strings.Repeat("a", 24)
	number, err := phone.FromE164(w.newNumber(9))
	w.g.Expect(err).NotTo(HaveOccurred())
	_, err = other.Create(t.Context(), verification.New{ID: foreign, Phone: number, Method: verification.WhatsApp, TTL: time.Hour}, verification.Limits{})
	w.g.Expect(err).NotTo(HaveOccurred())
	ids, _ := w.list("")
	w.g.Expect(ids).To(BeEmpty(), "another project's requests are in the same database")
	w.changeSettings(func(s *settings.Settings) { s.Keys = keysOf(readerKey(false)) })
	for _, id := range []string{foreign, "x", "X", "a..b", "..", strings.Repeat("a", 300), "vr=1"} {
		for _, r := range []request{readRequest(keyRead, id), changeRequest(keyReader, pathCancel, id), changeRequest(keyReader, pathRedeliver, id)} {
			a := w.do(r)
			w.g.Expect(a.status).To(Equal(http.StatusNotFound), r.target)
			w.g.Expect(a.errorField("code")).To(Equal(string(verification.CodeNotFound)), r.target)
		}
	}
	for _, path := range []string{pathRequests + "/", pathRequests + "/a/b", pathRequests + "/%61"} {
		r := readRequest(keyRead, "")
		r.target = path
		w.g.Expect(w.do(r.markUnlisted()).errorField("code")).To(Equal(string(codeRouteNotFound)), path)
	}
}

func TestRequest_aPrefixHidesNoRoute(t *testing.T) {
	w := newRequestsWorld(t)
	w.changeSettings(func(s *settings.Settings) { s.PathPrefix = pathRequests })
	r := readRequest(keyRead, "openapi.json")
	w.g.Expect(w.do(r.markUnlisted()).fields).To(HaveKey("openapi"))
	id, _ := w.begin("")
	for _, target := range []string{pathRequests + "/" + id, pathRequests + pathRequests + "/" + id} {
		r.target = target
		w.g.Expect(w.do(r.markUnlisted()).fields).To(HaveKeyWithValue("requestId", id))
	}
}

func TestRequests_needTheirScopes(t *testing.T) {
	w := newRequestsWorld(t)
	id, _ := w.begin("")
	for scope, calls := range map[string]map[string]request{
		"Read":      {keyRedeliver: listRequest(keyRedeliver, ""), keyInit: readRequest(keyInit, id), keyAll: readRequest(keyAll, id)},
		"Init":      {keyRead: changeRequest(keyRead, pathCancel, id), keyStatus: changeRequest(keyStatus, pathCancel, id)},
		"Redeliver": {keyRead: changeRequest(keyRead, pathRedeliver, id), keyAll: changeRequest(keyAll, pathRedeliver, id)},
		"Status":    {keyRead: statusRequest(keyRead, "id="+id)},
	} {
		for _, r := range calls {
			before := w.store.calls.Load()
			a := w.do(r)
			w.g.Expect(a.status).To(Equal(http.StatusForbidden), r.target)
			w.g.Expect(a.joinedHeader("WWW-Authenticate")).To(HaveSuffix(`scope="` + scope + `"`))
			w.g.Expect(w.store.calls.Load()).To(Equal(before))
		}
	}
	w.g.Expect(w.do(initFor(keyRead, w.newNumber(50))).status).To(Equal(http.StatusForbidden))
}

func TestLists_areLimitedForEachKey(t *testing.T) {
	w := newRequestsWorld(t) // which limits no inits
	w.begin("")
	burst := minStatusRate * int(statusBurstTime.Seconds()) / readsPerList
	for range burst {
		w.list("")
	}
	before := w.store.calls.Load()
	refused := w.do(listRequest(keyRead, ""))
	w.g.Expect(refused.status).To(Equal(http.StatusTooManyRequests))
	w.g.Expect(refused.joinedHeader("Retry-After")).To(Equal("1"))
	w.g.Expect(w.do(readRequest(keyRead, "x")).status).To(Equal(http.StatusTooManyRequests), "they count together")
	w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store is not asked")
	w.clock.Step(time.Second)
	for range minStatusRate / readsPerList {
		w.list("")
	}
	w.g.Expect(w.do(listRequest(keyRead, "")).status).To(Equal(http.StatusTooManyRequests))
}

func TestCancel_endsARequestOfAnyLevel(t *testing.T) {
	for name, more := range map[string]string{"possession": "", "session": `,"assurance":"SESSION"`} {
		t.Run(name, func(t *testing.T) {
			w := newRequestsWorld(t)
			id, text := w.begin(more)
			a := w.do(changeRequest(keyInit, pathCancel, id))
			w.g.Expect(a.status).To(Equal(http.StatusOK))
			w.g.Expect(a.fields).To(And(HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("hint", "CANCELED")))
			stored, err := w.store.Store.Read(t.Context(), id)
			w.g.Expect(err).NotTo(HaveOccurred())
			w.g.Expect(stored.Event().Kind).To(Equal(verification.EventExpired))
			w.g.Expect(stored.Delivery.NextAttemptAt).To(Equal(w.clock.Now()))
			w.g.Expect(w.send(id, text)).To(Equal(verification.OutcomeTooLate))
			w.g.Expect(w.do(statusRequest(keyStatus, "id="+id)).body).To(Equal(a.body), "the message changed nothing")
			again := w.do(changeRequest(keyInit, pathCancel, id))
			w.g.Expect(again.status).To(Equal(http.StatusOK))
			w.g.Expect(again.body).To(Equal(a.body))
		})
	}
}

func TestCancel_refusesWhatHasEnded(t *testing.T) {
	w := newRequestsWorld(t)
	verified, text := w.begin("")
	w.send(verified, text)
	lapsed, _ := w.begin("")
	expired, _ := w.begin("")
	w.clock.Step(time.Hour)
	w.update(expired, func(r *verification.Request, now time.Time) error { return r.Expire(now, w.all) })
	for id, code := range map[string]verification.ErrorCode{
		verified: verification.CodeAlreadyVerified, lapsed: verification.CodeRequestExpired, expired: verification.CodeRequestExpired,
	} {
		a := w.do(changeRequest(keyInit, pathCancel, id))
		w.g.Expect(a.status).To(Equal(http.StatusConflict))
		w.g.Expect(a.errorField("code")).To(Equal(string(code)))
	}
}

// TestCancel_afterTheProof: the prover may still answer "Not me", and the answer to a repetition says so.
func TestCancel_afterTheProof(t *testing.T) {
	w := newRequestsWorld(t)
	id, text := w.begin(`,"assurance":"SESSION"`)
	w.g.Expect(w.send(id, text)).To(Equal(verification.OutcomeProven))
	w.g.Expect(w.do(changeRequest(keyInit, pathCancel, id)).stringField("hint")).To(Equal("CANCELED"))
	w.clock.Step(time.Second)
	w.update(id, func(r *verification.Request, now time.Time) error {
		return r.DeclineProven(func(*verification.Request) bool { return true }, now, w.all)
	})
	a := w.do(changeRequest(keyInit, pathCancel, id))
	w.g.Expect(a.status).To(Equal(http.StatusOK))
	w.g.Expect(a.stringField("hint")).To(Equal("DECLINED"))
}

// TestCancel_racesAMessage: one of them wins, and both say the same.
func TestCancel_racesAMessage(t *testing.T) {
	w := newRequestsWorld(t)
	for range 50 {
		id, text := w.begin("")
		var (
			answers  answer
			together sync.WaitGroup
		)
		together.Go(func() { answers = w.do(changeRequest(keyInit, pathCancel, id)) })
		outcome := w.send(id, text)
		together.Wait()
		status := w.do(statusRequest(keyStatus, "id="+id)).stringField("status")
		if outcome == verification.OutcomeVerified {
			w.g.Expect(status).To(Equal("VERIFIED"))
			w.g.Expect(answers.status).To(Equal(http.StatusConflict))
		} else {
			w.g.Expect(status).To(Equal("EXPIRED"))
			w.g.Expect(answers.status).To(Equal(http.StatusOK))
		}
	}
}

func TestChanges_refuseBodies(t *testing.T) {
	w := newRequestsWorld(t)
	for body, field := range map[string]string{
		`{}`: "requestId", `{"requestId":null}`: "requestId", `{"requestId":7}`: "requestId", `{"requestId":"a","requestId":"b"}`: "requestId",
		`[]`: "", ``: "", `{"id":"vrx"}`: "requestId", `{"RequestId":"vrx"}`: "requestId",
	} {
		for key, path := range map[string]string{keyInit: pathCancel, keyRedeliver: pathRedeliver} {
			r := initRequest(key, body)
			r.target = path
			a := w.do(r.markInvalid())
			w.g.Expect(a.status).To(Equal(http.StatusBadRequest), body)
			w.g.Expect(a.errorField("field")).To(Equal(field), body)
		}
	}
}

// TestChanges_ofManualRequestsNeedRead: names that people choose can be guessed, and an answer has number, reference and metadata.
func TestChanges_ofManualRequestsNeedRead(t *testing.T) {
	for name, test := range map[string]bool{"live": false, "test": true} {
		t.Run(name, func(t *testing.T) {
			w := newRequestsWorld(t)
			w.changeSettings(func(s *settings.Settings) {
				init := settings.Key{Name: "init", Hash: sha256.Sum256([]byte(keyInit)), Scopes: settings.ScopeInit, Test: test}
				redeliver := settings.Key{Name: "redeliver", Hash: sha256.Sum256([]byte(keyRedeliver)), Scopes: settings.ScopeRedeliver, Test: test}
				s.Keys = settings.NewKeys(init, redeliver, readerKey(test))
			})
			number, err := phone.FromE164(w.newNumber(1))
			w.g.Expect(err).NotTo(HaveOccurred())
			const stored, generated = "mara", "signup-x7k2p"
			for _, id := range []string{stored, generated} {
				_, err := w.store.Store.Create(t.Context(), verification.New{
					ID: id, Phone: number, Method: verification.WhatsApp, TTL: time.Hour, Test: test,
				}, verification.Limits{})
				w.g.Expect(err).NotTo(HaveOccurred())
			}
			for key, path := range map[string]string{keyInit: pathCancel, keyRedeliver: pathRedeliver} {
				var bodies []string
				for _, id := range []string{stored, generated, "absent", "vr", "X", "vr" + strings.Repeat("a", 23), "vr" + strings.Repeat("1", 24)} {
					before := w.store.calls.Load()
					a := w.do(changeRequest(key, path, id))
					w.g.Expect(a.status).To(Equal(http.StatusForbidden), id)
					w.g.Expect(a.joinedHeader("WWW-Authenticate")).To(HaveSuffix(`scope="Read"`))
					w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store is not asked")
					bodies = append(bodies, string(a.body))
				}
				w.g.Expect(bodies).To(HaveEach(bodies[0]), "whether a request exists is not revealed")
				w.g.Expect(w.do(changeRequest(key, path, "vr"+strings.Repeat("a", 24))).status).To(Equal(http.StatusNotFound), "an id in the form of init's")
			}
			w.g.Expect(w.do(changeRequest(keyReader, pathRedeliver, stored)).errorField("code")).To(Equal(string(verification.CodeNoEvent)))
			w.g.Expect(w.do(changeRequest(keyReader, pathCancel, stored)).fields).To(HaveKeyWithValue("hint", "CANCELED"))
		})
	}
}

func TestRequests_duringAnOutage(t *testing.T) {
	w := newRequestsWorld(t)
	id, _ := w.begin("")
	w.backend.Fail(errors.ErrUnsupported)
	defer w.backend.Fail(nil)
	for _, r := range []request{
		listRequest(keyRead, ""), readRequest(keyRead, id), changeRequest(keyInit, pathCancel, id), changeRequest(keyRedeliver, pathRedeliver, id),
		findRequest(keyRead, `{"phoneNumber":"+4915123456789"}`),
	} {
		a := w.do(r)
		w.g.Expect(a.status).To(Equal(http.StatusServiceUnavailable), r.target)
		w.g.Expect(a.errorField("code")).To(Equal(string(verification.CodeStoreUnavailable)))
	}
}

func TestRequests_areOneSeriesOfMetrics(t *testing.T) {
	w := newRequestsWorld(t)
	for n := range 20 {
		w.do(readRequest(keyRead, fmt.Sprintf("vr-unknown-%d", n)))
	}
	w.g.Expect(w.gatherMetrics()).NotTo(ContainSubstring("vr-unknown"))
	w.g.Expect(w.gatherMetrics()).To(ContainSubstring(`route="/api/verify/requests/{id}"`))
	w.g.Expect(w.logText()).NotTo(ContainSubstring("vr-unknown"))
}

func FuzzCursor(f *testing.F) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 123456000, time.UTC)
	filter := verification.ListFilter{Phase: verification.Pending, Reference: "order-7"}
	f.Add(encodeCursor(verification.Position{CreatedAt: at, ID: "vrx"}, projectName, filter))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		position, ok := decodeCursor(text, projectName, filter)
		if ok && encodeCursor(position, projectName, filter) != text {
			t.Errorf("%q has another form", text)
		}
	})
}
