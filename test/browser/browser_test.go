package browser_test

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/browser"
)

// asOwner makes the test binary start a browser, print the process id of that, and wait to be killed.
const asOwner = "PHONEPROOF_TEST_BROWSER_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(asOwner) == "" {
		os.Exit(m.Run())
	}
	b, err := browser.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, b.ProcessID())
	select {}
}

func start(t *testing.T) *browser.Browser {
	t.Helper()
	b, err := browser.Start()
	if errors.Is(err, browser.ErrNotInstalled) {
		t.Skip(err)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(b.Stop)
	return b
}

// listFamily returns the ids of a process and of all that descend from it.
func listFamily(id string) []string {
	family := []string{id}
	lists, _ := filepath.Glob("/proc/" + id + "/task/*/children") // fails for a wrong pattern only
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue // it has ended
		}
		for child := range strings.FieldsSeq(string(content)) {
			family = append(family, listFamily(child)...)
		}
	}
	return family
}

// listRunning returns those of the processes that run.
func listRunning(ids []string) (running []string) {
	for _, id := range ids {
		status, err := os.ReadFile("/proc/" + id + "/status")
		if err == nil && !strings.Contains(string(status), "State:\tZ") {
			running = append(running, id)
		}
	}
	return running
}

func TestStart_endsWithItsProcess(t *testing.T) {
	g := NewWithT(t)
	start(t).Stop() // or skips
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), asOwner+"=1", "TMPDIR="+t.TempDir())
	out, err := owner.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(owner.Start()).To(Succeed())
	lines := bufio.NewScanner(out)
	g.Expect(lines.Scan()).To(BeTrue())
	family := listFamily(lines.Text())
	g.Expect(len(family)).To(BeNumerically(">", 1), "Chromium has processes of its own")
	g.Expect(owner.Process.Kill()).To(Succeed())
	g.Expect(owner.Wait()).NotTo(Succeed())
	g.Eventually(func() []string { return listRunning(family) }).WithTimeout(30 * time.Second).Should(BeEmpty())
}

func TestStop_endsChromium(t *testing.T) {
	b := start(t)
	family := listFamily(strconv.Itoa(b.ProcessID()))
	b.Stop()
	NewWithT(t).Eventually(func() []string { return listRunning(family) }).WithTimeout(30 * time.Second).Should(BeEmpty())
}

// serve serves a page that notes what happens to it.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><title>x</title><h1>Hello</h1><a id="app" href="https://wa.me/1?text=x">App</a><button>Press</button><script>
			window.log = [];
			for (const name of ["visibilitychange", "freeze", "resume"])
				document.addEventListener(name, () => log.push(name + ":" + document.visibilityState));
			addEventListener("pageshow", (event) => log.push("pageshow:" + event.persisted));
			document.querySelector("button").addEventListener("pointerup", (event) => log.push(event.pointerType));
		</script>`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestPage_hidesAndShows(t *testing.T) {
	p := start(t).NewPage(t)
	p.Open(serve(t))
	p.Await("log.join()", Equal("pageshow:false"))
	p.Hide()
	p.Show()
	p.Await("log.join()", Equal("pageshow:false,visibilitychange:hidden,freeze:hidden,resume:hidden,visibilitychange:visible"))
	p.Expect(p.Eval("document.visibilityState")).To(Equal("visible"))
}

func TestPage_isPressedByMouseAndFinger(t *testing.T) {
	p := start(t).NewPage(t)
	p.HandLinksToApps()
	p.Open(serve(t))
	p.Await("log.join()", Equal("pageshow:false"))
	p.Press("button")
	p.Await("log.join()", Equal("pageshow:false,mouse"))
	p.EmulatePhone()
	p.Press("button")
	p.Await("log.join()", Equal("pageshow:false,mouse,touch"))
	p.Expect(p.Eval(`matchMedia("(pointer: coarse)").matches`)).To(BeTrue())
	p.Press("#app")
	p.Expect(p.AwaitApp()).To(Equal("https://wa.me/1?text=x"))
	p.Expect(p.Eval("log.length")).To(BeEquivalentTo(3), "the page stays")
}

func TestPage_goesBackToWhereItWas(t *testing.T) {
	p := start(t).NewPage(t)
	url := serve(t)
	p.Open(url)
	p.AwaitText("h1", Equal("Hello"))
	p.Open(url + "/elsewhere")
	p.AwaitLocation(HaveSuffix("/elsewhere"))
	p.GoBack()
	p.AwaitLocation(Equal(url + "/"))
	p.AwaitText("h1", Equal("Hello")) // from memory, or loaded again: Chromium decides
}

func TestPage_keepsProblems(t *testing.T) {
	p := start(t).NewPage(t)
	p.Open(serve(t))
	p.AwaitText("h1", Equal("Hello"))
	p.Eval(`setTimeout(() => { throw new Error("oops"); }); 0`)
	p.Eventually(p.TakeProblems).Should(ConsistOf(ContainSubstring("oops")))
	p.Expect(p.TakeProblems()).To(BeEmpty())
}
