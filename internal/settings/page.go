package settings

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Page is the page that a project offers to its users.
type Page struct {
	// ReturnURLs are the origins and the exact URLs that the page may lead back to.
	ReturnURLs []string
	// AccentColor is #RRGGBB, and OnAccent the colour of text on it; both are empty for those that are built in.
	AccentColor, OnAccent string
	// Languages are those of the page; empty for all.
	Languages []string
	// Methods are the messengers that the page offers; empty for all that the project has.
	Methods []verification.Method
	// FrameAncestors are the origins that may show the page in a frame.
	FrameAncestors []string
}

// buildPage returns the page of a project; nil if it has none.
func buildPage(spec *verifyv1.Page) *Page {
	if spec == nil {
		return nil
	}
	p := &Page{AccentColor: spec.AccentColor, OnAccent: contrastTo(spec.AccentColor)}
	for _, u := range spec.ReturnURLs {
		p.ReturnURLs = append(p.ReturnURLs, string(u))
	}
	for _, language := range spec.Languages {
		p.Languages = append(p.Languages, string(language))
	}
	for _, method := range spec.Methods {
		p.Methods = append(p.Methods, pageMethods[method])
	}
	for _, origin := range spec.FrameAncestors {
		p.FrameAncestors = append(p.FrameAncestors, string(origin))
	}
	return p
}

// pageMethods are the messengers by their names in spec.page.methods.
var pageMethods = map[verifyv1.Method]verification.Method{
	verifyv1.MethodWhatsApp: verification.WhatsApp, verifyv1.MethodTelegram: verification.Telegram,
}

// contrastTo returns black or white, whichever is easier to read on a colour (WCAG 2.2, "contrast ratio"); empty for none.
func contrastTo(colour string) string {
	value, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 24)
	if err != nil || colour == "" {
		return ""
	}
	luminance := 0.2126*linearLight(value>>16) + 0.7152*linearLight(value>>8&0xff) + 0.0722*linearLight(value&0xff)
	if (luminance+0.05)/0.05 > 1.05/(luminance+0.05) {
		return "#000000"
	}
	return "#ffffff"
}

// linearLight returns how much light a channel of a colour in sRGB gives, from 0 to 1.
func linearLight(channel uint64) float64 {
	c := float64(channel) / 255
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

// maxReturnURL limits a URL that the page leads back to, in bytes.
const maxReturnURL = 2048

// AllowsReturn reports whether the page may lead back to that URL: to every URL of an origin that is listed, or exactly to one that
// is. What browsers read in another way than net/url, such as a backslash or an encoded slash, is refused.
func (p *Page) AllowsReturn(raw string) bool {
	if p == nil || len(raw) > maxReturnURL || strings.ContainsFunc(raw, isUnsafeInURL) {
		return false
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.User != nil || u.Host == "" || u.Fragment != "" || strings.Contains(raw, "#") {
		return false
	}
	path := strings.ToLower(u.EscapedPath())
	if strings.Contains(path, "%2f") || strings.Contains(path, "%5c") || hasDotSegment(path) {
		return false
	}
	origin := u.Scheme + "://" + u.Host
	if !strings.HasPrefix(raw, origin) { // a scheme or host in capitals
		return false
	}
	return slices.Contains(p.ReturnURLs, raw) || slices.Contains(p.ReturnURLs, origin)
}

// isUnsafeInURL reports whether a character has no place in a URL, or is read differently by browsers.
func isUnsafeInURL(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\\"<>^`{|}", r)
}

// hasDotSegment reports whether a path has a segment that browsers resolve, however it is written.
func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(strings.ReplaceAll(path, "%2e", "."), "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// PageMethods returns the messengers that the page offers beside a method.
func (s *Settings) PageMethods(chosen verification.Method) []verification.Method {
	if s.Page == nil {
		return nil
	}
	var others []verification.Method
	for _, method := range [...]verification.Method{verification.WhatsApp, verification.Telegram} {
		offered := len(s.Page.Methods) == 0 || slices.Contains(s.Page.Methods, method)
		if method != chosen && offered && s.Method(method) != MethodNotConfigured {
			others = append(others, method)
		}
	}
	return others
}
