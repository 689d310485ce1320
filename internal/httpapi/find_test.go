package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func findRequest(key, body string) request {
	r := initRequest(key, body)
	r.target = pathFind
	return r
}

// findRequests returns the ids of a page of the requests of a number, and its cursor. more are further fields of the body.
func (w *requestsWorld) findRequests(number, more string) (ids []string, next string) {
	w.t.Helper()
	a := w.do(findRequest(keyRead, fmt.Sprintf(`{"phoneNumber":%q%s}`, number, more)))
	w.g.Expect(a.status).To(Equal(http.StatusOK), string(a.body))
	for _, r := range a.fields["requests"].([]any) {
		ids = append(ids, r.(map[string]any)["requestId"].(string))
	}
	next, _ = a.fields["nextCursor"].(string)
	return ids, next
}

func TestFind_byANumber(t *testing.T) {
	w := newRequestsWorld(t)
	begin := func(number string) string {
		w.canaries.add(number[1:])
		id := w.do(initFor(keyInit, number)).stringField("requestId")
		w.clock.Step(time.Second)
		return id
	}
	const mexican, otherForm = "+525512345678", "+5215512345678"
	oldest, _, middle, newest := begin(mexican), begin("+525512345679"), begin(otherForm), begin(mexican)
	w.do(changeRequest(keyInit, pathCancel, middle))
	for _, number := range []string{mexican, otherForm, "52 55 1234-5678", "\u202a+52\u00a055\u00a012345678\u202c"} {
		ids, next := w.findRequests(number, "")
		w.g.Expect(ids).To(Equal([]string{newest, middle, oldest}), number)
		w.g.Expect(next).To(BeEmpty())
	}
	for more, want := range map[string][]string{
		`,"status":"EXPIRED"`:                                {middle},
		`,"status":"PENDING","since":null,"limit":null`:      {newest, oldest},
		`,"since":"2026-03-01T10:00:02Z"`:                    {newest, middle},
		`,"since":"2026-03-01T10:00:02Z","status":"PENDING"`: {newest},
		`,"status":"VERIFIED"`:                               nil,
		`,"unknown":1`:                                       {newest, middle, oldest},
	} {
		ids, _ := w.findRequests(mexican, more)
		w.g.Expect(ids).To(Equal(want), more)
	}
	found := w.do(findRequest(keyRead, `{"phoneNumber":"+525512345679"}`))
	listed := w.do(listRequest(keyRead, "")).fields["requests"].([]any)
	w.g.Expect(found.fields["requests"]).To(Equal(listed[2:3]), "as the list shows it")

	first, next := w.findRequests(mexican, `,"limit":1`)
	second, last := w.findRequests(otherForm, `,"limit":1,"cursor":"`+next+`"`)
	third, end := w.findRequests(mexican, `,"limit":200,"cursor":"`+last+`"`)
	w.g.Expect([][]string{first, second, third}).To(Equal([][]string{{newest}, {middle}, {oldest}}))
	w.g.Expect(end).To(BeEmpty())
	place, err := base64.RawURLEncoding.DecodeString(next)
	w.g.Expect(err).NotTo(HaveOccurred())
	w.g.Expect(string(place)).NotTo(ContainSubstring("5512345678"))
	for _, r := range []request{
		findRequest(keyRead, `{"phoneNumber":"+525512345679","cursor":"`+next+`"}`), listRequest(keyRead, "cursor="+next),
		findRequest(keyRead, `{"phoneNumber":"`+mexican+`","status":"PENDING","cursor":"`+next+`"}`),
	} {
		w.g.Expect(w.do(r).errorField("field")).To(Equal("cursor"), "the cursor of another list")
	}
	w.g.Expect(w.gatherMetrics()).To(ContainSubstring(`route="/api/verify/requests/find"`))
}

