package simulator

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// hub is what the platforms, their users and the receiver share: the lock of all their state, the clock, what happened,
// and what is to go wrong.
type hub struct {
	clock    clock.WithTicker
	log      logr.Logger
	redirect func(string) string
	retry    time.Duration
	client   *http.Client
	// resetLimits is Options.ResetLimits; nil without an API to wrap, which then has no faults either.
	resetLimits func()

	mu         sync.Mutex // of what follows, and of all platforms and users
	changed    chan struct{}
	deliveries []delivery
	faults     []*fault
	codeRules  []*codeRule
	requests   []siteRequest
	revoked    []string
	sent       ledger
	events     []event
	seq        int64
}

func newHub(o Options) *hub {
	return &hub{
		clock: o.Clock, log: o.Log, redirect: o.Redirect, retry: o.Retry,
		client: newClient(o.RootCAs), resetLimits: o.ResetLimits, changed: make(chan struct{}),
	}
}

// acceptsCredential reports whether a credential is a simulated one that was not revoked. The lock is held.
func (h *hub) acceptsCredential(credential string) bool {
	return settings.Simulated(credential) && !slices.Contains(h.revoked, credential)
}

// revokeCredential has a credential be refused from now on.
func (h *hub) revokeCredential(credential string) *failure {
	if !settings.Simulated(credential) || !inURL.MatchString(credential) {
		return badRequest("credential", "want a credential that begins with sim_")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = appendBounded(h.revoked, credential, maxRevoked)
	return nil
}
