package shop_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/adversary/shop"
)

// world is a shop with an API whose right code is "right", and which lets one number begin nothing.
type world struct {
	*WithT

	t       *testing.T
	network *browser.Network

	mu       sync.Mutex
	confirms []string
	inits    []string
	verified bool
	busy     bool
	records  []ledger.Record
}

func newWorld(t *testing.T, level string) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t}
	api := httptest.NewServer(w)
	t.Cleanup(api.Close)
	address := strings.TrimPrefix(api.URL, "http://")
	front := httptest.NewServer(shop.New(shop.Options{
		Level: level, API: func() string { return address }, Key: func() string { return "key" },
		Record: func(r ledger.Record) { w.records = append(w.records, r) },
	}))
	t.Cleanup(front.Close)
	w.network = &browser.Network{Transport: http.DefaultTransport, Hosts: func(string) string { return strings.TrimPrefix(front.URL, "http://") }}
	return w
}

// ServeHTTP plays the API.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer key" {
		out.WriteHeader(http.StatusUnauthorized)
		return
	}
	var in struct {
		Phone string `json:"phoneNumber"`
		Code  string `json:"code"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	switch {
	case w.busy:
		w.busy = false
		out.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(out, `{"error":{"code":"store_unavailable"}}`)
	case r.URL.Path == "/api/verify/init" && in.Phone == "limited":
		out.Header().Set("Ratelimit", `"phoneNumber";r=0;t=9`)
		out.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(out, `{"error":{"code":"rate_limited"}}`)
	case r.URL.Path == "/api/verify/init":
		w.inits = append(w.inits, string(body))
		fmt.Fprintf(out, `{"requestId":"of-%s","pageURL":"https://page.example/v/T","waLink":"https://wa.me/1"}`, in.Phone)
	case r.URL.Path == "/api/verify/confirm":
		w.confirms = append(w.confirms, string(body))
		if in.Code != "right" {
			out.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(out, `{"error":{"code":"wrong_code"}}`)
			return
		}
		fmt.Fprint(out, `{"status":"VERIFIED","assurance":"session"}`)
	case w.verified:
		fmt.Fprint(out, `{"status":"VERIFIED"}`)
	default:
		fmt.Fprint(out, `{"status":"PENDING"}`)
	}
}

// start begins a verification of a number in a browser.
func (w *world) start(b *browser.Browser, number string) *browser.Page {
	w.t.Helper()
	page, err := b.Send(w.t.Context(), http.MethodPost, shop.URL+"/start", url.Values{"number": {number}, "method": {"WHATSAPP"}})
	w.Expect(err).NotTo(HaveOccurred())
	return page
}

// isMember returns what the shop says of a browser.
func (w *world) isMember(b *browser.Browser) string {
	w.t.Helper()
	page, err := b.Open(w.t.Context(), shop.URL+"/me")
	w.Expect(err).NotTo(HaveOccurred())
	_, verified, _ := strings.Cut(page.Body, `"verified":`)
	return strings.TrimSuffix(verified, "}")
}

func (w *world) open(b *browser.Browser, query string) string {
	w.t.Helper()
	page, err := b.Open(w.t.Context(), shop.ReturnURL+"?"+query)
	w.Expect(err).NotTo(HaveOccurred())
	return page.Data["outcome"]
}

func TestShop_redeemsForTheSessionThatBegan(t *testing.T) {
	w := newWorld(t, "SESSION")
	mine, other, stranger := browser.New(w.network, true), browser.New(w.network, true), browser.New(w.network, true)
	w.Expect(w.start(mine, "1").Data).To(And(HaveKeyWithValue("request", "of-1"), HaveKey("session")))
	w.start(other, "2")
	const back = "requestId=of-1&status=PENDING&code=right"
	for _, b := range []*browser.Browser{other, stranger} {
		w.Expect(w.open(b, back)).To(Equal("not begun here"))
	}
	for _, query := range []string{"requestId=of-1&status=VERIFIED", "requestId=of-1&status=VERIFIED&code=", "status=VERIFIED&code=right"} {
		w.Expect(w.open(mine, query)).To(Equal("not begun here"))
	}
	w.Expect(w.confirms).To(BeEmpty(), "no code was sent for them")
	w.Expect(w.open(mine, "requestId=of-1&code=other")).To(Equal("wrong_code"))
	w.Expect(w.isMember(mine)).To(Equal("false"))
	w.Expect(w.open(mine, back)).To(Equal("VERIFIED"))
	w.Expect(w.isMember(mine)).To(Equal("true"))
	w.Expect(w.isMember(other)).To(Equal("false"))
	w.Expect(w.isMember(stranger)).To(BeEmpty(), "it has no session")
	w.Expect(w.confirms).To(HaveExactElements(`{"code":"other","requestId":"of-1"}`, `{"code":"right","requestId":"of-1"}`))
	w.Expect(w.records).To(HaveLen(2))
	w.Expect(w.records[1]).To(And(
		HaveField("Kind", ledger.Redeemed), HaveField("Request", "of-1"), HaveField("Result", "VERIFIED"), HaveField("Assurance", "session")))
}

func TestShop_redeemsDigits(t *testing.T) {
	w := newWorld(t, "SESSION")
	mine, stranger := browser.New(w.network, true), browser.New(w.network, true)
	page := w.start(mine, "1")
	form, found := page.FormWith("code")
	w.Expect(found).To(BeTrue())
	answer, err := stranger.Submit(t.Context(), page, form, "code", "right")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(answer.Data).To(HaveKeyWithValue("outcome", "not begun here"))
	w.busy = true // the call is repeated
	answer, err = mine.Submit(t.Context(), page, form, "code", "right")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(answer.Data).To(HaveKeyWithValue("outcome", "VERIFIED"))
	w.Expect(w.records).To(HaveExactElements(HaveField("Count", 1)))
	w.Expect(w.isMember(mine)).To(Equal("true"))
}

func TestShop_asksForTheLevelEverySecondTime(t *testing.T) {
	w := newWorld(t, "SESSION")
	for range 2 {
		w.start(browser.New(w.network, true), "1")
	}
	w.Expect(w.inits).To(HaveExactElements(Not(ContainSubstring("assurance")), ContainSubstring(`"assurance":"SESSION"`)))
}

func TestShop_saysWhyItBeganNothing(t *testing.T) {
	w := newWorld(t, "SESSION")
	page := w.start(browser.New(w.network, true), "limited")
	w.Expect(page.Status).To(Equal(http.StatusTooManyRequests))
	w.Expect(page.Data).To(And(HaveKeyWithValue("error", "rate_limited"), HaveKeyWithValue("limit", "phoneNumber")))
}

func TestShop_believesStatusAtTheLevelPossession(t *testing.T) {
	w := newWorld(t, "POSSESSION")
	mine := browser.New(w.network, true)
	w.start(mine, "1")
	w.Expect(w.open(mine, "requestId=of-1&code=right")).To(Equal("not needed"))
	w.Expect(w.isMember(mine)).To(Equal("false"))
	w.verified = true
	w.Expect(w.isMember(mine)).To(Equal("true"))
	w.Expect(w.confirms).To(BeEmpty())
}
