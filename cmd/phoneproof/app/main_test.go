package app

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/ports"
)

// command runs the program with arguments and returns what it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand(server.Dependencies{})
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestVersion(t *testing.T) {
	g := NewWithT(t)
	out, err := command(t, "version")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("commit"))
	g.Expect(command(t, "--version")).To(HaveSuffix(out))
}

func TestCompletion_offersValuesOfFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--store", ""}, "kubernetes\nmemory\npostgresql\n:4\n"},
		{[]string{"serve", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n:4\n"},
		{[]string{"serve", "--project-file", ""}, "yaml\nyml\njson\n:8\n"},
		{[]string{"dev", "--secrets-dir", ""}, ":16\n"},
		{[]string{"operator", "--server-image-pull-policy", ""}, "Always\nIfNotPresent\nNever\n:4\n"},
		{[]string{"operator", "--server-log-format", ""}, "json\ntext\n:4\n"},
		{[]string{"operator", "--allow-service-type", ""}, "ClusterIP\nNodePort\nLoadBalancer\n:4\n"},
		{[]string{"simulator", "--log-format", ""}, "json\ntext\n:4\n"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			NewWithT(t).Expect(command(t, append([]string{"__complete"}, test.args...)...)).To(Equal(test.want))
		})
	}
}

func TestKeygen_makesAnotherValidKeyEachTime(t *testing.T) {
	g := NewWithT(t)
	first, err := command(t, "keygen")
	g.Expect(err).NotTo(HaveOccurred())
	second, err := command(t, "keygen")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first).NotTo(Equal(second))
	g.Expect(settings.CheckFormat([]byte(strings.TrimSpace(first)))).To(Succeed())
}

func TestServe_refusesWhatItCannotDo(t *testing.T) {
	project := "--project-file=" + writeProject(t, t.TempDir())
	secrets := "--secrets-dir=" + t.TempDir()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no project":           {nil, "one of --project NAMESPACE/NAME and --project-file FILE is required"},
		"two projects":         {[]string{project, "--project=demo/shop", secrets}, "--project and --project-file exclude each other"},
		"no secrets":           {[]string{project}, "--secrets-dir is required"},
		"no secrets folder":    {[]string{project, "--secrets-dir=missing"}, "--secrets-dir: stat missing: no such file"},
		"a file for a folder":  {[]string{project, "--secrets-dir=main_test.go"}, "--secrets-dir: main_test.go is not a folder"},
		"unknown store":        {[]string{project, secrets, "--store=redis"}, `--store is "redis": want memory or postgresql here`},
		"no database":          {[]string{project, secrets, "--store=postgresql"}, "the project has no database"},
		"no such file":         {[]string{"--project-file=missing.yaml", secrets}, "missing.yaml"},
		"long drain":           {[]string{project, secrets, "--drain-delay=1h"}, "--drain-delay"},
		"no such level":        {[]string{project, secrets, "--log-level=loud"}, "--log-level"},
		"no such format":       {[]string{project, secrets, "--log-format=xml"}, "--log-format"},
		"webhooks to loopback": {[]string{project, secrets, "--webhook-allow=127.0.0.0/8"}, "always refused"},
		"no rule":              {[]string{project, secrets, "--webhook-deny=everything"}, "--webhook-deny"},
		"no address":           {[]string{project, secrets, "--bind-address=nowhere"}, "--bind-address"},
		"an empty address":     {[]string{project, secrets, "--bind-address="}, `--bind-address is "": want HOST:PORT or :PORT`},
		"no port for probes":   {[]string{project, secrets, "--health-bind-address=127.0.0.1:"}, "--health-bind-address"},
		"an argument":          {[]string{"project.yaml"}, "use --project-file project.yaml"},
		"an unknown flag":      {[]string{"--projectfile=project.yaml"}, "unknown flag: --projectfile; see phoneproof serve --help"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := command(t, append([]string{"serve"}, test.args...)...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.want)))
		})
	}
}

// patience is how long a test waits for what must happen, on a machine that is busy with other things.
const patience = time.Minute

// process is a serve that runs until the test ends.
type process struct {
	*WithT

	t      *testing.T
	api    string
	health string
	key    string
	stop   context.CancelFunc
	ended  chan error
	log    *gbytes.Buffer
}

func startServe(t *testing.T, more ...string) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		WithT: NewWithT(t), t: t, api: ports.Address(t), health: ports.Address(t), ended: make(chan error, 1), log: gbytes.NewBuffer(),
	}
	key, err := command(t, "keygen")
	p.Expect(err).NotTo(HaveOccurred())
	p.key = strings.TrimSpace(key)
	writeSecret(t, dir, "shop-backend/api-key", key)
	writeSecret(t, dir, "shop-wa/access-token", "EAAG0123456789")
	writeSecret(t, dir, "shop-wa/app-secret", appSecret)

	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	cmd := newCommand(server.Dependencies{})
	cmd.SetErr(p.log)
	cmd.SetArgs(append([]string{
		"serve", "--project-file", writeProject(t, dir), "--secrets-dir", dir, "--drain-delay=100ms",
		"--bind-address", p.api, "--health-bind-address", p.health,
		// Replies must not leave the machine.
		"--whatsapp-url", "http://127.0.0.1:1", "--telegram-url", "http://127.0.0.1:1",
	}, more...))
	go func() { p.ended <- cmd.ExecuteContext(ctx) }()
	t.Cleanup(stop)
	p.Eventually(func() (int, error) { return p.status("http://" + p.health + "/readyz") }).WithTimeout(patience).
		Should(Equal(http.StatusOK))
	return p
}

