package browser

import (
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
)

// Hide does to the page what a phone does when another app is opened: another tab covers it, and then it is frozen.
func (p *Page) Hide() {
	p.t.Helper()
	p.Expect(p.uncover).To(gomega.BeNil(), "the page is shown")
	// A page that is given the focus by force counts as visible, whatever covers it.
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: false})
	ctx, uncover := chromedp.NewContext(p.ctx, chromedp.WithNewWindow(false))
	p.Expect(chromedp.Do(ctx)).To(gomega.Succeed())
	p.uncover = uncover
	p.Await("document.visibilityState", gomega.Equal("hidden"))
	call(p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen})
}

// Show comes back to the page.
func (p *Page) Show() {
	p.t.Helper()
	p.Expect(p.uncover).NotTo(gomega.BeNil(), "the page is hidden")
	call(p, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive})
	p.uncover()
	p.uncover = nil
	p.Await("document.visibilityState", gomega.Equal("visible"))
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
}
