package browser

import (
	"fmt"
	"strconv"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/onsi/gomega"
)

// Press clicks with the mouse, or taps with a finger on the screen of a phone, on the first visible element that a selector
// finds, once there is one. Where the element moved away beneath, it is pressed again.
func (p *Page) Press(selector string) {
	p.t.Helper()
	p.Eventually(func() (bool, error) { return p.tryPress(selector) }).WithTimeout(patience).Should(gomega.BeTrue(), selector)
}

// tryPress presses once, and reports whether the element was hit. A page that went elsewhere by that was hit, too.
func (p *Page) tryPress(selector string) (bool, error) {
	p.t.Helper()
	p.presses++
	at, err := p.tryEval(fmt.Sprintf(`(() => {
		const element = document.querySelector(%s);
		if (!element || !element.checkVisibility()) return null;
		element.scrollIntoView({block: "center"});
		window.pressed = {number: %d, hit: false};
		element.addEventListener("click", () => { window.pressed.hit = true; }, {once: true});
		const box = element.getBoundingClientRect();
		return [box.x + box.width / 2, box.y + box.height / 2];
	})()`, strconv.Quote(selector), p.presses))
	middle, found := at.([]any)
	if err != nil || !found {
		return false, err
	}
	x, y := middle[0].(float64), middle[1].(float64) //nolint:forcetypeassert // as the script returns them
	press := chromedp.MouseClickXY(x, y)
	if p.screen.touch {
		press = chromedp.TapXY(x, y)
	}
	p.Expect(chromedp.Do(p.ctx, press)).To(gomega.Succeed())
	// A browser makes a click of a tap a moment after it.
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		hit, err := p.tryEval(fmt.Sprintf(`window.pressed?.number !== %d || window.pressed.hit`, p.presses))
		if err != nil || hit == true {
			return true, nil //nolint:nilerr // the page is going elsewhere
		}
	}
	return false, nil
}

// keyCodes are the Windows virtual key codes that Chromium knows keys by.
var keyCodes = map[string]int64{"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}

// PressKey presses and releases a key, one of those in keyCodes.
func (p *Page) PressKey(key string) {
	p.t.Helper()
	event := input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: key, Code: key, WindowsVirtualKeyCode: keyCodes[key],
	}
	if key == "Enter" {
		event.Text = "\r"
	}
	call(p, input.DispatchKeyEvent, event)
	event.Type, event.Text = input.DispatchKeyEventTypeKeyUp, ""
	call(p, input.DispatchKeyEvent, event)
}

// TabTo presses the Tab key until the focus is on an element that a selector finds, and expects to see it at every stop.
func (p *Page) TabTo(selector string) {
	p.t.Helper()
	p.Await(`document.querySelector(`+strconv.Quote(selector)+`)?.checkVisibility() ?? false`, gomega.BeTrue(), selector)
	const most = 60
	for range most {
		p.PressKey("Tab")
		p.Expect(p.Eval(`(() => {
			const style = getComputedStyle(document.activeElement);
			return document.activeElement === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
		})()`)).To(gomega.BeTrue(), "the focus is visible")
		if p.Eval(`document.activeElement.matches(`+strconv.Quote(selector)+`)`) == true {
			return
		}
	}
	p.t.Fatalf("the Tab key does not lead to %s", selector)
}

// Type writes a text where the focus is, as a keyboard or a paste does.
func (p *Page) Type(text string) {
	p.t.Helper()
	call(p, input.InsertText, input.InsertTextParams{Text: text})
}
