package docs

import (
	"bytes"
	"encoding/json"
	"io"
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
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

const (
	rawSecret      = "an ordinary secret with spaces, $igns and 'quotes' ä"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// event is a request at a receiver.
type event struct {
	header http.Header
	body   []byte
}

// sendEvent makes phoneproof send an event that is signed with the secrets at a time, and returns it.
func sendEvent(t *testing.T, current, previous string, at time.Time) event {
	t.Helper()
	number, err := phone.FromE164("+4915112345678")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return sendEventOf(t, current, previous, at, &verification.Request{
		ID: "vr4soqontb52m5bmeyx7bop4b4", Phone: number, Actual: number, Method: verification.Telegram, Phase: verification.Verified,
		CreatedAt: at, VerifiedAt: at,
	})
}

// sendEventOf is sendEvent for the event of a request.
func sendEventOf(t *testing.T, current, previous string, at time.Time, r *verification.Request) event {
	t.Helper()
	g := NewWithT(t)
	received := make(chan event, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			received <- event{r.Header, body}
		}
	}))
	defer receiver.Close()
	e, err := webhook.NewEvent("default/shop", r)
	g.Expect(err).NotTo(HaveOccurred())
	sender := webhook.NewSender(webhook.Options{
		Guard: webhook.NewDevGuard(webhook.GuardConfig{}), Clock: clocktesting.NewFakePassiveClock(at),
	})
	defer sender.Close()
	result, err := sender.Send(t.Context(), webhook.NewEndpoint("default", &settings.Webhook{
		URL: receiver.URL, Signed: true, Secret: settings.NewSecret([]byte(current)), PreviousSecret: settings.NewSecret([]byte(previous)),
		Timeout: time.Minute,
	}), e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.StatusCode).To(Equal(http.StatusOK))
	return <-received
}

// signatureCase is an input of a snippet with the expected verdict. It is written as JSON for the snippets' programs.
type signatureCase struct {
	Name      string            `json:"name"`
	Secret    string            `json:"secret"`
	Body      string            `json:"body"`
	Headers   map[string]string `json:"headers"`
	Authentic bool              `json:"-"`
}

// signatureCases returns authentic and other events. The previous secret of a rotation makes no x-webhook-signature.
func signatureCases(t *testing.T, standard bool) []signatureCase {
	t.Helper()
	var cases []signatureCase
	add := func(name, secret string, e event, authentic bool, changes ...string) {
		headers := map[string]string{}
		for key := range e.header {
			headers[strings.ToLower(key)] = e.header.Get(key)
		}
		for i := 0; i < len(changes); i += 2 {
			headers[changes[i]] = changes[i+1]
		}
		cases = append(cases, signatureCase{name, secret, string(e.body), headers, authentic})
	}
	for current, previous := range map[string]string{rawSecret: standardSecret, standardSecret: rawSecret} {
		alone, rotation := sendEvent(t, current, "", time.Now()), sendEvent(t, current, previous, time.Now())
		forged := event{alone.header, bytes.Replace(alone.body, []byte("+49151"), []byte("+49152"), 1)}
		add("good", current, alone, true)
		add("rotation, new secret", current, rotation, true)
		add("rotation, old secret", previous, rotation, standard)
		add("another secret", previous, alone, false)
		add("a longer secret", current+"abcd", alone, false)
		add("forged body", current, forged, false)
		if standard {
			add("no signature", current, alone, false, "webhook-signature", "")
			add("another version", current, alone, false, "webhook-signature", "v2"+alone.header.Get("Webhook-Signature")[2:])
			add("another id", current, alone, false, "webhook-id", "evt_2")
			add("another time", current, alone, false, "webhook-timestamp", strconv.FormatInt(time.Now().Unix()+100, 10))
			add("no time", current, alone, false, "webhook-timestamp", "soon")
			add("replayed an hour later", current, sendEvent(t, current, "", time.Now().Add(-time.Hour)), false)
		} else {
			add("no signature", current, alone, false, "x-webhook-signature", "")
			add("of another length", current, alone, false, "x-webhook-signature", alone.header.Get("X-Webhook-Signature")[:62])
		}
	}
	return cases
}

