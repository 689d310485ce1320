package callback

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	messengers "github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// NewWhatsApp returns the controller of the callback at Meta. It sets the override of the phone number, which precedes those of
// the business account and of the app; these are left alone.
func NewWhatsApp(o Options, client *whatsapp.Client) *Controller {
	return newController(o, &graph{client: client})
}

// graph is Meta's Graph API.
type graph struct {
	client *whatsapp.Client
	known  businessAccount
}

func (*graph) conditionType() string { return verifyv1.ConditionWhatsAppReady }

func (*graph) newPlan(s *settings.Settings) plan {
	a := s.WhatsApp
	if a == nil {
		return plan{absent: true}
	}
	p := plan{
		platform: "Meta", field: "spec.whatsapp", account: a.PhoneNumberID, takeOver: a.TakeOver,
		callback: s.BaseURL + whatsapp.Path, ownCallback: s.BaseURL + whatsapp.Path,
		byHand: !a.RegisterWebhook, subscriber: a.PhoneNumberID + "/" + a.BusinessAccountID,
	}
	switch {
	case !a.AppSecret.Usable(), a.RegisterWebhook && !a.AccessToken.Usable():
		p.verdict = falseVerdict(verifyv1.ReasonSecretsNotReady, "the secrets of the WhatsApp account cannot be read; see SecretsReady")
	case p.byHand && !a.AccessToken.Usable():
		unread := subscription{unchecked: "the access token cannot be read; see SecretsReady"}
		_, p.verdict = decideSubscription(p, unread, stepNone, registeredByHand)
	case p.byHand:
	case len(p.callback) > whatsapp.MaxCallbackBytes:
		p.verdict = falseVerdict(verifyv1.ReasonCallbackUnreachable, fmt.Sprintf(
			"Meta takes callbacks of at most %d characters, and spec.baseURL makes a longer one; use a shorter address", whatsapp.MaxCallbackBytes))
	default:
		p.secret = sha256.Sum256([]byte(whatsapp.VerifyToken(s.Project, a.AppSecret.Current())))
	}
	return p
}

func (*graph) storedCallback(status *verifyv1.VerificationProjectStatus) string {
	return callbackOf(status.WhatsApp)
}

func callbackOf(status *verifyv1.ChannelStatus) string {
	if status == nil {
		return ""
	}
	return status.CallbackURL
}

func (m *graph) readState(ctx context.Context, s *settings.Settings) (platformState, error) {
	number, err := m.client.PhoneNumber(ctx, s.WhatsApp)
	if err != nil {
		return platformState{}, fmt.Errorf("read phone number: %w", err)
	}
	callbacks, err := m.client.Callbacks(ctx, s.WhatsApp)
	if err != nil {
		return platformState{}, fmt.Errorf("read callbacks: %w", err)
	}
	found := platformState{callback: callbacks.PhoneNumber}
	if !sameNumber(number.DisplayPhoneNumber, s.WhatsApp.PhoneNumber) {
		found.mismatch = "spec.whatsapp.phoneNumberID is the id of another number than spec.whatsapp.phoneNumber, " +
			"so users would write to the wrong one; correct one of the two"
	}
	return found, nil
}

// sameNumber reports whether the number that Meta displays is the project's. An unreadable number is no contradiction.
func sameNumber(displayed, own string) bool {
	a, b := keepDigits(displayed), keepDigits(own)
	if a == "" || a == b {
		return true
	}
	one, err := phone.ParseWhatsApp(a)
	if err != nil {
		return false
	}
	other, err := phone.ParseWhatsApp(b)
	return err == nil && phone.Same(one, other)
}

func keepDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

func (m *graph) registerCallback(ctx context.Context, s *settings.Settings, callback string) error {
	token := whatsapp.VerifyToken(s.Project, s.WhatsApp.AppSecret.Current())
	return m.client.SetCallback(ctx, s.WhatsApp, callback, token)
}

func (m *graph) removeCallback(ctx context.Context, s *settings.Settings) error {
	return m.client.RemoveCallback(ctx, s.WhatsApp)
}

func (m *graph) explainError(err error, doing step) callFailure {
	if errors.Is(err, messengers.ErrNoSimulator) {
		return callFailure{reason: verifyv1.ReasonCredentialsRejected, message: noSimulator}
	}
	failure, ok := errors.AsType[*whatsapp.Error](err)
	switch {
	case !ok:
		return callFailure{verifyv1.ReasonPlatformUnreachable, "Meta's Graph API cannot be asked", true}
	case doing == stepSubscribe && !failure.Temporary():
		return callFailure{reason: verifyv1.ReasonNotSubscribed, message: notSubscribed +
			"Meta refuses to subscribe it: give the system user of " +
			"the access token the permission whatsapp_business_management for that account, or run, with a token that has it: " + m.subscriptionRemedy()}
	case failure.Class == messengers.CallCredentials:
		return callFailure{reason: verifyv1.ReasonCredentialsRejected, message: "Meta refuses the access token: it is wrong or expired, " +
			"or lacks a permission; put a valid one into the Secret of spec.whatsapp.accessTokenSecretRef"}
	case failure.Class == messengers.CallRateLimited:
		return callFailure{verifyv1.ReasonPlatformFailing, "Meta's Graph API asks to wait: there were too many calls", true}
	case failure.PlatformFailed():
		return callFailure{verifyv1.ReasonPlatformFailing, graphFailed(failure), true}
	case failure.Class == messengers.CallUnreadable:
		return callFailure{
			verifyv1.ReasonPlatformUnreachable,
			"something else answers in place of Meta's Graph API; look at the proxies between", true,
		}
	case failure.Temporary():
		return callFailure{verifyv1.ReasonPlatformUnreachable, "Meta's Graph API does not answer; wait, or look at what the pods may reach", true}
	case doing == stepNone:
		return callFailure{reason: verifyv1.ReasonAccountMismatch, message: "the access token leads to no number with the id " +
			"in spec.whatsapp.phoneNumberID; correct the id, or use a token of the business that owns the number"}
	default:
		return callFailure{reason: verifyv1.ReasonCallbackUnreachable, message: "Meta could not verify the callback at spec.baseURL: " +
			"it must be reachable from the internet, by https with a valid certificate, and lead to this project"}
	}
}

// graphFailed returns the message for an answer by which the Graph API failed. Meta has codes for that, some with the status 400.
func graphFailed(e *whatsapp.Error) string {
	const platform = "Meta's Graph API"
	if e.Code != 0 && e.Status < http.StatusInternalServerError {
		return fmt.Sprintf("%s answered with its error code %d: it failed itself; wait, or look at its status page", platform, e.Code)
	}
	return platformFailed(platform, e.Status, e.Code == 0)
}

// platformFailed returns the message for a status of at least 500. A foreign answer is not in the platform's form.
func platformFailed(platform string, status int, foreign bool) string {
	if foreign {
		return fmt.Sprintf("%s answered %d, or a proxy in front of it; wait, or look at its status page and at the proxies between",
			platform, status)
	}
	return fmt.Sprintf("%s answered %d: it failed itself; wait, or look at its status page", platform, status)
}

const noSimulator = "the credentials begin with sim_, and this server has no simulator; put those of a real account into the Secret"

func (*graph) requestedWait(err error) time.Duration {
	if failure, ok := errors.AsType[*whatsapp.Error](err); ok {
		return failure.RetryAfter
	}
	return 0
}

func (*graph) pollFor(*settings.Settings) (verdict, time.Duration) { return verdict{}, 0 }

func (*graph) pollChanges() <-chan struct{} { return nil }

func (*graph) pollVersion() int { return 0 }
