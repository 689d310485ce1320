package page

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestOpened_setsACookieForItsOwnPageAlone(t *testing.T) {
	s := newSite(t)
	_, page := s.start()
	for name, header := range map[string][]string{
		"a form of another site":  {"Sec-Fetch-Site", "cross-site"},
		"a form of a subdomain":   {"Sec-Fetch-Site", "same-site"},
		"a script of another one": {"Origin", "https://evil.example"},
	} {
		response, _ := s.send(http.MethodPost, page+"/opened", header...)
		s.Expect(response.StatusCode).To(Equal(http.StatusForbidden), name)
		s.Expect(response.Cookies()).To(BeEmpty(), name)
	}
	response, _ := s.send(http.MethodPost, page+"/opened", "Sec-Fetch-Site", "same-origin")
	s.Expect(response.StatusCode).To(Equal(http.StatusNoContent))
	s.Expect(response.Cookies()).To(HaveLen(1))
	mark := response.Cookies()[0]
	s.Expect(mark.Name).To(HavePrefix("__Host-"))
	s.Expect(mark.Secure && mark.HttpOnly && mark.Path == "/" && mark.Domain == "" && mark.SameSite == http.SameSiteLaxMode).To(BeTrue())
	s.Expect(page).NotTo(ContainSubstring(strings.TrimPrefix(mark.Name, markPrefix)))
	s.Expect(s.get(page, "Cookie", mark.Name+"=1")).To(ContainSubstring(`data-state="opened"`))
	s.Expect(s.get(page+"?method=TELEGRAM", "Cookie", mark.Name+"=1")).To(ContainSubstring(`data-state="ready"`), "another messenger")
	_, other := s.start()
	s.Expect(s.get(other, "Cookie", mark.Name+"=1")).To(ContainSubstring(`data-state="ready"`), "the cookie of another page")
}

func TestOpened_boundsItsCookies(t *testing.T) {
	s := newSite(t)
	_, page := s.start()
	var old []string
	for i := range 30 {
		old = append(old, markPrefix+strings.Repeat("x", i+1)+"=1")
	}
	response, _ := s.send(http.MethodPost, page+"/opened", "Cookie", strings.Join(old, "; "))
	var removed []string
	for _, c := range response.Cookies() {
		if c.MaxAge < 0 {
			removed = append(removed, c.Name)
		}
	}
	s.Expect(removed).To(HaveLen(30 + 1 - maxMarks))
	s.Expect(removed).To(And(ContainElement(markPrefix+"x"), Not(ContainElement(markPrefix+strings.Repeat("x", 30)))), "the oldest go")
}