// checkVerdicts checks that a program distinguishes authentic events from others. The program reads signatureCases and prints
// a list of booleans.
func checkVerdicts(t *testing.T, cases []signatureCase, dir, program string, args ...string) {
	t.Helper()
	g := NewWithT(t)
	input, err := json.Marshal(cases)
	g.Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred(), stderr.String())
	var verdicts []bool
	g.Expect(json.Unmarshal(output, &verdicts)).To(Succeed(), string(output))
	g.Expect(verdicts).To(HaveLen(len(cases)))
	for i, c := range cases {
		g.Expect(verdicts[i]).To(Equal(c.Authentic), "%s, secret %q", c.Name, c.Secret)
	}
}

// lookPathOrSkip returns the path of a program, and skips the test if it is not installed.
func lookPathOrSkip(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	return path
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
}

// opensslBlock checks commands that verify x-webhook-signature, with the body in the file body, and $SECRET and $SIGNATURE.
func opensslBlock(t *testing.T, _ *reader, b block) {
	t.Helper()
	lookPathOrSkip(t, "openssl")
	g := NewWithT(t)
	for _, c := range signatureCases(t, false) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "body"), c.Body)
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", b.text)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "SECRET="+c.Secret, "SIGNATURE="+c.Headers["x-webhook-signature"])
		out, err := shell.CombinedOutput()
		g.Expect(err == nil && string(out) == "authentic\n").To(Equal(c.Authentic), "%s, secret %q: %s", c.Name, c.Secret, out)
	}
}

// nodeModules is where make verify-clients installs npm packages.
const nodeModules = root + "/bin/clients/npm/node_modules"

// nodeBlock returns a check of a snippet for Node, which verifies headers, rawBody and secret; verdict is the expression of its result.
// The snippet imports the first one of the libraries, and is run with each of them.
func nodeBlock(verdict string, libraries ...string) check {
	return func(t *testing.T, _ *reader, b block) {
		t.Helper()
		node := lookPathOrSkip(t, "node")
		modules, err := filepath.Abs(nodeModules)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, library := range libraries {
			t.Run(library, func(t *testing.T) {
				if _, err := os.Stat(filepath.Join(modules, library)); err != nil {
					t.Skipf("the npm package %s is not installed; make verify-clients installs it and runs this", library)
				}
				NewWithT(t).Expect(b.text).To(ContainSubstring("from '" + libraries[0] + "'"))
				runNode(t, node, strings.Replace(b.text, "from '"+libraries[0]+"'", "from '"+library+"'", 1), verdict, modules)
			})
		}
	}
}

func runNode(t *testing.T, node, snippet, verdict, modules string) {
	t.Helper()
	dir := t.TempDir()
	NewWithT(t).Expect(os.Symlink(modules, filepath.Join(dir, "node_modules"))).To(Succeed())
	var imports, body strings.Builder
	for line := range strings.Lines(snippet) {
		if strings.HasPrefix(line, "import ") { // only allowed at the top of a file
			imports.WriteString(line)
		} else {
			body.WriteString(line)
		}
	}
	writeFile(t, filepath.Join(dir, "main.mjs"), imports.String()+`import { readFileSync } from 'node:fs'
function judge(secret, rawBody, headers) {
`+body.String()+`
return `+verdict+`
}
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map((c) => {
  try { return Boolean(judge(c.secret, Buffer.from(c.body), c.headers)) } catch (e) {
    if (e instanceof ReferenceError || e instanceof SyntaxError) throw e
    return false
  }
})))
`)
	checkVerdicts(t, signatureCases(t, true), dir, node, "main.mjs")
}
