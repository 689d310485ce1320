package browser

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

const (
	// patience bounds the wait for what a page must show, on a busy machine.
	patience = 30 * time.Second
	// callTime bounds one call of the DevTools protocol.
	callTime = time.Minute
)

// TB is the part of testing.TB that a page uses; GinkgoT() implements it, too.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Page is a tab with cookies and a history of its own. Its methods fail the test where a page does not do what they say.
type Page struct {
	gomega.Gomega

	t      TB
	ctx    context.Context //nolint:containedctx // chromedp keeps its connection in a context
	screen screen
	axe    *axe
	// uncover closes the tab that covers the page; nil while it is shown.
	uncover func()

	mu       sync.Mutex
	problems []string
	opened   []string
	presses  int
}

// NewPage opens a page that is empty, on a screen of 1280 x 800, and closes it when the test ends.
func (b *Browser) NewPage(t TB) *Page {
	t.Helper()
	p := &Page{t: t}
	p.Gomega = gomega.NewGomega(func(message string, _ ...int) {
		t.Helper()
		t.Fatalf("\n%s", message)
	})
	ctx, closePage := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.keepProblem))
	t.Cleanup(closePage)
	p.ctx = ctx
	p.Expect(chromedp.Do(ctx)).To(gomega.Succeed())
	// Only one tab of a browser has the focus; each page is to look as if it were that one.
	call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.Resize(1280, 800)
	return p
}

// call makes a call of the DevTools protocol.
func call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	p.Expect(err).NotTo(gomega.HaveOccurred(), command.Method)
	return result
}

// errNetworkChanged is what Chromium says of requests that it ended because the machine got or lost an interface, as it does with each pod
// that starts beside. Phones do that too, so pages must ask again, and what they then show is tested.
const errNetworkChanged = "net::ERR_NETWORK_CHANGED"

// keepProblem keeps what the page complains about.
func (p *Page) keepProblem(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.problems = append(p.problems, text)
	case *log.EventEntryAdded:
		if strings.Contains(e.Entry.Text, errNetworkChanged) {
			return
		}
		p.problems = append(p.problems, fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	}
}

// TakeProblems returns what the page has complained about since the last call: exceptions, and entries of the browser's log.
func (p *Page) TakeProblems() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.problems
	p.problems = nil
	return taken
}

// Open goes to an address. It returns once the answer has begun.
func (p *Page) Open(url string) {
	p.t.Helper()
	result := call(p, page.Navigate, page.NavigateParams{URL: url})
	p.Expect(result.ErrorText).To(gomega.BeEmpty(), url)
}

// Reload reloads the page.
func (p *Page) Reload() {
	p.t.Helper()
	call(p, page.Reload, page.ReloadParams{})
}

// GoBack presses the back button.
func (p *Page) GoBack() {
	p.t.Helper()
	history := call(p, page.GetNavigationHistory, cdp.Empty{})
	p.Expect(history.CurrentIndex).To(gomega.BeNumerically(">", 0), "there is a page to go back to")
	entry := history.Entries[history.CurrentIndex-1].ID
	call(p, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: entry})
}

// Eval returns what an expression of JavaScript comes to, decoded from JSON.
func (p *Page) Eval(expression string) any {
	p.t.Helper()
	value, err := p.tryEval(expression)
	p.Expect(err).NotTo(gomega.HaveOccurred(), expression)
	return value
}

// tryEval is Eval for a page that may be going elsewhere, in which case it fails.
func (p *Page) tryEval(expression string) (any, error) {
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
}

// Await waits until what an expression comes to matches.
func (p *Page) Await(expression string, matcher types.GomegaMatcher, description ...any) {
	p.t.Helper()
	p.Eventually(func() (any, error) { return p.tryEval(expression) }).WithTimeout(patience).Should(matcher, description...)
}

// AwaitText waits until the text of the first element that a selector finds matches.
func (p *Page) AwaitText(selector string, matcher types.GomegaMatcher) {
	p.t.Helper()
	p.Await(`document.querySelector(`+strconv.Quote(selector)+`)?.innerText ?? ""`, matcher, selector)
}

// AwaitValue waits until the value of the first field that a selector finds matches.
func (p *Page) AwaitValue(selector string, matcher types.GomegaMatcher) {
	p.t.Helper()
	p.Await(`document.querySelector(`+strconv.Quote(selector)+`)?.value ?? ""`, matcher, selector)
}

// AwaitFocus waits until the focus is on an element that a selector finds.
func (p *Page) AwaitFocus(selector string) {
	p.t.Helper()
	p.Await(`document.activeElement.matches(`+strconv.Quote(selector)+`)`, gomega.BeTrue(), "the focus is on %s", selector)
}

// AwaitLocation waits until the address of the page matches.
func (p *Page) AwaitLocation(matcher types.GomegaMatcher) {
	p.t.Helper()
	p.Await("location.href", matcher)
}
