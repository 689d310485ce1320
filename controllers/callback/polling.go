package callback

import (
	"bytes"
	"sync"
	"time"

	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// pollProblemDelay is how long a problem of the poller must last before it is reported. A change of leaders, whose polls overlap,
// and a broken poll are shorter.
const pollProblemDelay = 30 * time.Second

// pollConflictDelay is pollProblemDelay for the status 409: pods of a former project of the same bot take up to a minute to end.
const pollConflictDelay = time.Minute

// pollConflict is the message for the status 409.
const pollConflict = "another program fetches this bot's updates from Telegram; stop it, or have BotFather replace the token"

// polling connects the controller, which knows whether polling is allowed, and the poller, which knows its state.
type polling struct {
	clock   clock.PassiveClock
	wake    chan struct{} // for the poller
	changes chan struct{} // for the controller

	mu      sync.Mutex
	account *settings.Telegram // the account that may be polled; nil for none
	state   telegram.PollState
	since   time.Time
	fetched bool // in this term
	version int  // counts the changes of state
	// conflict is when the present or last conflict began, and calm when it ended. One that comes again within pollConflictDelay
	// goes on: two programs that fetch in turn get updates between.
	conflict, calm time.Time
}

func newPolling(c clock.PassiveClock) *polling {
	return &polling{clock: c, wake: make(chan struct{}, 1), changes: make(chan struct{}, 1), state: telegram.PollIdle}
}

// allow lets the updates of this account be polled, and of no other; nil for none.
func (p *polling) allow(account *settings.Telegram) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account = account
	if account != nil {
		notifyChannel(p.wake)
	}
}

// isAllowed reports whether that account's updates may be polled. An unchecked token may be another bot's.
func (p *polling) isAllowed(account *settings.Telegram) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account != nil && bytes.Equal(p.account.BotToken.Current(), account.BotToken.Current())
}

// recordState is called by the poller when its state changes.
func (p *polling) recordState(state telegram.PollState, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == p.state {
		return
	}
	now := p.clock.Now()
	switch {
	case state == telegram.PollIdle:
		p.calm = time.Time{}
	case p.state == telegram.PollConflict:
		p.calm = now
	case state == telegram.PollConflict && now.Sub(p.calm) >= pollConflictDelay:
		p.conflict = now
	}
	p.state, p.since = state, now
	p.fetched = p.fetched || state == telegram.PollRunning || state == telegram.PollHeld
	p.version++
	notifyChannel(p.changes)
}

func (p *polling) currentVersion() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// currentVerdict returns the verdict on polling, and the longest time until the next check; zero for no limit.
func (p *polling) currentVerdict() (verdict, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fine := trueVerdict(verifyv1.ReasonPolling, "messages are fetched from Telegram")
	taken := falseVerdict(verifyv1.ReasonCallbackTaken, pollConflict)
	trouble, since, delay := verdict{}, p.since, pollProblemDelay
	switch p.state {
	case telegram.PollConflict:
		trouble, since, delay = taken, p.conflict, pollConflictDelay
		if !p.fetched {
			fine = registering
		}
	case telegram.PollCredentials:
		trouble = falseVerdict(verifyv1.ReasonCredentialsRejected, tokenRefused)
	case telegram.PollUnavailable:
		trouble = falseVerdict(verifyv1.ReasonPlatformUnreachable, "Telegram does not answer long polls; wait, or look at the proxies between")
	case telegram.PollFailing:
		trouble = falseVerdict(verifyv1.ReasonPlatformFailing,
			"Telegram fails or asks to wait, or refuses long polls; wait, or look at its status page")
	case telegram.PollIdle, telegram.PollRunning, telegram.PollHeld: // a message that cannot be stored is a problem of the store
		if left := pollConflictDelay - p.clock.Since(p.calm); left > 0 && p.calm.Sub(p.conflict) >= pollConflictDelay {
			return taken, left
		}
		return fine, 0
	}
	if left := delay - p.clock.Since(since); left > 0 {
		return fine, left
	}
	return trouble, 0
}

func notifyChannel(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // a value that is still unread is enough
	}
}
