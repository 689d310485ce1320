package browser

import (
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

// screen is what a page is shown on.
type screen struct {
	width, height int
	touch         bool
}

// Resize makes the page that large, on a screen of normal density with a mouse.
func (p *Page) Resize(width, height int) {
	p.t.Helper()
	p.show(screen{width: width, height: height})
}

// EmulatePhone shows the page on a phone that is used by touch.
func (p *Page) EmulatePhone() {
	p.t.Helper()
	p.show(screen{width: 390, height: 844, touch: true})
}

func (p *Page) show(s screen) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(s.width), Height: int64(s.height), DeviceScaleFactor: 1, Mobile: s.touch,
	})
	if s.touch != p.screen.touch {
		touch := emulation.SetTouchEmulationEnabledParams{Enabled: s.touch}
		if s.touch {
			touch.MaxTouchPoints = 5
		}
		call(p, emulation.SetTouchEmulationEnabled, touch)
	}
	p.screen = s
}

// EmulateScheme shows the page to a user who prefers a color scheme, light or dark.
func (p *Page) EmulateScheme(scheme string) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// DisableScript keeps the scripts of pages that are opened from now on from running.
func (p *Page) DisableScript() {
	p.t.Helper()
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// TakeScreenshot returns a PNG of what is on the screen.
func (p *Page) TakeScreenshot() []byte {
	p.t.Helper()
	return call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}).Data
}
