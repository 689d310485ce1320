package page

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

// drawLogo returns a picture of that width.
func drawLogo(g *WithT, width int) []byte {
	var out bytes.Buffer
	g.Expect(png.Encode(&out, image.NewGray(image.Rect(0, 0, width, 1)))).To(Succeed())
	return out.Bytes()
}

func TestLogo_standsAboveThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logo")
	s := newSite(t, func(o *Options) { o.LogoFile = file })
	first := drawLogo(s.WithT, 8)
	s.Expect(os.WriteFile(file, first, 0o600)).To(Succeed())
	_, page := s.start()
	s.Expect(s.get(page)).To(MatchRegexp(`<header><img class="logo" src="/phone/v/[^"]+/logo" alt=""><p class="name">`))
	answer, content := s.send(http.MethodGet, page+"/logo")
	s.Expect(answer.StatusCode).To(Equal(http.StatusOK))
	s.Expect(content).To(BeEquivalentTo(first))
	s.Expect(answer.Header.Get("Content-Type")).To(Equal("image/png"))
	s.Expect(answer.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
	s.Expect(answer.Header.Get("Content-Security-Policy")).To(ContainSubstring("default-src 'none'"))
	s.Expect(answer.Header.Get("Cache-Control")).To(Equal("private, max-age=300"))
	answer, content = s.send(http.MethodGet, page+"/logo", "If-None-Match", answer.Header.Get("ETag"))
	s.Expect(answer.StatusCode).To(Equal(http.StatusNotModified))
	s.Expect(content).To(BeEmpty())
	answer, _ = s.send(http.MethodGet, page[:len(page)-1]+"/logo")
	s.Expect(answer.StatusCode).To(Equal(http.StatusNotFound), "of no ticket of ours")
}

func TestLogo_isNoneWithoutAPicture(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string][]byte{
		"script":    []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"html":      []byte(`<!DOCTYPE html><script>alert(1)</script>`),
		"text":      []byte("logo"),
		"empty":     {},
		"too large": append(drawLogo(NewWithT(t), 8), make([]byte, maxLogo)...),
		"missing":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(folder, name)
			s := newSite(t, func(o *Options) { o.LogoFile = file })
			if content != nil {
				s.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
			}
			_, page := s.start()
			s.Expect(s.get(page)).To(And(ContainSubstring("Ada&#39;s Books"), Not(ContainSubstring("<img class=\"logo\""))))
			answer, _ := s.send(http.MethodGet, page+"/logo")
			s.Expect(answer.StatusCode).To(Equal(http.StatusNotFound))
		})
	}
	s := newSite(t)
	_, page := s.start()
	s.Expect(s.get(page)).NotTo(ContainSubstring("<img class=\"logo\""), "no file is configured")
}

func TestLogo_followsItsFile(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "logo")
	now := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	l := &logo{file: file, clock: now}
	g.Expect(l.currentPicture()).To(BeNil())
	first, second := drawLogo(g, 8), append(drawLogo(g, 9), make([]byte, maxLogo-len(drawLogo(g, 9)))...)
	g.Expect(os.WriteFile(file, first, 0o600)).To(Succeed())
	g.Expect(l.currentPicture()).To(BeNil(), "it is not read for every page")
	now.SetTime(now.Now().Add(logoAge))
	g.Expect(l.currentPicture().content).To(Equal(first))
	g.Expect(os.WriteFile(file, second, 0o600)).To(Succeed())
	now.SetTime(now.Now().Add(logoAge))
	g.Expect(l.currentPicture().content).To(Equal(second), "64 KiB are not too large")
	g.Expect(os.Remove(file)).To(Succeed())
	now.SetTime(now.Now().Add(logoAge))
	g.Expect(l.currentPicture()).To(BeNil())
}
