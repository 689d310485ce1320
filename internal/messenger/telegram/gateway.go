package telegram

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// minGatewayTTL and maxGatewayTTL bound the ttl of a code.
	minGatewayTTL = 30 * time.Second
	maxGatewayTTL = time.Hour
	// checkDelay is how long after its ttl a code is checked: by then it is delivered or refunded.
	checkDelay = 10 * time.Second
	// maxOpenCodes bounds the codes whose check has not ended. What is over it is not checked.
	maxOpenCodes = 8192
	// maxChecks bounds the checks at a time, so that they leave connections to codes.
	maxChecks = 8
)

// GatewayOptions configure a Gateway. All are required.
type GatewayOptions struct {
	// Settings returns the current settings of the project; never nil.
	Settings func() *settings.Settings
	Client   *GatewayClient
	// Clock is the store's time, by which requests end.
	Clock      clock.PassiveClock
	Log        logr.Logger
	Registerer prometheus.Registerer
}

// Gateway sends codes through Telegram's Gateway. It implements messenger.CodePlatform.
//
// Each code that was taken is checked once, by the replica that sent it: when that replica stores its redemption, else after its ttl. Only
// the check shows a refund. It is kept in memory: a code whose replica ended is not checked, and counts as paid for.
type Gateway struct {
	GatewayOptions

	cost, refunded prometheus.Counter
	balance, asOf  *prometheus.GaugeVec // without labels, so that they are absent until a balance is known
	checks         chan struct{}        // has a value for each check that runs

	mu      sync.Mutex
	open    map[string]openCode // those that wait for their check, by the id of the request
	checked int                 // how many more have theirs now
	last    string
	account [sha256.Size]byte // the token and the sender that last and the balance are about
}

// openCode is a code that is not checked yet.
type openCode struct {
	id      string            // the Gateway's
	account [sha256.Size]byte // of which the code was sent
	cost    float64           // what it was charged
	timer   *time.Timer
}

// The metrics of the last balance, which the doctor reads.
const (
	GatewayBalanceMetric = "phoneproof_gateway_balance_dollars"
	GatewayAsOfMetric    = "phoneproof_gateway_balance_timestamp_seconds"
)

// NewGateway returns a gateway with its metrics registered.
func NewGateway(o GatewayOptions) (*Gateway, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, nil)
	}
	g := &Gateway{
		GatewayOptions: o, open: map[string]openCode{}, checks: make(chan struct{}, maxChecks),
		cost: counter("phoneproof_gateway_cost_dollars_total", "What Telegram's Gateway charged for the codes that this replica sent, in US dollars. Those whose answer was lost are not in it."),
		refunded: counter("phoneproof_gateway_refunded_dollars_total",
			"What Telegram's Gateway refunded of phoneproof_gateway_cost_dollars_total for codes that were not delivered in time, as far as this "+
				"replica checked them: each once, after it was entered at the replica that sent it, or its time was over. Codes of a replica that ended before are not checked."),
		balance: gauge(GatewayBalanceMetric,
			"Balance at Telegram's Gateway in US dollars, as the last answer to this replica had it. Absent before the first one."),
		asOf: gauge(GatewayAsOfMetric, "Time of the answer with phoneproof_gateway_balance_dollars, in seconds since 1970."),
	}
	for _, collector := range []prometheus.Collector{g.cost, g.refunded, g.balance, g.asOf} {
		if err := o.Registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of the Gateway: %w", err)
		}
	}
	return g, nil
}

// CodeReasons implements messenger.CodePlatform.
func (g *Gateway) CodeReasons() []string {
	return []string{GatewayToken, GatewayBalance, GatewaySender, reasonFlood, reasonAbsent, reasonOther}
}

