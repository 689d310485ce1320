package settings

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// fixture is a Live with a folder of secrets, a fake clock and its logs.
type fixture struct {
	*Live
	dir   string
	clock *clocktesting.FakeClock
	logs  *gbytes.Buffer
}

func newLogger() (logr.Logger, *gbytes.Buffer) {
	logs := gbytes.NewBuffer()
	return logr.FromSlogHandler(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.Level(-10)})), logs
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	log, logs := newLogger()
	f := &fixture{dir: t.TempDir(), clock: clocktesting.NewFakeClock(start), logs: logs}
	f.Live = NewLive(f.dir, f.clock, log)
	layOut(t, f.dir, newValues())
	NewWithT(t).Expect(f.SetProject(newProject())).To(Succeed())
	return f
}

// writeSecret writes one secret and reloads.
func (f *fixture) writeSecret(t testing.TB, key, value string) {
	t.Helper()
	layOut(t, f.dir, map[string]string{key: value})
	f.reloadSecrets()
}

func (f *fixture) removeSecret(t testing.TB, key string) {
	t.Helper()
	NewWithT(t).Expect(os.Remove(filepath.Join(f.dir, "shop", key))).To(Succeed())
	f.reloadSecrets()
}

func (f *fixture) logged() string { return string(f.logs.Contents()) }

func TestLive_without_project(t *testing.T) {
	g := NewWithT(t)
	l := NewLive(t.TempDir(), clocktesting.NewFakeClock(start), logr.Discard())
	l.reloadSecrets()
	g.Expect(l.Current()).To(BeNil())
	g.Expect(l.Problems()).To(BeEmpty())
	g.Expect(l.LastError()).NotTo(HaveOccurred())
	g.Expect(l.NeedLeaderElection()).To(BeFalse())
}

// TestLive_rotation replaces each kind of secret. Both values work until Overlap has passed, without another read of the files.
func TestLive_rotation(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	const rotatedApp = "fedcba9876543210fedcba9876543210"
	for key, value := range map[string]string{
		"backend": apiKey("rotated"), "webhook": "the-rotated-webhook-secret", "app": rotatedApp, "bot": "2:rotated", "token": "rotated-token",
	} {
		f.writeSecret(t, key, value)
	}
	s := f.Current()
	g.Expect(s.Problems).To(BeEmpty())
	g.Expect(s.EventPolicy()).To(Equal(verification.EventsOn))
	for at, want := range map[time.Duration]struct {
		former string
		values int
	}{0: {"backend", 2}, Overlap - 1: {"backend", 2}, Overlap: {"", 1}} {
		now := start.Add(at)
		g.Expect(findKeyName(s, apiKey("rotated"), now)).To(Equal("backend"))
		g.Expect(findKeyName(s, apiKey("backend"), now)).To(Equal(want.former))
		for _, secret := range []Secret{s.Webhook.Secret, s.WhatsApp.AppSecret, s.WhatsApp.AccessToken, s.Telegram.BotToken} {
			g.Expect(secret.Accepted(now)).To(HaveLen(want.values))
			g.Expect(string(secret.Accepted(now)[0])).To(Or(ContainSubstring("rotated"), Equal(rotatedApp)))
		}
	}
	f.clock.Step(Overlap)
	changes, cancel := f.Subscribe()
	defer cancel()
	f.reloadSecrets()
	g.Expect(f.Current().Webhook.Secret.Reveal().previous).To(BeEmpty(), "expired values leave the memory")
	g.Expect(changes).NotTo(Receive(), "the end of a former value is no change")
}

// TestLive_secret_deleted checks that deliveries pause at once, and resume with the secret.
func TestLive_secret_deleted(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	f.removeSecret(t, "webhook")
	g.Expect(f.Current().EventPolicy()).To(Equal(verification.EventsPaused))
	g.Expect(f.Current().Webhook.Secret.Accepted(start)).To(BeEmpty())
	g.Expect(f.Problems()).To(Equal([]Problem{problem(fieldWebhookSecret, "webhook", ReasonMissing)}))

	f.writeSecret(t, "webhook", "another-webhook-secret-of-24")
	g.Expect(f.Current().EventPolicy()).To(Equal(verification.EventsOn))
	g.Expect(joinAccepted(f.Current().Webhook.Secret, start)).To(Equal("another-webhook-secret-of-24"))
	g.Expect(f.Problems()).To(BeEmpty())
}

