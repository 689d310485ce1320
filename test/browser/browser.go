package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// ErrNotInstalled is the error of Start where there is no Chromium.
var ErrNotInstalled = errors.New("chromium is not installed: run make browser-assets as root on Debian, and the page is tested too")

// flags keep Chromium from what a test needs not: a sandbox, which root does not get, a screen, and its maker's services.
var flags = []string{
	"headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-background-networking", "disable-component-update",
	"disable-sync", "no-first-run",
}

// Browser is a Chromium without a window.
type Browser struct {
	ctx  context.Context //nolint:containedctx // chromedp keeps its connection in a context
	stop func()
}

// Start starts a Chromium. It returns ErrNotInstalled where there is none.
func Start() (*Browser, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, ErrNotInstalled
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path)}
	for _, flag := range flags {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endBrowser := chromedp.NewContext(allocator)
	stop := func() {
		endBrowser()
		endAllocator()
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, fmt.Errorf("start chromium: %w", err)
	}
	return &Browser{ctx: ctx, stop: stop}, nil
}

// Stop ends Chromium and removes its files.
func (b *Browser) Stop() { b.stop() }
