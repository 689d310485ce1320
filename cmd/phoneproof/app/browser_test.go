package app

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
)

// chromium is the browser of all tests, which starts with the first one that opens a tab. running is the same one.
var (
	chromium = sync.OnceValues(startChromium)
	running  atomic.Pointer[browser.Browser]
)

func startChromium() (*browser.Browser, error) {
	b, err := browser.Start()
	running.Store(b)
	return b, err
}

func TestMain(m *testing.M) {
	// The tests look like a developer's machine, which is none of a cluster, as far as the environment goes.
	os.Unsetenv("KUBERNETES_SERVICE_HOST") //nolint:errcheck // fails for an impossible name only
	cache, err := os.MkdirTemp("", "phoneproof-cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", cache) //nolint:errcheck // as above
	code := m.Run()
	_ = os.RemoveAll(cache)
	if b := running.Load(); b != nil {
		b.Stop()
	}
	os.Exit(code)
}

// tab is a tab of the browser.
type tab struct {
	*browser.Page

	t *testing.T
}

// openTab opens an empty tab with cookies of its own; where there is no browser the test is skipped.
func openTab(t *testing.T) *tab {
	t.Helper()
	b, err := chromium()
	if errors.Is(err, browser.ErrNotInstalled) {
		t.Skip(err)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return &tab{b.NewPage(t), t}
}