// TestLive_repair: a receiver was repaired when it takes events again, or when what it is reached or verified by changes.
func TestLive_repair(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	changes, cancel := f.Subscribe()
	defer cancel()
	project := newProject()
	healthy := func(status metav1.ConditionStatus, at time.Time) {
		t.Helper()
		project.Status.Conditions = []metav1.Condition{{
			Type: verifyv1.ConditionWebhookHealthy, Status: status, LastTransitionTime: metav1.NewTime(at),
		}}
		g.Expect(f.SetProject(project)).To(Succeed())
	}
	step := func() time.Time {
		f.clock.Step(time.Minute)
		return f.clock.Now()
	}
	g.Expect(f.Current().Webhook.Repaired).To(BeZero())

	well := step()
	healthy(metav1.ConditionTrue, well)
	g.Expect(f.Current().Webhook.Repaired).To(Equal(well))
	g.Expect(changes).To(Receive(), "all requests are queued again")
	step()
	healthy(metav1.ConditionTrue, well)
	healthy(metav1.ConditionFalse, step())
	healthy(metav1.ConditionUnknown, step())
	g.Expect(changes).NotTo(Receive())
	g.Expect(f.Current().Webhook.Repaired).To(Equal(well), "that it fails is no repair")
	recovered := step()
	healthy(metav1.ConditionTrue, recovered.Add(-time.Second))
	g.Expect(f.Current().Webhook.Repaired).To(Equal(recovered))

	for name, change := range map[string]func(){
		"url": func() { project.Spec.Webhook.URL += "/v2" },
		"caBundle": func() {
			project.Spec.Webhook.CABundle = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
		},
		"secret": func() { f.writeSecret(t, "webhook", "another-webhook-secret-of-24") },
	} {
		repaired := step()
		change()
		project.Generation++
		g.Expect(f.SetProject(project)).To(Succeed())
		g.Expect(f.Current().Webhook.Repaired).To(Equal(repaired), name)
	}
	project.Spec.DisplayName, project.Generation = "another", project.Generation+1
	before := f.Current().Webhook.Repaired
	step()
	g.Expect(f.SetProject(project)).To(Succeed())
	g.Expect(f.Current().Webhook.Repaired).To(Equal(before), "anything else is no repair")

	later := NewLive(f.dir, f.clock, f.log) // the next process
	g.Expect(later.SetProject(project)).To(Succeed())
	g.Expect(later.Current().Webhook.Repaired).To(BeTemporally("==", recovered.Add(-time.Second)), "it knows of the condition")
}

func TestLive_newlineOfTheWebhookSecret(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	g.Expect(f.Current().Webhook.SecretNewline).To(BeFalse())
	for _, end := range []string{"\n", "\r\n", ""} {
		f.writeSecret(t, "webhook", "another-webhook-secret-of-24"+end)
		g.Expect(joinAccepted(f.Current().Webhook.Secret, start)).To(HavePrefix("another-webhook-secret-of-24 "))
		g.Expect(f.Current().Webhook.SecretNewline).To(Equal(end != ""))
	}
}

func TestLive_key_deleted_is_refused_at_once(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	f.writeSecret(t, "backend", apiKey("rotated"))
	f.removeSecret(t, "backend")
	for _, value := range []string{"backend", "rotated"} {
		g.Expect(findKeyName(f.Current(), apiKey(value), start)).To(BeEmpty())
	}
	g.Expect(findKeyName(f.Current(), apiKey("monitor"), start)).To(Equal("monitor"))
}

// TestLive_keys_that_are_gone: for a while an unknown key may be one whose Secret is missing, which nothing is kept of.
func TestLive_keys_that_are_gone(t *testing.T) {
	g := NewWithT(t)
	find := func(l *Live, presented string, after time.Duration) error {
		_, err := l.Current().Keys.Find(presented, start.Add(after))
		return err
	}
	f := newFixture(t)
	stranger := apiKey("stranger")
	g.Expect(find(f.Live, stranger, 0)).To(Equal(ErrKeyUnknown), "each Secret is there")
	f.removeSecret(t, "backend")
	f.clock.Step(time.Minute)
	f.reloadSecrets()
	for _, unknown := range []string{stranger, apiKey("backend")} {
		g.Expect(find(f.Live, unknown, 0)).To(Equal(ErrKeysUnavailable))
		g.Expect(find(f.Live, unknown, 10*time.Minute-1)).To(Equal(ErrKeysUnavailable))
		g.Expect(find(f.Live, unknown, 10*time.Minute)).To(Equal(ErrKeyUnknown))
	}
	g.Expect(find(f.Live, "pp_malformed", 0)).To(Equal(ErrKeyUnknown))
	g.Expect(find(f.Live, apiKey("monitor"), 0)).To(Succeed())

	next := NewLive(f.dir, f.clock, f.log) // another pod, which starts a minute later
	g.Expect(next.SetProject(newProject())).To(Succeed())
	g.Expect(find(next, stranger, 11*time.Minute-1)).To(Equal(ErrKeysUnavailable))
	g.Expect(find(next, stranger, 11*time.Minute)).To(Equal(ErrKeyUnknown))
	next.SetMounted(Mounted{})
	next.reloadSecrets()
	g.Expect(find(next, stranger, time.Hour)).To(Equal(ErrKeysUnavailable), "one awaits a rollout")

	removed := newProject()
	removed.Spec.APIKeys = removed.Spec.APIKeys[1:]
	g.Expect(f.SetProject(removed)).To(Succeed())
	g.Expect(find(f.Live, apiKey("backend"), 0)).To(Equal(ErrKeyUnknown), "a key is revoked by removing its entry")
	g.Expect(f.SetProject(newProject())).To(Succeed())
	f.writeSecret(t, "backend", apiKey("backend"))
	g.Expect(find(f.Live, apiKey("backend"), 0)).To(Succeed())
	g.Expect(find(f.Live, stranger, 0)).To(Equal(ErrKeyUnknown))
}

