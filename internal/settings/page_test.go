package settings

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// shopPage lists an origin, an origin with a port, and one URL.
func shopPage() *Page {
	return &Page{ReturnURLs: []string{"https://shop.example", "http://127.0.0.1:8080", "https://other.example/back?from=page"}}
}

func TestPage_AllowsReturn(t *testing.T) {
	for _, allowed := range []string{
		"https://shop.example", "https://shop.example/", "https://shop.example/back/7?order=a%20b&x=%C3%BC", "http://127.0.0.1:8080/x",
		"https://shop.example?x=1", "https://other.example/back?from=page", "https://shop.example/a..b", "https://shop.example/?u=https%3A%2F%2Fevil.example",
		"https://shop.example/" + strings.Repeat("a", 2048-len("https://shop.example/")),
	} {
		NewWithT(t).Expect(shopPage().AllowsReturn(allowed)).To(BeTrue(), allowed)
	}
}

// TestPage_AllowsReturn_refusesOtherSites tries to lead users to another site (an open redirect).
func TestPage_AllowsReturn_refusesOtherSites(t *testing.T) {
	for name, raw := range map[string]string{
		"nothing":                    "",
		"another site":               "https://evil.example/",
		"a path alone":               "/back",
		"no scheme":                  "//shop.example/",
		"another scheme":             "http://shop.example/",
		"script":                     "javascript:alert(1)//https://shop.example/",
		"data":                       "data:text/html,https://shop.example",
		"the scheme in capitals":     "HTTPS://shop.example/",
		"the host in capitals":       "https://SHOP.example/",
		"user information":           "https://shop.example@evil.example/",
		"a password":                 "https://shop.example:x@evil.example/",
		"an empty user":              "https://@shop.example/",
		"a host that begins so":      "https://shop.example.evil.example/",
		"a host that ends so":        "https://evilshop.example/",
		"a subdomain":                "https://a.shop.example/",
		"a dot at the end":           "https://shop.example./",
		"a port":                     "https://shop.example:444/",
		"the default port":           "https://shop.example:443/",
		"no port":                    "http://127.0.0.1/x",
		"a backslash":                `https://shop.example\@evil.example/`,
		"a backslash for a slash":    `https:\\evil.example/`,
		"a backslash in the path":    `https://shop.example/\evil.example`,
		"three slashes":              "https:///shop.example/",
		"one slash":                  "https:/shop.example/",
		"no slash":                   "https:shop.example",
		"an encoded slash":           "https://shop.example/%2Fevil.example",
		"an encoded slash, small":    "https://shop.example/a%2fb",
		"an encoded backslash":       "https://shop.example/%5Cevil.example",
		"up":                         "https://shop.example/../x",
		"up, encoded":                "https://shop.example/%2e%2E/x",
		"here":                       "https://shop.example/./x",
		"a tab":                      "https://shop.exa\tmple/",
		"a line":                     "https://shop.example/\nx",
		"a space before":             " https://shop.example/",
		"NUL":                        "https://shop.example/\x00",
		"a fragment":                 "https://shop.example/#x",
		"an empty fragment":          "https://shop.example/#",
		"another script":             "https://shор.example/",
		"a wide dot":                 "https://shop。example/",
		"quotes":                     `https://shop.example/"><script>`,
		"a bad escape":               "https://shop.example/%zz",
		"an encoded host":            "https://shop%2Eexample/",
		"another query":              "https://other.example/back?from=page&x=1",
		"another path":               "https://other.example/back/x?from=page",
		"the origin of an exact":     "https://other.example",
		"too long":                   "https://shop.example/" + strings.Repeat("a", 2048),
		"a semicolon after a scheme": "https;//shop.example/",
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(shopPage().AllowsReturn(raw)).To(BeFalse(), raw)
		})
	}
	NewWithT(t).Expect((*Page)(nil).AllowsReturn("https://shop.example/")).To(BeFalse())
}

// FuzzPage_AllowsReturn looks for a URL that leads to a site which is not listed.
func FuzzPage_AllowsReturn(f *testing.F) {
	for _, seed := range []string{"https://shop.example/x", `https://shop.example\@evil.example/`, "https://shop.example@evil", "https://other.example/back?from=page"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if !shopPage().AllowsReturn(raw) {
			return
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains([]string{"https://shop.example", "http://127.0.0.1:8080", "https://other.example"}, u.Scheme+"://"+u.Host) {
			t.Errorf("%q leads to %s", raw, u.Host)
		}
		if u.User != nil || strings.ContainsAny(raw, "\\#\t\n\r ") || strings.Contains(u.Path, "\\") {
			t.Errorf("%q is read differently by browsers", raw)
		}
	})
}

func TestSettings_PageMethods(t *testing.T) {
	both := Settings{Page: &Page{}, WhatsApp: &WhatsApp{}, Telegram: &Telegram{}}
	for name, test := range map[string]struct {
		change func(*Settings)
		want   []verification.Method
	}{
		"all that the project has":  {func(*Settings) {}, []verification.Method{verification.Telegram}},
		"one account":               {func(s *Settings) { s.Telegram = nil }, nil},
		"no page":                   {func(s *Settings) { s.Page = nil }, nil},
		"a page with the other one": {func(s *Settings) { s.Page.Methods = []verification.Method{verification.Telegram} }, []verification.Method{verification.Telegram}},
		"a page with this one":      {func(s *Settings) { s.Page.Methods = []verification.Method{verification.WhatsApp} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := both
			s.Page = &Page{}
			test.change(&s)
			NewWithT(t).Expect(s.PageMethods(verification.WhatsApp)).To(Equal(test.want))
		})
	}
}
