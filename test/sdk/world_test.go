package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// project is what dev serves. Its limits are wide: each scenario is played in three languages at once.
const project = `apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata: {name: shop}
spec:
  displayName: Ada's Bookshop
  apiKeys:
  - {name: backend, scopes: [Init, Status, Deliver, Read, Redeliver], secretRef: {name: shop, key: api-key}}
  - {name: staging, mode: Test, scopes: [Init, Status, Deliver], secretRef: {name: shop, key: test-key}}
  webhook:
    url: %[1]s/live
    testURL: %[1]s/test
    secretRef: {name: shop, key: webhook}
    testSecretRef: {name: shop, key: test-webhook}
    events: [verification.success, verification.expired]
  whatsapp:
    phoneNumber: "+4915112345670"
    phoneNumberID: "1234567890"
    accessTokenSecretRef: {name: shop, key: whatsapp}
    appSecretRef: {name: shop, key: whatsapp}
    codes: {templateName: sign_in, languages: [en], allowedCountries: [DE], maxPerDay: 400}
  rateLimit:
    perPhoneNumber: {requests: 100, period: 1m}
    perSubject: {requests: 1000, period: 1m}
    perPrefix: {digits: 6, requests: 1000, period: 1m}
`

// world is a running dev, with a receiver of its events.
type world struct {
	api, simulator     string
	key, testKey       string
	secret, testSecret string

	mu      sync.Mutex
	numbers int
	events  []event // that were received
}

// event is a POST of a webhook.
type event struct {
	header http.Header
	body   []byte
}

// startWorld runs dev on free ports until the test ends.
func startWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{}
	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	tb.Cleanup(receiver.Close)
	folder := tb.TempDir()
	file := filepath.Join(folder, "project.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, project, receiver.URL), 0o600); err != nil {
		tb.Fatal(err)
	}
	program := "../../bin/phoneproof-" + runtime.GOOS + "-" + runtime.GOARCH
	dev := exec.Command(program, "dev", "--project-file="+file, "--bind-address=127.0.0.1:0", "--simulator-bind-address=127.0.0.1:0",
		"--health-bind-address=127.0.0.1:0")
	dev.Env = append(os.Environ(), "XDG_CACHE_HOME="+folder) // it keeps made-up secrets there
	dev.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	dev.Stderr = &stderr
	stdout, err := dev.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := dev.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = dev.Process.Kill() // it may have ended
		_ = dev.Wait()
	})
	silent := time.AfterFunc(patience, func() { _ = dev.Process.Kill() })
	defer silent.Stop()
	w.readAddresses(stdout)
	if w.testSecret == "" {
		tb.Fatalf("dev ended, or printed no address, keys and secrets for %s: %s", patience, &stderr)
	}
	for { // it prints before it listens
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.api, "http://"))
		if err == nil {
			_ = conn.Close()
			return w
		}
		if dev.Process.Signal(syscall.Signal(0)) != nil {
			tb.Fatalf("dev ended: %s", &stderr)
		}
	}
}

// readAddresses reads what dev prints up to the lines that one may paste.
func (w *world) readAddresses(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Try it:") {
		words := append(strings.Fields(lines.Text()), "", "", "", "")
		switch {
		case words[0] == "Page":
			w.simulator = strings.TrimSuffix(words[1], "/")
		case words[0] == "API" && words[1] != "key":
			w.api = words[1]
		case words[0] == "API" && words[3] == "backend:":
			w.key = words[2]
		case words[0] == "API" && words[3] == "staging:":
			w.testKey = words[2]
		case words[0] == "Webhook" && words[3] == "spec.webhook.secretRef":
			w.secret = words[2]
		case words[0] == "Webhook" && words[3] == "spec.webhook.testSecretRef":
			w.testSecret = words[2]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // ends with dev
}

// receive takes the events.
func (w *world) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{r.Header, body})
}

// eventsOf returns the events of a request that came.
func (w *world) eventsOf(requestID string) (events []event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if bytes.Contains(e.body, []byte(`"`+requestID+`"`)) {
			events = append(events, e)
		}
	}
	return events
}

// newUser returns the number of a new user of a simulated phone.
func (w *world) newUser() (string, error) {
	w.mu.Lock()
	w.numbers++
	number := fmt.Sprintf("+4915113%06d", w.numbers)
	w.mu.Unlock()
	return number, w.post("/sim/users", object{"name": "Ada", "phone": number})
}

// send has a user open a link and send its text.
func (w *world) send(number, link string) error {
	return w.post("/sim/users/"+number+"/send", object{"link": link})
}

func (w *world) post(path string, body object) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	response, err := http.Post(w.simulator+path, "application/json", bytes.NewReader(content))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the simulator answers %d to %s", response.StatusCode, path)
	}
	return nil
}
