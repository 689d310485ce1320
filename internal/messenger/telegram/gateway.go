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
	// maxOpenCodes bounds the codes that wait for their check. What is over it is not checked.
	maxOpenCodes = 16384
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
// the check says whether it was refunded. It is kept in memory: a code whose replica ended is not checked, and counts as paid for.
type Gateway struct {
	GatewayOptions

	cost, refunded prometheus.Counter
	balance, asOf  *prometheus.GaugeVec // without labels, so that they are absent until a balance is known
	checks         chan struct{}        // has a value for each check that runs

	mu      sync.Mutex
	open    map[string]openCode // by the id of the request
	last    GatewayState
	account [sha256.Size]byte // the token and the sender that last is about
	changes verification.Notifier
}

// openCode is a code that is not checked yet.
type openCode struct {
	id    string // the Gateway's
	timer *time.Timer
}

// GatewayState is what the Gateway answered last that is true of all codes.
type GatewayState string

// The states.
const (
	GatewayUnknown GatewayState = ""
	GatewayTakes   GatewayState = "takes" // it took a code
	GatewayToken   GatewayState = reasonToken
	GatewayBalance GatewayState = reasonBalance
	GatewaySender  GatewayState = reasonSender
)

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
		cost: counter("phoneproof_gateway_cost_dollars_total", "What Telegram's Gateway charged for the codes that this replica sent, in US dollars."),
		refunded: counter("phoneproof_gateway_refunded_dollars_total",
			"What Telegram's Gateway refunded of phoneproof_gateway_cost_dollars_total for codes that were not delivered in time, as far as this "+
				"replica checked them: each once, after it was entered or its time was over. Codes of a replica that ended before are not checked."),
		balance: gauge(GatewayBalanceMetric,
			"Balance at Telegram's Gateway in US dollars, as the last answer to this replica had it. Absent until one had it."),
		asOf: gauge(GatewayAsOfMetric, "When phoneproof_gateway_balance_dollars was answered."),
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
	return []string{reasonToken, reasonBalance, reasonSender, reasonFlood, reasonAbsent, reasonOther}
}

// SendCode implements messenger.CodePlatform.
func (g *Gateway) SendCode(
	ctx context.Context, s *settings.Settings, r *verification.Request, code redact.Value[string],
) verification.CodeResult {
	codes := s.Telegram.Codes
	ttl := min(max(r.EndsAt().Sub(g.Clock.Now()), minGatewayTTL), maxGatewayTTL)
	status, err := g.Client.call(ctx, codes, methodSendVerification, gatewayMessage{
		PhoneNumber: r.Phone.E164(), Code: code.Reveal(), SenderUsername: codes.SenderUsername, Payload: r.ID,
		TTL: int64(ttl / time.Second),
	})
	result := judgeGateway(err, status.recipient(), r.Phone)
	switch state := GatewayState(result.Reason); {
	case err == nil:
		g.recordState(codes, GatewayTakes)
		g.cost.Add(max(status.Cost, 0))
		g.recordBalance(status)
		g.scheduleCheck(r.ID, status.RequestID, ttl+checkDelay)
	case state == GatewayToken, state == GatewayBalance, state == GatewaySender:
		g.recordState(codes, state)
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
func (g *Gateway) scheduleCheck(requestID, id string, after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open) >= maxOpenCodes {
		return
	}
	g.open[requestID] = openCode{id, time.AfterFunc(after, func() { g.checkCode(requestID, nil) })}
}

// checkCode asks once what became of the code of a request, and reports that it was entered if the request was redeemed.
func (g *Gateway) checkCode(requestID string, redeemed *verification.Request) {
	defer panics.Recover(func(failure error) { g.Log.Error(failure, "check of code ended", "requestID", requestID) })
	g.mu.Lock()
	code, found := g.open[requestID]
	delete(g.open, requestID)
	g.mu.Unlock()
	s := g.Settings()
	if !found || s.Telegram == nil || s.Telegram.Codes == nil {
		return
	}
	code.timer.Stop()
	check := gatewayCheck{RequestID: code.id}
	if redeemed != nil {
		if digits, known := s.DeliveredCode(redeemed, g.Clock.Now()); known {
			check.Code = digits.Reveal()
		}
	}
	g.checks <- struct{}{}
	defer func() { <-g.checks }()
	status, err := g.Client.call(context.Background(), s.Telegram.Codes, methodCheckStatus, check)
	if err != nil {
		g.Log.V(1).Info("check of code failed", "requestID", requestID, "error", err.Error())
		return
	}
	if status.IsRefunded {
		g.refunded.Add(max(status.Cost, 0))
	}
	g.recordBalance(status)
}

func (g *Gateway) recordBalance(status gatewayStatus) {
	if status.Balance != nil {
		g.balance.WithLabelValues().Set(*status.Balance)
		g.asOf.WithLabelValues().SetToCurrentTime()
	}
}

func (g *Gateway) recordState(codes *settings.GatewayCodes, state GatewayState) {
	g.mu.Lock()
	account := accountOf(codes)
	changed := g.last != state || g.account != account
	g.last, g.account = state, account
	g.mu.Unlock()
	if changed {
		g.changes.Notify("")
	}
}

// State returns what the Gateway answered last to this replica for the present token and sender.
func (g *Gateway) State(codes *settings.GatewayCodes) GatewayState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.account != accountOf(codes) {
		return GatewayUnknown
	}
	return g.last
}

// Subscribe returns a channel that gets a value, coalesced, after a change of State.
func (g *Gateway) Subscribe() (changes <-chan struct{}, cancel func()) {
	return g.changes.Subscribe("")
}

// accountOf returns what distinguishes the accounts that a project had.
func accountOf(codes *settings.GatewayCodes) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(codes.SenderUsername+"\x00"), codes.Token.Current()...))
}
