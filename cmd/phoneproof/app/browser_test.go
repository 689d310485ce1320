package app

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"
)

// browser is a headless Chromium with one page, driven by the DevTools protocol: a few calls that need no library.
type browser struct {
	*WithT

	t      *testing.T
	socket *websocket.Conn
	calls  int
	// errors are what the page complained about.
	errors []string
}

// startBrowser starts a Chromium that ends with the test; where there is none the test is skipped.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium: apt-get install chromium, and the page is tested too")
	}
	b := &browser{WithT: NewWithT(t), t: t}
	cmd := exec.CommandContext(t.Context(), path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--remote-debugging-port=0", "--remote-allow-origins=*", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	stderr, err := cmd.StderrPipe()
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(cmd.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // and its children, before their folder goes
		_ = cmd.Wait()
	})
	listening := regexp.MustCompile(`ws://(127\.0\.0\.1:\d+)/`)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if found := listening.FindStringSubmatch(lines.Text()); found != nil {
			b.attach("http://" + found[1])
			return b
		}
	}
	t.Fatal("chromium ended before it listened")
	return nil
}

// attach connects to the page that is open.
func (b *browser) attach(devtools string) {
	b.t.Helper()
	var pages []struct {
		Type   string `json:"type"`
		Socket string `json:"webSocketDebuggerUrl"`
	}
	b.Eventually(func() error {
		response, err := http.Get(devtools + "/json/list")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&pages); err != nil {
			return err
		}
		for _, page := range pages {
			if page.Type == "page" {
				b.socket, err = websocket.Dial(page.Socket, "", devtools)
				return err
			}
		}
		return fmt.Errorf("no page among %d targets", len(pages))
	}).WithTimeout(30 * time.Second).Should(Succeed())
	b.t.Cleanup(func() { _ = b.socket.Close() })
	b.call("Page.enable", nil)
	b.call("Runtime.enable", nil)
	b.call("Log.enable", nil)
}

// call makes one call of the protocol and returns its result. Errors of the page that arrive meanwhile are kept.
func (b *browser) call(method string, params map[string]any) map[string]any {
	b.t.Helper()
	b.calls++
	b.Expect(websocket.JSON.Send(b.socket, map[string]any{"id": b.calls, "method": method, "params": params})).To(Succeed())
	b.Expect(b.socket.SetReadDeadline(time.Now().Add(time.Minute))).To(Succeed())
	for {
		var message struct {
			ID     int             `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			Result map[string]any  `json:"result"`
			Error  any             `json:"error"`
		}
		b.Expect(websocket.JSON.Receive(b.socket, &message)).To(Succeed())
		if message.Method == "Runtime.exceptionThrown" || message.Method == "Log.entryAdded" {
			b.errors = append(b.errors, string(message.Params))
		}
		if message.ID == b.calls {
			b.Expect(message.Error).To(BeNil(), method)
			return message.Result
		}
	}
}

// eval returns what an expression of JavaScript comes to.
func (b *browser) eval(expression string) any {
	b.t.Helper()
	result := b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	b.Expect(result).NotTo(HaveKey("exceptionDetails"), expression)
	return result["result"].(map[string]any)["value"]
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url})
}

// resize makes the window that large, as on a screen of normal density.
func (b *browser) resize(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// text waits until the text of the first element that a selector finds matches.
func (b *browser) text(selector string, matcher any) {
	b.t.Helper()
	expression := `document.querySelector(` + strconv.Quote(selector) + `)?.innerText ?? ""`
	b.Eventually(func() any { return b.eval(expression) }).WithTimeout(30*time.Second).Should(matcher.(OmegaMatcher), selector)
}

// click presses the mouse on the first visible element that a selector finds, once there is one, and again where the element
// moved away under the mouse.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.Eventually(func() bool {
		at, _ := b.eval(`(() => {
			const element = document.querySelector(` + strconv.Quote(selector) + `);
			if (!element || !element.checkVisibility()) return null;
			element.scrollIntoView({block: "center"});
			window.clicked = false;
			element.addEventListener("click", () => { window.clicked = true; }, {once: true});
			const box = element.getBoundingClientRect();
			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`).([]any)
		if at == nil {
			return false
		}
		for _, kind := range []string{"mousePressed", "mouseReleased"} {
			b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
		}
		return b.eval("window.clicked") == true
	}).WithTimeout(30*time.Second).Should(BeTrue(), selector)
}

// takeScreenshot returns a PNG of the window.
func (b *browser) takeScreenshot() []byte {
	b.t.Helper()
	result := b.call("Page.captureScreenshot", map[string]any{"format": "png"})
	png, err := base64.StdEncoding.DecodeString(result["data"].(string))
	b.Expect(err).NotTo(HaveOccurred())
	return png
}

// emulateScheme makes the page see a user who prefers a color scheme, light or dark.
func (b *browser) emulateScheme(scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// keyCodes are the Windows virtual key codes that Chromium knows keys by.
var keyCodes = map[string]int{"Tab": 9, "Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}

// pressKey presses and releases a key.
func (b *browser) pressKey(key string) {
	b.t.Helper()
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key]}
	if key == "Enter" {
		event["text"] = "\r"
	}
	b.call("Input.dispatchKeyEvent", event)
	event["type"] = "keyUp"
	delete(event, "text")
	b.call("Input.dispatchKeyEvent", event)
}
