package browser_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
)

// everyKind are pages that have between them every kind of element.
var everyKind = []string{"/index", "/architecture", "/errors", "/page", "/webhooks"}

// TestSite_isAccessible has axe-core judge pages of the website that hack/site.sh has built, and looks whether they fit on a narrow screen.
func TestSite_isAccessible(t *testing.T) {
	p, site, pages := openSite(t)
	if !p.UseAxe("color-contrast") {
		t.Skip("axe-core is not installed")
	}
	if os.Getenv("PHONEPROOF_TEST_SITE_ALL") == "" {
		pages = everyKind
	}
	for _, page := range pages {
		p.Open(site + page)
		p.AwaitText("main h1", Not(BeEmpty()))
		p.ExpectNarrow(page)
		p.ExpectAccessible(page)
		p.Expect(p.TakeProblems()).To(BeEmpty(), page)
	}
}

// TestSite_showsTables looks on two screens whether a part of a table lies outside of what is seen.
func TestSite_showsTables(t *testing.T) {
	p, site, pages := openSite(t)
	tables := 0
	for _, page := range pages {
		p.Open(site + page)
		for _, width := range []int{1280, 390} {
			p.Resize(width, 800)
			p.Expect(p.Eval(`[...document.querySelectorAll(".vp-doc table")].flatMap((table) => {
				const seen = table.parentElement.getBoundingClientRect().right;
				const cells = [table, ...table.querySelectorAll("th, td")].filter((e) => e.getBoundingClientRect().right > seen + 1);
				return table.scrollWidth > table.clientWidth + 1 || cells.length ? [table.innerText.slice(0, 60)] : [];
			}).join("; ")`)).To(BeEmpty(), "%s at %d", page, width)
		}
		count, _ := p.Eval(`document.querySelectorAll(".vp-doc table").length`).(float64)
		tables += int(count)
	}
	p.Expect(tables).To(BeNumerically(">", 50))
}

// answers are where the site has the answers to questions, by words that are searched for.
var answers = map[string]string{
	"TemplateTTLTooLong":             "/conditions",
	"bot silent":                     "/channels#when-the-bot-does-not-answer",
	"my bot does not answer":         "/channels#when-the-bot-does-not-answer",
	"users get no reply whatsapp":    "/channels#users-get-no-message-on-whatsapp",
	"rotate webhook secret":          "/webhooks#rotating-the-secret",
	"key leaked":                     "/runbook#a-key-leaked",
	"move to postgresql":             "/postgresql#when-to-move",
	"how many verifications second":  "/operations#sizing",
	"Silent":                         "/runbook#silent",
	"number hidden":                  "/channels#whatsapp-users-whose-number-is-hidden",
	"OutOfSync":                      "/gitops#argo-cd",
	"what does verified number mean": "/security#what-a-verified-number-means",

	"rotate the webhook secret without losing an event": "/webhooks#rotating-the-secret",
	"a key leaked":                              "/runbook#a-key-leaked",
	"a user with a hidden number":               "/channels#whatsapp-users-whose-number-is-hidden",
	"how many verifications can one cluster do": "/operations#sizing",
	"what does VERIFIED prove":                  "/security#what-a-verified-number-means",
	"throughput":                                "/operations#sizing",
	"capacity":                                  "/operations#sizing",
	"how does it scale":                         "/operations#sizing",
	"downgrade":                                 "/upgrade",
	"rollback":                                  "/upgrade",
	"download":                                  "/install",
	"privacy":                                   "/security#",
	"firewall outbound":                         "/spec/verificationproject#what-pods-connect-to",
	"Idempotency-Key":                           "/clients#",

	"download the program":               "/install#download",
	"phoneproof keygen":                  "/install#check-what-you-have",
	"api endpoints":                      "/api",
	"returnURL":                          "/api#init",
	"move from kubernetes to postgresql": "/postgresql#move-from-kubernetes-to-postgresql-and-back",
	"delete one person's data":           "/security#delete-the-data-of-one-person",
	"users get no message on WhatsApp":   "/channels#users-get-no-message-on-whatsapp",
	"glossary":                           "/glossary",
	"how long is a result kept":          "/api#how-long-a-result-is-kept",
	"corporate proxy":                    "/spec/verificationproject#what-pods-connect-to",
}

// TestSite_answersQuestions asks the search, which is a file of the site.
func TestSite_answersQuestions(t *testing.T) {
	p, site, _ := openSite(t)
	p.Open(site + "/quickstart")
	// The button does nothing until the page's script has run.
	p.Await(`!!document.querySelector("#localsearch-input") || (document.querySelector(".DocSearch-Button").click(), false)`, BeTrue())
	for words, answer := range answers {
		p.Eval(fmt.Sprintf(`(() => {
			const input = document.querySelector("#localsearch-input");
			input.value = %q;
			input.dispatchEvent(new Event("input"));
		})()`, words))
		p.Await(`[...document.querySelectorAll(".results a")].slice(0, 5).map((a) => a.pathname + a.hash).join(" ")`, ContainSubstring(answer), words)
	}
}

// TestSite_needsNoScript reads a page and goes on to the next without JavaScript.
func TestSite_needsNoScript(t *testing.T) {
	p, site, _ := openSite(t)
	p.DisableScript()
	p.Open(site + "/index")
	p.Await(`document.readyState === "complete" && document.fonts.status === "loaded"`, BeTrue()) // what loads later moves the link
	p.Press(`.vp-doc a[href="/runbook"]`)
	p.AwaitLocation(HaveSuffix("/runbook"))
	p.AwaitText("main h1", ContainSubstring("Runbook"))
}

// openSite serves the site, and returns a page to look at it with, its address, and the paths of its pages.
func openSite(t *testing.T) (p *browser.Page, site string, pages []string) {
	t.Helper()
	dir := os.Getenv("PHONEPROOF_TEST_SITE")
	if dir == "" {
		t.Skip("make docs-site runs this")
	}
	g := NewWithT(t)
	g.Expect(filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if path, isPage := strings.CutSuffix(strings.TrimPrefix(name, dir), ".html"); isPage && path != "/404" {
			pages = append(pages, path)
		}
		return err
	})).To(Succeed())
	g.Expect(len(pages)).To(BeNumerically(">", 40))
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filepath.Ext(r.URL.Path) == "" && !strings.HasSuffix(r.URL.Path, "/") {
			r.URL.Path += ".html"
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b, err := browser.Start()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(b.Stop)
	return b.NewPage(t), server.URL, pages
}
