package webhook

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/settings"
)

const (
	rawSecret    = "an ordinary secret with spaces, $igns and 'quotes'"
	base64Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	// Made with openssl.
	pinnedHex      = "390414d09d77cb8a536f415c8f9359ede6703558482b925c2843c65f344cb174"
	pinnedStandard = "v1,bRV0qDJd9O5fyaz8XSSEEF0NDrEaxu09UEPsqhf8/+4= v1,30dnYR/QgnG2jDwZu3Q1/3BlZZ83STtHTFnWWD7wX8I="
)

// signed returns the headers of an event that was signed now.
func signed(secrets ...string) http.Header {
	h := http.Header{}
	values := make([][]byte, 0, len(secrets))
	for _, s := range secrets {
		values = append(values, []byte(s))
	}
	sign(h, testEvent(), values, time.Now())
	return h
}

func TestSign_satisfiesTheStandardLibrary(t *testing.T) {
	body := testEvent().body
	standard := func(secret string) *standardwebhooks.Webhook {
		wh, err := standardwebhooks.NewWebhook(secret)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return wh
	}
	raw := func(secret string) *standardwebhooks.Webhook {
		wh, err := standardwebhooks.NewWebhookRaw([]byte(secret))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return wh
	}
	t.Run("base64 key", func(t *testing.T) {
		NewWithT(t).Expect(standard(base64Secret).Verify(body, signed(base64Secret))).To(Succeed())
	})
	t.Run("raw key", func(t *testing.T) {
		NewWithT(t).Expect(raw(rawSecret).Verify(body, signed(rawSecret))).To(Succeed())
	})
	t.Run("prefix without base64 is a raw key", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(raw("whsec_not base64!").Verify(body, signed("whsec_not base64!"))).To(Succeed())
		g.Expect(raw("whsec_").Verify(body, signed("whsec_"))).To(Succeed())
	})
	t.Run("rotation: holders of either secret are content", func(t *testing.T) {
		g := NewWithT(t)
		h := signed(rawSecret, base64Secret)
		g.Expect(raw(rawSecret).Verify(body, h)).To(Succeed())
		g.Expect(standard(base64Secret).Verify(body, h)).To(Succeed())
		g.Expect(raw("another").Verify(body, h)).NotTo(Succeed())
		g.Expect(strings.Fields(h.Get(headerStandardSignatures))).To(HaveLen(2))
	})
	t.Run("another body is refused", func(t *testing.T) {
		NewWithT(t).Expect(raw(rawSecret).Verify(append([]byte(" "), body...), signed(rawSecret))).NotTo(Succeed())
	})
}

func TestSign_pinned(t *testing.T) {
	g := NewWithT(t)
	h := http.Header{}
	e := Event{id: "evt_1", body: []byte(`{"event":"verification.success"}`)}
	sign(h, e, [][]byte{[]byte(base64Secret), []byte("old")}, time.Unix(1_795_000_000, 999))
	g.Expect(h).To(Equal(http.Header{
		"Webhook-Id":          {"evt_1"},
		"Webhook-Timestamp":   {"1795000000"},
		"X-Webhook-Signature": {pinnedHex},
		"Webhook-Signature":   {pinnedStandard},
	}))
}

// TestSign_satisfiesOpenSSL runs the commands that the documentation gives, as a reader would: with the body in the file
// body, the secret in $SECRET and the header's value in $SIGNATURE.
func TestSign_satisfiesOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	documents, err := filepath.Glob("../../docs/*.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	const readme = "../../README.md"
	for _, document := range append(documents, readme) {
		commands := documentedCommands(t, document)
		if document == readme {
			NewWithT(t).Expect(commands).To(HaveLen(1))
		}
		for _, command := range commands {
			t.Run(filepath.Base(document), func(t *testing.T) { checkCommand(t, command) })
		}
	}
}

// shellBlock is a block of shell commands in Markdown.
var shellBlock = regexp.MustCompile("(?s)```(?:sh|shell|bash|console)\n(.*?)```")

// documentedCommands returns the blocks of a document that check a signature.
func documentedCommands(t *testing.T, document string) []string {
	t.Helper()
	text, err := os.ReadFile(document)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var commands []string
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "openssl dgst") && strings.Contains(block[1], "$SIGNATURE") {
			commands = append(commands, block[1])
		}
	}
	return commands
}

// checkCommand shows that a command tells a signature from what is none.
func checkCommand(t *testing.T, command string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(strings.Split(strings.TrimSpace(command), "\n")).To(HaveLen(3))
	verify := func(secret, signature string) (string, error) {
		shell := exec.Command("/bin/sh", "-c", command)
		shell.Dir = t.TempDir()
		shell.Env = append(os.Environ(), "SECRET="+secret, "SIGNATURE="+signature)
		g.Expect(os.WriteFile(filepath.Join(shell.Dir, "body"), testEvent().body, 0o600)).To(Succeed())
		out, err := shell.CombinedOutput()
		return string(out), err
	}
	for _, secret := range []string{rawSecret, base64Secret} {
		signature := signed(secret).Get(headerSignature)
		g.Expect(verify(secret, signature)).To(Equal("authentic\n"))
		_, err := verify(secret+"x", signature)
		g.Expect(err).To(HaveOccurred())
		_, err = verify(secret, strings.ToUpper(signature))
		g.Expect(err).To(HaveOccurred())
	}
}

func TestActiveSecrets(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = "former" + strconv.Itoa(i)
	}
	for name, c := range map[string]struct {
		current, previous fakeSecret
		want              []string
	}{
		"one":                 {fakeSecret{current: "a"}, fakeSecret{}, []string{"a"}},
		"declared previous":   {fakeSecret{current: "a"}, fakeSecret{current: "b"}, []string{"a", "b"}},
		"replaced in place":   {fakeSecret{"a", []string{"z"}}, fakeSecret{}, []string{"a", "z"}},
		"all":                 {fakeSecret{"a", []string{"z"}}, fakeSecret{"b", []string{"y"}}, []string{"a", "b", "y", "z"}},
		"none twice":          {fakeSecret{"a", []string{"b", "a"}}, fakeSecret{"b", []string{"a"}}, []string{"a", "b"}},
		"unreadable":          {fakeSecret{}, fakeSecret{current: "b"}, nil},
		"previous unreadable": {fakeSecret{current: "a"}, fakeSecret{former: []string{"b"}}, []string{"a"}},
		"bounded":             {fakeSecret{"a", many}, fakeSecret{current: "b"}, append([]string{"a", "b"}, many[:6]...)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range activeSecrets(c.current, c.previous, time.Time{}) {
				got = append(got, string(s))
			}
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}

func TestActiveSecrets_ofAnUnreadableSetting(t *testing.T) {
	NewWithT(t).Expect(activeSecrets(settings.Secret{}, settings.Secret{}, time.Now())).To(BeEmpty())
}

func TestStandardKey(t *testing.T) {
	g := NewWithT(t)
	want, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(standardKey([]byte(base64Secret))).To(Equal(want))
	g.Expect(standardKey([]byte("whsec_MfKQ9r8"))).To(BeEquivalentTo("whsec_MfKQ9r8"), "no padding, no base64")
	g.Expect(standardKey([]byte("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))).To(BeEquivalentTo("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
}
