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

// standing is how long trouble of the poller has to last before it is told: a change of leaders, whose polls meet, and a
// poll that breaks are none.
const standing = 30 * time.Second

// pollConflict is the message for the status 409.
const pollConflict = "another program fetches this bot's updates from Telegram; stop it, or have BotFather replace the token"

// polling is between the controller, which knows whether updates may be fetched, and the poller, which knows how it goes.
type polling struct {
	clock clock.PassiveClock
	wake  chan struct{} // for the poller
	news  chan struct{} // for the controller

	mu      sync.Mutex
	account *settings.Telegram // that may be polled; nil for none
	state   telegram.PollState
	since   time.Time
}

func newPolling(c clock.PassiveClock) *polling {
	return &polling{clock: c, wake: make(chan struct{}, 1), news: make(chan struct{}, 1), state: telegram.PollIdle}
}

// permit lets the updates of an account be fetched, and of no other; nil for none.
func (p *polling) permit(account *settings.Telegram) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.account = account
	if account != nil {
		signal(p.wake)
	}
}

// permitted tells whether that account's updates may be fetched. A token that was not looked at may be another bot's.
func (p *polling) permitted(account *settings.Telegram) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.account != nil && bytes.Equal(p.account.BotToken.Current(), account.BotToken.Current())
}

// report is told by the poller how it goes.
func (p *polling) report(state telegram.PollState, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if state == p.state {
		return
	}
	p.state, p.since = state, p.clock.Now()
	signal(p.news)
}

// verdict says how fetching goes, and when to look again at the latest; zero for no matter when.
func (p *polling) verdict() (verdict, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fine := good(verifyv1.ReasonPolling, "messages are fetched from Telegram")
	trouble := verdict{}
	switch p.state {
	case telegram.PollConflict:
		trouble = bad(verifyv1.ReasonCallbackTaken, pollConflict)
	case telegram.PollCredentials:
		trouble = bad(verifyv1.ReasonCredentialsRejected, tokenRefused)
	case telegram.PollUnavailable:
		trouble = bad(verifyv1.ReasonPlatformUnreachable, "Telegram does not answer long polls; wait, or look at the proxies between")
	case telegram.PollFailing:
		trouble = bad(verifyv1.ReasonPlatformFailing, "Telegram fails or asks to wait, or refuses long polls; wait, or look at its status page")
	case telegram.PollIdle, telegram.PollRunning, telegram.PollHeld: // a message that cannot be stored is the store's trouble
		return fine, 0
	}
	if left := standing - p.clock.Since(p.since); left > 0 {
		return fine, left
	}
	return trouble, 0
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // one that was not taken yet will do
	}
}