func (p *process) status(url string) (int, error) {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// call sends a request with the API key and decodes the answer.
func (p *process) call(method, path, body string) (int, map[string]any) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://"+p.api+path, strings.NewReader(body))
	p.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+p.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	p.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	var answer map[string]any
	p.Expect(json.NewDecoder(response.Body).Decode(&answer)).To(Succeed())
	return response.StatusCode, answer
}

func TestServe_answersFromAProjectFile(t *testing.T) {
	p := startServe(t)
	code, started := p.call(http.MethodPost, "/api/verify/init", `{"phoneNumber": "+49 1511 2345678"}`)
	p.Expect(code).To(Equal(http.StatusOK))
	p.Expect(started).To(HaveKeyWithValue("expiresIn", "600s"))
	p.Expect(started["waLink"]).To(HavePrefix("https://wa.me/4915112345670?text="))
	id, ok := started["requestId"].(string)
	p.Expect(ok).To(BeTrue())

	code, status := p.call(http.MethodGet, "/api/verify/status?id="+id, "")
	p.Expect(code).To(Equal(http.StatusOK))
	p.Expect(status).To(HaveKeyWithValue("status", "PENDING"))
	p.Expect(status).To(HaveKeyWithValue("phoneNumber", "+4915112345678"))
}

const appSecret = "0123456789abcdef0123456789abcdef"

// postMessage plays Meta: it posts the text of a verification from a number, with a signature, and returns the status.
func (p *process) postMessage(started map[string]any, from, secret string) int {
	p.t.Helper()
	body, err := json.Marshal(map[string]any{
		"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"id": "1", "changes": []any{map[string]any{"field": "messages", "value": map[string]any{
			"messaging_product": "whatsapp",
			"metadata":          map[string]any{"display_phone_number": "4915112345670", "phone_number_id": "1234567890"},
			"messages": []any{map[string]any{
				"from": from, "id": "wamid.1", "timestamp": strconv.FormatInt(time.Now().Unix(), 10),
				"type": "text", "text": map[string]any{"body": started["expectedText"]},
			}},
		}}}}},
	})
	p.Expect(err).NotTo(HaveOccurred())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.api+"/hooks/whatsapp", bytes.NewReader(body))
	p.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

func TestServe_verifiesThroughASignedMessage(t *testing.T) {
	p := startServe(t)
	code, started := p.call(http.MethodPost, "/api/verify/init", `{"phoneNumber": "+49 1511 2345678"}`)
	p.Expect(code).To(Equal(http.StatusOK))
	status := func() any {
		_, answer := p.call(http.MethodGet, "/api/verify/status?id="+started["requestId"].(string), "")
		return answer["status"]
	}
	p.Expect(p.postMessage(started, "4915112345678", "another secret")).To(Equal(http.StatusForbidden))
	p.Expect(status()).To(Equal("PENDING"), "a forged message proves nothing")
	p.Expect(p.postMessage(started, "4915112345679", appSecret)).To(Equal(http.StatusOK))
	p.Expect(status()).To(Equal("PENDING"), "another sender proves nothing, and uses nothing up")
	p.Expect(p.postMessage(started, "4915112345678", appSecret)).To(Equal(http.StatusOK))
	p.Expect(status()).To(Equal("VERIFIED"))
}

// TestServe_sendsNothingToLoopback runs the shipped program in the environment that opens loopback to the program of tests.
func TestServe_sendsNothingToLoopback(t *testing.T) {
	t.Setenv("PHONEPROOF_TEST_AS_PROCESS", "1")
	t.Setenv("PHONEPROOF_TEST_CLOCK_OFFSET", "1h")
	called := make(chan struct{}, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- struct{}{} }))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	project := writeProject(t, dir)
	content, err := os.ReadFile(project)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	writeSecret(t, dir, "project.yaml", string(content)+"  webhook: {url: "+receiver.URL+"/hook}\n")
	p := startServe(t, "--project-file", project)
	code, started := p.call(http.MethodPost, "/api/verify/init", `{"phoneNumber": "+49 1511 2345678"}`)
	p.Expect(code).To(Equal(http.StatusOK))
	p.Expect(p.postMessage(started, "4915112345678", appSecret)).To(Equal(http.StatusOK))
	p.Eventually(func(g Gomega) string {
		response, err := http.Get("http://" + p.health + "/metrics")
		g.Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		metrics, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		return string(metrics)
	}).WithTimeout(patience).Should(ContainSubstring(`phoneproof_webhook_attempts_total{outcome="retry",reason="blocked_address"} 1`))
	p.Expect(called).To(BeEmpty())
}

func TestServe_endsInOrder(t *testing.T) {
	p := startServe(t, "--drain-delay=5s") // long enough to be seen by a machine that is busy
	p.stop()
	p.Eventually(func() (int, error) { return p.status("http://" + p.health + "/readyz") }).WithTimeout(patience).
		Should(Equal(http.StatusServiceUnavailable), "readiness goes first")
	p.Eventually(p.ended).WithTimeout(patience).Should(Receive(BeNil()))
}

func writeSecret(t *testing.T, dir, name, value string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeProject(t *testing.T, dir string) string {
	t.Helper()
	writeSecret(t, dir, "project.yaml", `
apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata: {name: shop, namespace: demo}
spec:
  displayName: Ada's Bookshop
  apiKeys:
  - name: backend
    secretRef: {name: shop-backend, key: api-key}
  whatsapp:
    phoneNumber: "+4915112345670"
    phoneNumberID: "1234567890"
    accessTokenSecretRef: {name: shop-wa, key: access-token}
    appSecretRef: {name: shop-wa, key: app-secret}
    registerWebhook: false
`)
	return filepath.Join(dir, "project.yaml")
}
