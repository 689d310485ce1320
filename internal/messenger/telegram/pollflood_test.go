package telegram

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// paced looks codes that no request has up as storage Kubernetes does: all of one half second share a read, and of all
// senders together few are looked up.
type paced struct {
	verification.Store

	mu     sync.Mutex
	left   float64
	filled time.Time
}

const (
	pacedBurst     = 100.0
	pacedPerSecond = 20.0
	pacedRead      = time.Second / 2
)

func (p *paced) Update(
	ctx context.Context, id string, mutate func(*verification.Request, time.Time) error,
) (verification.Request, error) {
	r, err := p.Store.Update(ctx, id, mutate)
	if !errors.Is(err, verification.ErrNotFound) {
		return r, err
	}
	if !p.admit() {
		return r, verification.TooManyUnknown(errors.New("all callers together"))
	}
	now := time.Now()
	timer := time.NewTimer(now.Truncate(pacedRead).Add(pacedRead).Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return r, err
	case <-ctx.Done():
		return r, ctx.Err()
	}
}

func (p *paced) admit() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.left = min(pacedBurst, p.left+now.Sub(p.filled).Seconds()*pacedPerSecond)
	p.filled = now
	if p.left < 1 {
		return false
	}
	p.left--
	return true
}

// sendMadeUp has each of some accounts send some codes that no request has. It returns the id of the next update.
func (p *polling) sendMadeUp(id int64, accounts, codes int) int64 {
	project := verification.NewCodeSpace(projectName)
	for account := range accounts {
		for range codes {
			code := project.CodeFor([32]byte{1}, strconv.FormatInt(id, 10))
			p.api.arrive(id, p.update(id, int64(1_000_000+account), "/start "+code.Grouped()))
			id++
		}
	}
	return id
}

// TestPoll_madeUpCodes has many accounts send codes that no request has, and an honest user behind them.
func TestPoll_madeUpCodes(t *testing.T) {
	for name, c := range map[string]struct {
		accounts, codes int
		within          time.Duration
	}{
		"within the bound of all": {100, 1, 2 * time.Second},
		"five from each of 20":    {20, 5, 5 * time.Second},
		"five from each of 120":   {120, 5, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, PollerOptions{}, func(p *polling) {
				made := p.initiate("golden")
				p.channel.service = verification.NewService(verification.NewCodeSpace(projectName), &paced{Store: p.backend.Open(projectName)})
				id := p.sendMadeUp(7, c.accounts, c.codes)
				p.api.arrive(id, p.update(id, user, "/start "+made.Code.Grouped()))
				began := time.Now()
				p.start()
				for len(p.api.got("sendMessage")) == 0 && time.Since(began) < 10*time.Minute {
					p.pass(100 * time.Millisecond)
				}
				t.Logf("%d made-up codes: asked for the contact after %v", c.accounts*c.codes, time.Since(began))
				p.Expect(time.Since(began)).To(BeNumerically("<=", c.within))
				p.api.arrive(id+1, p.contactLater(id+1, user, claimed, 5*time.Second))
				p.pass(2 * defaultPollTimeout)
				p.Expect(p.phase(made.Request.ID)).To(Equal(verification.Verified))
				p.Expect(p.api.waiting()).To(BeZero())
				p.Expect(p.reported()).To(Equal([]PollState{PollRunning}), "made-up codes do not hold the poller")
			})
		})
	}
}

// TestPoll_refusedLookUp: a code that is refused for want of room, and stored a moment later, is not lost; nor is what comes
// behind it kept waiting, or done twice.
func TestPoll_refusedLookUp(t *testing.T) {
	bubble(t, PollerOptions{}, func(p *polling) {
		store := &paced{Store: p.backend.Open(projectName), left: -pacedPerSecond / 2, filled: time.Now()}
		p.channel.service = verification.NewService(verification.NewCodeSpace(projectName), store)
		late := verification.NewCodeSpace(projectName).CodeFor([32]byte{1}, "late")
		p.api.arrive(7, p.update(7, stranger, "/start "+late.Grouped()))
		honest := p.initiate("golden")
		p.api.arrive(8, p.update(8, user, "/start "+honest.Code.Grouped()))
		p.start()
		p.pass(100 * time.Millisecond)
		p.Expect(p.api.got("sendMessage")).To(HaveLen(1), "the one behind is asked")
		p.Expect(p.api.waiting()).To(Equal(2), "neither is confirmed")
		p.pass(3 * time.Second)
		p.Expect(p.api.waiting()).To(BeZero())
		p.Expect(p.outcomes()).To(Equal(map[messenger.Outcome]float64{messenger.OutcomeFailed: 1, messenger.OutcomeNeedContact: 1, messenger.OutcomeUnknownCode: 1}))
	})
}
