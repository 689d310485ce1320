package callback

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var begin = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

const (
	botToken    = "5021:AAH-canary_token_of_the_bot_0123456789"
	accessToken = "EAABcanarytoken"
	appSecret   = "a1b2c3canarysecret"
	ownNumber   = "+15550783881"
)

// platform is a messenger's platform in memory, with the plans and the messages of the real messenger.
type platform struct {
	messenger

	callback string
	seen     platformState // without the callback
	err      error
	fails    map[string]error // by call
	calls    []string
	secrets  []string // the tokens used by the calls

	subscribed subscription
	questions  int // about it
}

func (p *platform) recordCall(what string, s *settings.Settings) error {
	p.calls = append(p.calls, what)
	if s.Telegram != nil {
		p.secrets = append(p.secrets, string(s.Telegram.BotToken.Current()))
	}
	if err := p.fails[what]; err != nil {
		return err
	}
	return p.err
}

func (p *platform) readState(_ context.Context, s *settings.Settings) (platformState, error) {
	found := p.seen
	found.callback = p.callback
	return found, p.recordCall("observe", s)
}

func (p *platform) registerCallback(_ context.Context, s *settings.Settings, callback string) error {
	if err := p.recordCall("register", s); err != nil {
		return err
	}
	p.callback = callback
	return nil
}

func (p *platform) removeCallback(_ context.Context, s *settings.Settings) error {
	if err := p.recordCall("remove", s); err != nil {
		return err
	}
	p.callback = ""
	return nil
}

func (p *platform) readSubscription(context.Context, *settings.Settings) subscription {
	p.questions++
	return p.subscribed
}

func (p *platform) subscribeApp(_ context.Context, s *settings.Settings) error {
	if err := p.recordCall("subscribe", s); err != nil {
		return err
	}
	p.subscribed = subscription{}
	return nil
}

// countChanges counts the calls that changed something.
func (p *platform) countChanges() int {
	n := 0
	for _, call := range p.calls {
		if call != "observe" {
			n++
		}
	}
	return n
}

// projects is a project's object that tests edit; nil after its deletion.
type projects struct {
	mu      sync.Mutex
	project *verifyv1.VerificationProject
	seen    verification.Notifier
}

func (p *projects) Project() *verifyv1.VerificationProject {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.project
}

func (p *projects) Observe() (<-chan struct{}, func()) { return p.seen.Subscribe("") }

func (p *projects) replace(project *verifyv1.VerificationProject) {
	p.mu.Lock()
	p.project = project
	p.mu.Unlock()
	p.seen.Notify("")
}

// scriptedAccount is an account at a platform in memory, its project, and the controller of its callback.
type scriptedAccount struct {
	*WithT

	t          *testing.T
	clock      *clocktesting.FakeClock
	turn       sync.Mutex // orders the steps of a test before those of a running controller
	settings   *settings.Settings
	changed    verification.Notifier
	projects   *projects
	platform   *platform
	controller *Controller
	log        strings.Builder

	rememberErr error
	remembered  []string
	conditions  []metav1.Condition
	withdrawn   int
}

// newTelegramAccount returns the account of a bot with a webhook.
func newTelegramAccount(t *testing.T) *scriptedAccount {
	t.Helper()
	w := newScriptedAccount(t)
	w.settings.Telegram = &settings.Telegram{BotUsername: "Example_Shop_Bot", BotToken: settings.NewSecret([]byte(botToken))}
	w.platform = &platform{messenger: newBotAPI(nil, w.clock), fails: map[string]error{}}
	w.restart()
	return w
}

func newWhatsAppAccount(t *testing.T) *scriptedAccount {
	t.Helper()
	w := newScriptedAccount(t)
	w.settings.WhatsApp = &settings.WhatsApp{
		PhoneNumber: ownNumber, PhoneNumberID: "106540352242922", RegisterWebhook: true,
		AccessToken: settings.NewSecret([]byte(accessToken)), AppSecret: settings.NewSecret([]byte(appSecret)),
	}
	w.platform = &platform{messenger: &graph{}, fails: map[string]error{}}
	w.restart()
	return w
}

func newScriptedAccount(t *testing.T) *scriptedAccount {
	t.Helper()
	return &scriptedAccount{
		WithT: NewWithT(t), t: t, clock: clocktesting.NewFakeClock(begin),
		settings: &settings.Settings{Project: "shop/acme", BaseURL: "https://verify.example.com", Generation: 3},
		projects: &projects{project: &verifyv1.VerificationProject{}},
	}
}

// restart begins a new term, as another leader would.
func (w *scriptedAccount) restart() {
	w.controller = newController(Options{
		Settings: func() *settings.Settings {
			w.turn.Lock()
			defer w.turn.Unlock()
			return w.settings
		},
		Changes:  func() (<-chan struct{}, func()) { return w.changed.Subscribe("") },
		Projects: w.projects, Clock: w.clock,
		Remember: func(_ context.Context, callback string) error {
			if w.rememberErr != nil {
				return w.rememberErr
			}
			w.remembered = append(w.remembered, callback)
			w.setStatus(callback)
			return nil
		},
		Set:      func(c metav1.Condition) { w.conditions = append(w.conditions, c) },
		Withdraw: func(string) { w.withdrawn++ },
		Log:      funcr.New(func(prefix, args string) { w.log.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 9}),
	}, w.platform)
}

// setStatus writes the last registered callback to the project's status.
func (w *scriptedAccount) setStatus(callback string) {
	status := &verifyv1.ChannelStatus{CallbackURL: callback}
	project := &verifyv1.VerificationProject{}
	project.Status.Telegram, project.Status.WhatsApp = status, status
	w.projects.replace(project)
}

// edit replaces the settings by a changed copy.
func (w *scriptedAccount) edit(change func(*settings.Settings)) {
	changed := *w.settings
	if changed.Telegram != nil {
		changed.Telegram = new(*changed.Telegram)
	}
	if changed.WhatsApp != nil {
		changed.WhatsApp = new(*changed.WhatsApp)
	}
	changed.Generation++
	change(&changed)
	w.turn.Lock()
	w.settings = &changed
	w.turn.Unlock()
	w.changed.Notify("")
}

// reconcile reconciles once, and returns the condition and when to check again.
func (w *scriptedAccount) reconcile() (metav1.Condition, time.Duration) {
	w.t.Helper()
	wait := w.controller.reconcileOnce(w.t.Context())
	if len(w.conditions) == 0 {
		return metav1.Condition{}, wait
	}
	last := w.conditions[len(w.conditions)-1]
	w.Expect(last.Message).NotTo(MatchRegexp(`canary|[0-9]{6}|example\.`), "a condition contains none of these")
	return last, wait
}

// expect reconciles, and compares the condition.
func (w *scriptedAccount) expect(status metav1.ConditionStatus, reason string) time.Duration {
	w.t.Helper()
	condition, wait := w.reconcile()
	w.Expect(condition.Status).To(Equal(status), condition.Message)
	w.Expect(condition.Reason).To(Equal(reason), condition.Message)
	w.Expect(condition.ObservedGeneration).To(Equal(w.settings.Generation))
	return wait
}

func (w *scriptedAccount) expectTrue(reason string) time.Duration {
	w.t.Helper()
	return w.expect(metav1.ConditionTrue, reason)
}

func (w *scriptedAccount) expectFalse(reason string) time.Duration {
	w.t.Helper()
	return w.expect(metav1.ConditionFalse, reason)
}

var errAway = errors.New("away")
