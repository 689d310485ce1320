package browser_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
)

// TestPage_isThatOfAPhone: pages trust that it is frozen while it is hidden, and tapped by a finger.
func TestPage_isThatOfAPhone(t *testing.T) {
	b, err := browser.Start()
	if errors.Is(err, browser.ErrNotInstalled) {
		t.Skip(err)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(b.Stop)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>x</title><button>Press</button><script>
			window.log = [];
			for (const name of ["visibilitychange", "freeze", "resume"])
				document.addEventListener(name, () => log.push(name + ":" + document.visibilityState));
			document.querySelector("button").addEventListener("pointerup", (event) => log.push(event.pointerType));
		</script>`)
	}))
	t.Cleanup(server.Close)
	p := b.NewPage(t)
	p.Open(server.URL)
	p.Press("button")
	p.EmulatePhone()
	p.Press("button")
	p.Hide()
	p.Show()
	p.Await("log.join()", Equal("mouse,touch,visibilitychange:hidden,freeze:hidden,resume:hidden,visibilitychange:visible"))
}
