package browser

import (
	"context"
	"strings"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
)

// HandLinksToApps answers the links to messengers, as a phone does that has them: an app opens, and the page stays where it is.
func (p *Page) HandLinksToApps() {
	p.t.Helper()
	p.Expect(chromedp.Listen(p.ctx, func(event any) {
		if paused, ok := event.(*fetch.EventRequestPaused); ok {
			go p.handToApp(paused)
		}
	})).To(gomega.Succeed())
	call(p, fetch.Enable, fetch.EnableParams{
		Patterns: []*fetch.RequestPattern{{URLPattern: "https://wa.me/*"}, {URLPattern: "https://t.me/*"}},
	})
}

func (p *Page) handToApp(paused *fetch.EventRequestPaused) {
	p.mu.Lock()
	p.opened = append(p.opened, paused.Request.URL+paused.Request.URLFragment)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	// It fails only where the page has been closed meanwhile.
	_, _ = chromedp.Call(ctx, fetch.FulfillRequest, fetch.FulfillRequestParams{RequestID: paused.RequestID, ResponseCode: 204})
}

// AwaitApp waits until a messenger was opened, and returns the link that it was opened by.
func (p *Page) AwaitApp() string {
	p.t.Helper()
	var link string
	p.Eventually(func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.opened) > 0 {
			link = p.opened[0]
			p.opened = p.opened[1:]
		}
		return link
	}).WithTimeout(patience).ShouldNot(gomega.BeEmpty(), "a messenger is opened")
	return strings.TrimSpace(link)
}