func TestLive_settings_are_replaced_as_a_whole(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	before := f.Current()
	f.writeSecret(t, "backend", apiKey("rotated"))
	g.Expect(findKeyName(before, apiKey("rotated"), start)).To(BeEmpty(), "old settings keep the old state")
	g.Expect(findKeyName(f.Current(), apiKey("rotated"), start)).To(Equal("backend"))
	f.removeSecret(t, "app")
	g.Expect(before.WhatsApp.AppSecret.Usable()).To(BeTrue())
}

func TestLive_nothing_new_changes_nothing(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	before, logged := f.Current(), f.logged()
	changes, cancel := f.Subscribe()
	defer cancel()
	f.reloadSecrets()
	f.writeSecret(t, "app", goodAppSecret+"\n")
	p := newProject()
	p.ResourceVersion, p.Annotations = "2", map[string]string{"a": "b"}
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(f.Current()).To(BeIdenticalTo(before))
	g.Expect(f.logged()).To(Equal(logged))
	g.Expect(changes).NotTo(Receive())
}

func TestLive_generation_without_changes_notifies_and_does_not_log(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	logged := f.logged()
	changes, cancel := f.Subscribe()
	defer cancel()
	p := newProject()
	p.Generation = 7
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(f.Current().Generation).To(BeEquivalentTo(7))
	g.Expect(changes).To(Receive(), "conditions must report the new generation")
	g.Expect(f.logged()).To(Equal(logged))
}

func TestLive_change_notifies_and_logs_once(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	changes, cancel := f.Subscribe()
	defer cancel()
	p := newProject()
	p.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: 7, Period: "1m"}
	p.Spec.Webhook.URL = "https://shop.example.com/hook/" + canary
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(f.Current().Limits.PerKey.Requests).To(Equal(7))
	g.Expect(changes).To(Receive())
	f.writeSecret(t, "backend", apiKey("rotated"))
	f.writeSecret(t, "bot", canary+"/not a token")
	f.reloadSecrets()
	f.writeSecret(t, "bot", "2:repaired")
	g.Expect(changes).To(Receive())
	g.Expect(changes).NotTo(Receive(), "coalesced")

	var lines []string
	for line := range strings.Lines(f.logged()) {
		var entry map[string]any
		g.Expect(json.Unmarshal([]byte(line), &entry)).To(Succeed())
		delete(entry, "time")
		text, err := json.Marshal(entry)
		g.Expect(err).NotTo(HaveOccurred())
		lines = append(lines, string(text))
	}
	g.Expect(lines).To(Equal([]string{
		`{"level":"INFO","msg":"settings loaded"}`,
		`{"fields":["rateLimit","webhook"],"level":"INFO","msg":"settings changed","secretsReplaced":null}`,
		`{"fields":null,"level":"INFO","msg":"settings changed","secretsReplaced":["shop/backend"]}`,
		`{"field":"spec.telegram.botTokenSecretRef","level":"WARN","msg":"secret cannot be used","reason":"Invalid","secretKey":"bot","secretName":"shop"}`,
		`{"field":"spec.telegram.botTokenSecretRef","level":"INFO","msg":"secret can be used again","secretKey":"bot","secretName":"shop","was":"Invalid"}`,
	}))
}