func TestFind_refusesBodies(t *testing.T) {
	find := func(body string) request { return findRequest(keyRead, body) }
	withQuery := find(`{"phoneNumber":"+4915123456789"}`)
	withQuery.target += "?phoneNumber=%2B4915123456789"
	const rest = `,"phoneNumber":"+4915123456789"}`
	expectEach(t, []badRequest{
		{"no number", find(`{}`), 400, codeMissingField, "phoneNumber"},
		{"null", find(`{"phoneNumber":null}`), 400, codeInvalidType, "phoneNumber"},
		{"invalid number", find(`{"phoneNumber":"015123456789"}`), 400, verification.CodeInvalidPhoneNumber, "phoneNumber"},
		{"number twice", find(`{"phoneNumber":"+4915123456789"` + rest), 400, codeInvalidJSON, "phoneNumber"},
		{"status in lower case", find(`{"status":"pending"` + rest), 400, codeInvalidParameter, "status"},
		{"status of another type", find(`{"status":1` + rest), 400, codeInvalidType, "status"},
		{"since without a time", find(`{"since":"2026-03-01"` + rest), 400, codeInvalidParameter, "since"},
		{"limit as a string", find(`{"limit":"10"` + rest), 400, codeInvalidParameter, "limit"},
		{"limit of none", find(`{"limit":0` + rest), 400, codeInvalidParameter, "limit"},
		{"limit that is too large", find(`{"limit":201` + rest), 400, codeInvalidParameter, "limit"},
		{"limit twice", find(`{"limit":1,"limit":1` + rest), 400, codeInvalidJSON, "limit"},
		{"kind in lower case", find(`{"kind":"delivery"` + rest), 400, codeInvalidParameter, "kind"},
		{"made-up cursor", find(`{"cursor":"x"` + rest), 400, codeInvalidParameter, "cursor"},
		{"null for all that is optional", find(`{"status":null,"since":null,"limit":null,"kind":null,"cursor":null` + rest), 200, "", ""},
		{"no JSON", find(`phoneNumber=%2B4915123456789`), 400, codeInvalidJSON, ""},
		{"number in the query", withQuery, 400, codeInvalidParameter, ""},
		{"key without the scope", findRequest(keyAll, `{"phoneNumber":"+4915123456789"}`), 403, codeInsufficientScope, ""},
	})
}

// TestFind_showsWhatTheListShows: no request of another project, and none of the other mode.
func TestFind_showsWhatTheListShows(t *testing.T) {
	g := NewWithT(t)
	h, _, _ := newTestHarness(t)
	claimed, err := phone.FromE164(numberOf(verification.TestExpired))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = h.backend.Open("shop/other").Create(t.Context(), verification.New{
		ID: "vrforeign", Phone: claimed, Method: verification.WhatsApp, TTL: time.Hour,
	}, verification.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	live := h.do(initFor(keyAll, claimed.E164())).stringField("requestId")
	test := h.do(initFor(keyTest, claimed.E164())).stringField("requestId")
	for key, id := range map[string]string{keyReader: live, keyTest: test} {
		found := h.do(findRequest(key, fmt.Sprintf(`{"phoneNumber":%q}`, claimed.E164()))).fields["requests"].([]any)
		g.Expect(found).To(ConsistOf(HaveKeyWithValue("requestId", id)))
	}
}

// TestFind_isLimitedAsLists: both count together.
func TestFind_isLimitedAsLists(t *testing.T) {
	w := newRequestsWorld(t)
	for range minStatusRate * int(statusBurstTime.Seconds()) / readsPerList {
		w.findRequests("+4915123456789", "")
	}
	before := w.store.calls.Load()
	w.g.Expect(w.do(findRequest(keyRead, `{"phoneNumber":"+4915123456789"}`)).status).To(Equal(http.StatusTooManyRequests))
	w.g.Expect(w.do(listRequest(keyRead, "")).status).To(Equal(http.StatusTooManyRequests))
	w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store is not asked")
}

func TestParameters_unknownOnesAreRefused(t *testing.T) {
	w := newRequestsWorld(t)
	id, _ := w.begin("")
	const query = "?phoneNumber=%2B4915100000001"
	withQuery := func(r request) request {
		r.target += query
		return r.markInvalid()
	}
	for _, r := range []request{
		listRequest(keyRead, ""), readRequest(keyRead, id), findRequest(keyRead, `{"phoneNumber":"+4915100000001"}`),
		changeRequest(keyInit, pathCancel, id), changeRequest(keyRedeliver, pathRedeliver, id), confirmAs(keyInit, id, "123456"),
	} {
		before := w.store.calls.Load()
		a := w.do(withQuery(r))
		w.g.Expect(a.status).To(Equal(http.StatusBadRequest), r.target)
		w.g.Expect(a.errorField("code")).To(Equal(string(codeInvalidParameter)), r.target)
		w.g.Expect(string(a.body)).NotTo(ContainSubstring("15100000001"))
		w.g.Expect(w.store.calls.Load()).To(Equal(before), "the store is not asked")
		stranger := withQuery(r)
		stranger.header = stranger.header.Clone()
		stranger.header.Del("Authorization")
		w.g.Expect(w.do(stranger).status).To(Equal(http.StatusUnauthorized), "strangers learn no parameters")
	}
	for _, p := range listParameters {
		w.g.Expect(errListParameter.Message).To(ContainSubstring(p.name))
	}
	for _, r := range []request{statusRequest(keyStatus, "id="+id+"&x=1"), initFor(keyInit, w.newNumber(2))} {
		if r.target == pathInit {
			r.target += query
		}
		w.g.Expect(w.do(r).status).To(Equal(http.StatusOK), "init and status ignore them")
	}
}
