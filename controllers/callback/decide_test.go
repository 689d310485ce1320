package callback

import (
	"crypto/sha256"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

const (
	ourURL     = "https://verify.example.com/hooks/telegram"
	formerURL  = "https://old.example.com/hooks/telegram"
	foreignURL = "https://elsewhere.example.net/hook"
)

func TestDecide(t *testing.T) {
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	webhook := plan{platform: "Telegram", field: "spec.telegram", callback: ourURL, ownCallback: ourURL, secret: one}
	unseen, takeOver, fetched := webhook, webhook, webhook
	unseen.secretHidden = true
	takeOver.takeOver = true
	fetched.callback = ""
	fetchedTakeOver := fetched
	fetchedTakeOver.takeOver = true
	nothing := memory{}
	known := func(urls ...string) memory { return memory{callbacks: urls, secret: one} }

	for name, row := range map[string]struct {
		plan   plan
		seen   platformState
		memory memory
		step   step
		reason string
	}{
		"nothing is registered":                  {webhook, platformState{}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"no longer registered":                   {webhook, platformState{}, known(ourURL), stepRegister, verifyv1.ReasonRegistered},
		"ours, by an earlier term":               {webhook, platformState{callback: ourURL}, nothing, stepNone, verifyv1.ReasonRegistered},
		"ours, with an unknown secret":           {unseen, platformState{callback: ourURL}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"ours, with this secret":                 {unseen, platformState{callback: ourURL}, known(), stepNone, verifyv1.ReasonRegistered},
		"ours, with another secret":              {webhook, platformState{callback: ourURL}, memory{secret: two}, stepRegister, verifyv1.ReasonRegistered},
		"ours, with other options":               {webhook, platformState{callback: ourURL, drifted: true}, known(), stepRegister, verifyv1.ReasonRegistered},
		"ours, and deliveries fail":              {webhook, platformState{callback: ourURL, failing: "why"}, known(), stepNone, verifyv1.ReasonCallbackUnreachable},
		"ours, registered again while they fail": {unseen, platformState{callback: ourURL, failing: "why"}, nothing, stepRegister, verifyv1.ReasonCallbackUnreachable},
		"ours of an earlier address":             {webhook, platformState{callback: formerURL}, known(formerURL), stepRegister, verifyv1.ReasonRegistered},
		"the earlier one's failures are over":    {webhook, platformState{callback: formerURL, failing: "why"}, known(formerURL), stepRegister, verifyv1.ReasonRegistered},
		"an unknown address":                     {webhook, platformState{callback: formerURL}, nothing, stepNone, verifyv1.ReasonCallbackTaken},
		"foreign":                                {webhook, platformState{callback: foreignURL}, known(ourURL), stepNone, verifyv1.ReasonCallbackTaken},
		"foreign, with other options":            {webhook, platformState{callback: foreignURL, drifted: true}, memory{secret: two}, stepNone, verifyv1.ReasonCallbackTaken},
		"foreign, to be taken over":              {takeOver, platformState{callback: foreignURL}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"another account":                        {webhook, platformState{mismatch: "why"}, known(), stepNone, verifyv1.ReasonAccountMismatch},
		"another account, to be taken over":      {takeOver, platformState{mismatch: "why", callback: foreignURL}, known(), stepNone, verifyv1.ReasonAccountMismatch},
		"polling, nothing registered":            {fetched, platformState{}, nothing, stepNone, ""},
		"polling, ours registered":               {fetched, platformState{callback: ourURL}, nothing, stepRemove, ""},
		"polling, ours of an earlier address":    {fetched, platformState{callback: formerURL}, known(formerURL), stepRemove, ""},
		"polling, foreign":                       {fetched, platformState{callback: foreignURL}, known(formerURL), stepNone, verifyv1.ReasonCallbackTaken},
		"polling, foreign, to be taken over":     {fetchedTakeOver, platformState{callback: foreignURL}, nothing, stepRemove, ""},
		"polling, token of another bot":          {fetchedTakeOver, platformState{mismatch: "why"}, nothing, stepNone, verifyv1.ReasonAccountMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			do, says := decideStep(row.plan, row.seen, row.memory)
			g.Expect(do).To(Equal(row.step))
			g.Expect(says.reason).To(Equal(row.reason))
			switch row.reason {
			case "":
				g.Expect(says).To(Equal(verdict{}))
			case verifyv1.ReasonRegistered:
				g.Expect(says.status).To(Equal(metav1.ConditionTrue))
			default:
				g.Expect(says.status).To(Equal(metav1.ConditionFalse))
			}
			g.Expect(says.message).NotTo(ContainSubstring("example"), "no address")
			again, same := decideStep(row.plan, row.seen, row.memory)
			g.Expect(again).To(Equal(do))
			g.Expect(same).To(Equal(says))
		})
	}
}

func TestFailing(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	info := telegram.WebhookInfo{
		URL: ourURL, PendingUpdateCount: 3, LastErrorDate: now.Add(-time.Minute).Unix(),
		LastErrorMessage: "Wrong response from the webhook: 503 Service Unavailable",
	}
	without := func(change func(*telegram.WebhookInfo)) telegram.WebhookInfo {
		changed := info
		change(&changed)
		return changed
	}
	g := NewWithT(t)
	g.Expect(deliveryProblem(info, now)).To(ContainSubstring("the status 503"))
	for name, fine := range map[string]telegram.WebhookInfo{
		"nothing waits":         without(func(i *telegram.WebhookInfo) { i.PendingUpdateCount = 0 }),
		"no error ever":         without(func(i *telegram.WebhookInfo) { i.LastErrorDate = 0 }),
		"the error is long ago": without(func(i *telegram.WebhookInfo) { i.LastErrorDate = now.Add(-time.Hour).Unix() }),
		"no webhook":            without(func(i *telegram.WebhookInfo) { i.URL = "" }),
	} {
		g.Expect(deliveryProblem(fine, now)).To(BeEmpty(), name)
		fine.LastErrorMessage = unauthorized
		g.Expect(hasForeignSecret(fine, now)).To(BeFalse(), name)
	}
	g.Expect(hasForeignSecret(info, now)).To(BeFalse(), "503 does not mean a wrong secret")
	info.LastErrorMessage = unauthorized
	g.Expect(hasForeignSecret(info, now)).To(BeTrue())
}

const unauthorized = "Wrong response from the webhook: 401 Unauthorized"

// TestUndeliverable: Telegram's texts are mapped to our own, so that their content is never passed on.
func TestUndeliverable(t *testing.T) {
	for says, means := range map[string]string{
		"Bad Request: bad webhook: Failed to resolve host: Name or service not known":       "resolved",
		"Bad Request: bad webhook: IP address 10.0.0.1 is reserved":                         "not public",
		"Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443": "8443 only",
		"Bad Request: bad webhook: An HTTPS URL must be provided for webhook":               "begin with https",
		"Wrong response from the webhook: 404 Not Found":                                    "the status 404",
		"Wrong response from the webhook: 302 Found":                                        "the status 302",
		"SSL error {error:0A000086:SSL routines::certificate verify failed}":                "certificate",
		"Connection timed out":   "in time",
		"Connection refused":     "listens",
		"Read timeout expired":   "in time",
		"Network is unreachable": "no way",
		"canary +4915112345678 https://secret.example/?token=canary": "https and IPv4",
		"": "https and IPv4",
		"Wrong response from the webhook: 503 Service Unavailable (at 2026-11-21 10:00:00.12)": "the status 503",
	} {
		message := describeUndeliverable(says)
		g := NewWithT(t)
		g.Expect(message).To(ContainSubstring(means), says)
		g.Expect(message).NotTo(MatchRegexp(`canary|4915|example|2026|10\.0`))
	}
}

func TestRetryAfter(t *testing.T) {
	g := NewWithT(t)
	for failures, most := range map[int]time.Duration{
		0: firstRetry, 1: firstRetry, 2: 2 * firstRetry, 4: 8 * firstRetry, 8: maxRetry, 100: maxRetry, 1 << 40: maxRetry,
	} {
		for range 100 {
			g.Expect(retryAfter(failures)).To(And(BeNumerically("<=", most), BeNumerically(">=", most*4/5)))
		}
	}
	g.Expect(checkInterval).To(BeNumerically("<=", time.Hour), "at least hourly")
}