func TestLive_refuses_what_the_API_server_refuses(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	before := f.Current()
	changes, cancel := f.Subscribe()
	defer cancel()

	bad := newProject()
	bad.Spec.WhatsApp, bad.Spec.Telegram, bad.Spec.DisplayName = nil, nil, " "+canary
	bad.Spec.Request.TTL = canary
	err := f.SetProject(bad)
	g.Expect(err).To(MatchError(And(
		ContainSubstring("spec.displayName: "), ContainSubstring("spec.request.ttl: "), ContainSubstring("whatsapp or telegram must be set"),
	)))
	g.Expect(f.LastError()).To(MatchError(err))
	renamed := newProject()
	renamed.Name = "other"
	g.Expect(f.SetProject(renamed)).To(MatchError(ContainSubstring("books/other and was books/shop")))
	relabelled := newProject()
	relabelled.Spec.ProjectID = "other"
	g.Expect(f.SetProject(relabelled)).To(MatchError(ContainSubstring("immutable")))
	g.Expect(f.Current()).To(BeIdenticalTo(before))
	g.Expect(changes).NotTo(Receive())

	g.Expect(f.SetProject(newProject())).To(Succeed())
	g.Expect(f.LastError()).NotTo(HaveOccurred())
	g.Expect(f.logged()).To(ContainSubstring("project is valid again"))
	g.Expect(f.logged()).NotTo(ContainSubstring(canary))
}

func TestLive_limits_that_contradict_are_logged_once(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	const message = "limits contradict each other"
	g.Expect(f.logged()).NotTo(ContainSubstring(message), "the defaults fit")
	p := newProject()
	p.Spec.RateLimit.PerKey = &verifyv1.Rate{Requests: 600, Period: "1m"}
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(f.Current().LimitsContradiction).To(ContainSubstring("maxStored is 1500"))
	p.Spec.DisplayName = "Another name"
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(strings.Count(f.logged(), message)).To(Equal(1))
	p.Spec.RateLimit.PerKey = nil
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(f.Current().LimitsContradiction).To(BeEmpty())
	g.Expect(strings.Count(f.logged(), message)).To(Equal(1))
}

func TestLive_the_given_project_stays_the_callers(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	p := newProject()
	p.Spec.Request.TTL = ""
	p.Spec.RateLimit.PerKey = nil
	g.Expect(f.SetProject(p)).To(Succeed())
	g.Expect(p.Spec.RateLimit.PerKey).To(BeNil(), "an informer's object must not be changed")
	p.Spec.APIKeys[0].Name = "changed"
	f.reloadSecrets()
	g.Expect(findKeyName(f.Current(), apiKey("backend"), start)).To(Equal("backend"))
}

// TestSettings_print_no_secret prints settings with former values and problems in all common ways.
func TestSettings_print_no_secret(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t)
	for key, value := range newValues() {
		f.writeSecret(t, key, value+"2222")
	}
	f.writeSecret(t, "app", canary+" unusable")
	s := f.Current()
	g.Expect(s.Problems).To(HaveLen(1))
	hash := s.Keys.keys[0].Hash

	var printed []string
	for _, value := range []any{
		s, *s, s.Keys, s.Keys.keys, s.Keys.keys[0], *s.WhatsApp, *s.Telegram, *s.Webhook, s.Webhook, s.Telegram.BotToken,
		&s.Telegram.BotToken, s.Problems, f.secrets, f.secrets.states, []Secret{s.Telegram.BotToken},
		struct{ hidden Secret }{s.Telegram.BotToken}, fmt.Errorf("%v", s.Telegram.BotToken),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			printed = append(printed, fmt.Sprintf(verb, value))
		}
		asJSON, err := json.Marshal(value)
		g.Expect(err).NotTo(HaveOccurred())
		asYAML, err := yaml.Marshal(value)
		g.Expect(err).NotTo(HaveOccurred())
		log, logs := newLogger()
		log.Info("value", "value", value)
		slog.New(slog.NewTextHandler(logs, nil)).Info("value", "value", value)
		printed = append(printed, string(asJSON), string(asYAML), string(logs.Contents()))
	}
	printed = append(printed, f.logged(), s.Telegram.BotToken.String())
	for _, p := range s.Problems {
		printed = append(printed, p.String())
	}
	for _, text := range printed {
		for _, leak := range []string{
			canary, goodAppSecret, hex.EncodeToString([]byte(canary)), fmt.Sprintf("%X", canary), formatDecimal([]byte(canary)),
			hex.EncodeToString(hash[:4]), formatDecimal(hash[:4]),
		} {
			g.Expect(text).NotTo(ContainSubstring(leak))
		}
	}
}

// formatDecimal returns bytes as %d and %v print them in a list.
func formatDecimal(bytes []byte) string { return strings.Trim(fmt.Sprintf("%d", bytes), "[]") }

func TestWarn_keepsTheNameOfTheLogger(t *testing.T) {
	log, logs := newLogger()
	logWarning(log.WithName("settings"), "secret cannot be used", "reason", ReasonEmpty)
	NewWithT(t).Expect(string(logs.Contents())).To(ContainSubstring(
		`"level":"WARN","msg":"secret cannot be used","logger":"settings","reason":"Empty"`))
	logWarning(logr.Discard(), "secret cannot be used")
}
