package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/adversary/browser"
)

// startSites serves two sites with one handler: page.example and shop.example.
func startSites(t *testing.T, handler http.HandlerFunc) *browser.Network {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &browser.Network{Transport: http.DefaultTransport, Hosts: func(host string) string {
		if strings.HasSuffix(host, ".example") {
			return strings.TrimPrefix(server.URL, "http://")
		}
		return ""
	}}
}

// serveForm serves a page with a form whose policy is in the query, and leads what it sends on to another site.
func serveForm(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/page":
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; "+r.URL.Query().Get("policy"))
		http.SetCookie(w, &http.Cookie{Name: "__Host-mark", Value: "1", Path: "/", Secure: true})
		fmt.Fprint(w, `<main data-state="digits"><a id="open" href="/next">Open</a><img src="data:x">`+
			`<form action="/confirm" method="post"><input type="hidden" name="kept" value="k"><input name="code"></form></main>`)
	case "/confirm":
		_, err := r.Cookie("__Host-mark")
		http.Redirect(w, r, fmt.Sprintf("https://shop.example/return?host=%s&code=%s&kept=%s&origin=%s&marked=%t",
			r.Host, r.FormValue("code"), r.FormValue("kept"), url.QueryEscape(r.Header.Get("Origin")), err == nil), http.StatusSeeOther)
	default:
		_, err := r.Cookie("__Host-mark")
		fmt.Fprintf(w, "%s marked=%t", r.Host, err == nil)
	}
}

func TestBrowser_submitsFormsAndFollowsRedirects(t *testing.T) {
	g := NewWithT(t)
	b := browser.New(startSites(t, serveForm), true)
	page, err := b.Open(t.Context(), "https://page.example/page?policy=form-action+'self'+https://shop.example")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Data).To(HaveKeyWithValue("state", "digits"))
	g.Expect(page.Link("open")).To(Equal("https://page.example/next"))
	g.Expect(page.Link("other")).To(BeEmpty())
	g.Expect(page.Pictures).To(HaveExactElements("data:x"))
	form, found := page.FormWith("code")
	g.Expect(found).To(BeTrue())
	_, found = page.FormWith("other")
	g.Expect(found).To(BeFalse())

	next, err := b.Submit(t.Context(), page, form, "code", "123456")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.URL.Host).To(Equal("shop.example"))
	g.Expect(next.URL.Query()).To(And(
		HaveKeyWithValue("host", []string{"page.example"}), HaveKeyWithValue("code", []string{"123456"}), HaveKeyWithValue("kept", []string{"k"}),
		HaveKeyWithValue("origin", []string{"https://page.example"}), HaveKeyWithValue("marked", []string{"true"}),
	))
	g.Expect(next.Body).To(Equal("shop.example marked=false"), "each site has its own cookies")

	seen := b.Seen()
	g.Expect(seen).To(HaveLen(3))
	g.Expect(seen[1].Sent).To(ContainSubstring("code=123456"))
	g.Expect(seen[1].Header).To(ContainSubstring("Location: https://shop.example/return"), "also what leads on is seen")
	g.Expect(seen[2].Body).To(Equal(next.Body))
}

func TestBrowser_obeysThePolicyOfAPage(t *testing.T) {
	for policy, want := range map[string]string{
		"form-action 'none'":                       "form-action of /page",
		"form-action 'self'":                       "redirect to shop.example",
		"form-action 'self' https://shop.example/": "",
		"form-action 'self' https:":                "",
		"base-uri 'none'":                          "",
	} {
		t.Run(policy, func(t *testing.T) {
			g := NewWithT(t)
			b := browser.New(startSites(t, serveForm), true)
			page, err := b.Open(t.Context(), "https://page.example/page?policy="+url.QueryEscape(policy))
			g.Expect(err).NotTo(HaveOccurred())
			form, _ := page.FormWith("code")
			_, err = b.Submit(t.Context(), page, form, "code", "1")
			if want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestBrowser_withoutCookiesKeepsNone(t *testing.T) {
	g := NewWithT(t)
	b := browser.New(startSites(t, serveForm), false)
	_, err := b.Open(t.Context(), "https://page.example/page")
	g.Expect(err).NotTo(HaveOccurred())
	page, err := b.Open(t.Context(), "https://page.example/")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Body).To(Equal("page.example marked=false"))
}

func TestBrowser_reachesNoOtherSite(t *testing.T) {
	g := NewWithT(t)
	b := browser.New(startSites(t, serveForm), true)
	_, err := b.Open(t.Context(), "https://wa.me/4915113000000")
	g.Expect(err).To(MatchError(browser.ErrNoSite))
	g.Expect(b.Seen()).To(BeEmpty())
}

func TestBrowser_sendsAgainWhatIsAnswered503(t *testing.T) {
	g := NewWithT(t)
	var bodies []string
	b := browser.New(startSites(t, func(w http.ResponseWriter, r *http.Request) {
		if bodies = append(bodies, r.FormValue("code")); len(bodies) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}), true)
	page, err := b.Send(t.Context(), http.MethodPost, "https://page.example/", url.Values{"code": {"1"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(page.Status).To(Equal(http.StatusOK))
	g.Expect(bodies).To(HaveExactElements("1", "1"))
}
