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
	webhook := plan{platform: "Telegram", field: "spec.telegram", callback: ourURL, home: ourURL, secret: one}
	unseen, takeOver, fetched := webhook, webhook, webhook
	unseen.unseen = true
	takeOver.takeOver = true
	fetched.callback = ""
	fetchedTakeOver := fetched
	fetchedTakeOver.takeOver = true
	nothing := memory{}
	known := func(urls ...string) memory { return memory{callbacks: urls, secret: one} }

	for name, row := range map[string]struct {
		plan   plan
		seen   seen
		memory memory
		step   step
		reason string
	}{
		"nothing is registered":                          {webhook, seen{}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"nothing any more":                               {webhook, seen{}, known(ourURL), stepRegister, verifyv1.ReasonRegistered},
		"ours, by an earlier term":                       {webhook, seen{callback: ourURL}, nothing, stepNone, verifyv1.ReasonRegistered},
		"ours, with who knows which secret":              {unseen, seen{callback: ourURL}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"ours, with this secret":                         {unseen, seen{callback: ourURL}, known(), stepNone, verifyv1.ReasonRegistered},
		"ours, with another secret":                      {webhook, seen{callback: ourURL}, memory{secret: two}, stepRegister, verifyv1.ReasonRegistered},
		"ours, with other terms":                         {webhook, seen{callback: ourURL, drifted: true}, known(), stepRegister, verifyv1.ReasonRegistered},
		"ours, and deliveries fail":                      {webhook, seen{callback: ourURL, failing: "why"}, known(), stepNone, verifyv1.ReasonCallbackUnreachable},
		"ours, registered again while they fail":         {unseen, seen{callback: ourURL, failing: "why"}, nothing, stepRegister, verifyv1.ReasonCallbackUnreachable},
		"ours of an earlier address":                     {webhook, seen{callback: formerURL}, known(formerURL), stepRegister, verifyv1.ReasonRegistered},
		"the earlier one's failures are over":            {webhook, seen{callback: formerURL, failing: "why"}, known(formerURL), stepRegister, verifyv1.ReasonRegistered},
		"an address that nobody remembers":               {webhook, seen{callback: formerURL}, nothing, stepNone, verifyv1.ReasonCallbackTaken},
		"somebody else's":                                {webhook, seen{callback: foreignURL}, known(ourURL), stepNone, verifyv1.ReasonCallbackTaken},
		"somebody else's, with other terms":              {webhook, seen{callback: foreignURL, drifted: true}, memory{secret: two}, stepNone, verifyv1.ReasonCallbackTaken},
		"somebody else's, to be taken":                   {takeOver, seen{callback: foreignURL}, nothing, stepRegister, verifyv1.ReasonRegistered},
		"another account":                                {webhook, seen{mismatch: "why"}, known(), stepNone, verifyv1.ReasonAccountMismatch},
		"another account, to be taken":                   {takeOver, seen{mismatch: "why", callback: foreignURL}, known(), stepNone, verifyv1.ReasonAccountMismatch},
		"fetched, with nothing registered":               {fetched, seen{}, nothing, stepNone, ""},
		"fetched, with ours of a moment ago":             {fetched, seen{callback: ourURL}, nothing, stepRemove, ""},
		"fetched, with ours of an earlier address":       {fetched, seen{callback: formerURL}, known(formerURL), stepRemove, ""},
		"fetched, with somebody else's":                  {fetched, seen{callback: foreignURL}, known(formerURL), stepNone, verifyv1.ReasonCallbackTaken},
		"fetched, with somebody else's, to be taken":     {fetchedTakeOver, seen{callback: foreignURL}, nothing, stepRemove, ""},
		"fetched, with the token of somebody else's bot": {fetchedTakeOver, seen{mismatch: "why"}, nothing, stepNone, verifyv1.ReasonAccountMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			do, says := decide(row.plan, row.seen, row.memory)
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
			again, same := decide(row.plan, row.seen, row.memory)
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
	g.Expect(failing(info, now)).To(ContainSubstring("the status 503"))
	for name, fine := range map[string]telegram.WebhookInfo{
		"nothing waits":         without(func(i *telegram.WebhookInfo) { i.PendingUpdateCount = 0 }),
		"no error ever":         without(func(i *telegram.WebhookInfo) { i.LastErrorDate = 0 }),
		"the error is long ago": without(func(i *telegram.WebhookInfo) { i.LastErrorDate = now.Add(-time.Hour).Unix() }),
		"no webhook":            without(func(i *telegram.WebhookInfo) { i.URL = "" }),
	} {
		g.Expect(failing(fine, now)).To(BeEmpty(), name)
		fine.LastErrorMessage = unauthorized
		g.Expect(strange(fine, now)).To(BeFalse(), name)
	}
	g.Expect(strange(info, now)).To(BeFalse(), "503 is no matter of secrets")
	info.LastErrorMessage = unauthorized
	g.Expect(strange(info, now)).To(BeTrue())
}

const unauthorized = "Wrong response from the webhook: 401 Unauthorized"

// TestUndeliverable: what Telegram says is put into our words, so whatever is in it goes no further.
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
		message := undeliverable(says)
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
	g.Expect(steadyEvery).To(BeNumerically("<=", time.Hour), "at least hourly")
}