// SendCode implements messenger.CodePlatform.
func (g *Gateway) SendCode(
	ctx context.Context, s *settings.Settings, r *verification.Request, code redact.Value[string],
) verification.CodeResult {
	codes := s.Telegram.Codes
	ttl := min(max(r.EndsAt().Sub(g.Clock.Now()), minGatewayTTL), maxGatewayTTL)
	status, err := g.Client.callMethod(ctx, codes, methodSendVerification, gatewayMessage{
		PhoneNumber: r.Phone.E164(), Code: code.Reveal(), SenderUsername: codes.SenderUsername, Payload: r.ID,
		TTL: int64(ttl / time.Second),
	})
	result := judgeGateway(err, status.parseRecipient(), r.Phone)
	switch account := accountOf(codes); {
	case err == nil:
		code := openCode{id: status.RequestID, account: account, cost: max(status.Cost, 0)}
		g.recordState(account, GatewayAccepts)
		g.cost.Add(code.cost)
		g.recordBalance(account, status)
		g.scheduleCheck(r.ID, code, ttl+checkDelay)
	case result.Reason == GatewayToken, result.Reason == GatewayBalance, result.Reason == GatewaySender:
		g.recordState(account, result.Reason)
	}
	return result
}

// CodeRedeemed checks the code of a request that was proven by it, if this replica sent it. It does not wait.
func (g *Gateway) CodeRedeemed(r *verification.Request) {
	if r.Method == verification.Telegram {
		redeemed := *r
		go g.checkCode(r.ID, &redeemed)
	}
}

// scheduleCheck has the code of a request checked after a time, unless it is entered before.
func (g *Gateway) scheduleCheck(requestID string, code openCode, after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open)+g.checked >= maxOpenCodes {
		return
	}
	code.timer = time.AfterFunc(after, func() { g.checkCode(requestID, nil) })
	g.open[requestID] = code
}

// checkCode asks once what became of the code of a request, and reports that it was entered if the request was redeemed.
func (g *Gateway) checkCode(requestID string, redeemed *verification.Request) {
	defer panics.Recover(func(failure error) { g.Log.Error(failure, "check of code ended", "requestID", requestID) })
	g.mu.Lock()
	code, found := g.open[requestID]
	if found {
		delete(g.open, requestID)
		g.checked++
	}
	g.mu.Unlock()
	if !found {
		return
	}
	code.timer.Stop()
	g.checks <- struct{}{}
	defer g.endCheck()
	s := g.Settings()
	if s.Telegram == nil || s.Telegram.Codes == nil || accountOf(s.Telegram.Codes) != code.account {
		return // another account knows nothing of it
	}
	check := gatewayCheck{RequestID: code.id}
	if redeemed != nil {
		if digits, known := s.DeliveredCode(redeemed, g.Clock.Now()); known {
			check.Code = digits.Reveal()
		}
	}
	status, err := g.Client.callMethod(context.Background(), s.Telegram.Codes, methodCheckStatus, check)
	if err != nil {
		g.Log.V(1).Info("check of code failed", "requestID", requestID, "error", err.Error())
		return
	}
	if status.IsRefunded {
		g.refunded.Add(code.cost)
	}
	g.recordBalance(code.account, status)
}

func (g *Gateway) endCheck() {
	<-g.checks
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checked--
}

// recordBalance records the balance of an account, unless another one was used since.
func (g *Gateway) recordBalance(account [sha256.Size]byte, status gatewayStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if status.Balance != nil && g.account == account {
		g.balance.WithLabelValues().Set(*status.Balance)
		g.asOf.WithLabelValues().SetToCurrentTime()
	}
}

// recordState records the state of an account, and forgets the balance of another one.
func (g *Gateway) recordState(account [sha256.Size]byte, state string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.account != account {
		g.balance.Reset()
		g.asOf.Reset()
	}
	g.last, g.account = state, account
}

// State returns what the Gateway answered last to this replica for the present token and sender, of what is true of all codes:
// GatewayAccepts, or the reason of a refusal. It is empty before the first such answer.
func (g *Gateway) State(codes *settings.GatewayCodes) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.account != accountOf(codes) {
		return ""
	}
	return g.last
}

// accountOf returns what distinguishes the accounts that a project had.
func accountOf(codes *settings.GatewayCodes) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(codes.SenderUsername+"\x00"), codes.Token.Current()...))
}
