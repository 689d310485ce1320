package leader

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// Shared lets several workers work in the terms of one lease: each for as long as the term lasts and the worker itself. One that
// fails does not end the term of the others.
type Shared struct {
	clock clock.Clock

	mu      sync.Mutex
	term    context.Context //nolint:containedctx // of the present term; nil between terms
	began   chan struct{}   // closed when the next term begins
	working sync.WaitGroup
}

// NewShared returns what is between two terms. The clock is the machine's.
func NewShared(clk clock.Clock) *Shared { return &Shared{clock: clk, began: make(chan struct{})} }

// Run is the Term of an Elector. It returns after ctx has ended, when no worker works any more.
func (s *Shared) Run(ctx context.Context) error {
	s.mu.Lock()
	s.term = ctx
	close(s.began)
	s.began = make(chan struct{})
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.term = nil
	s.mu.Unlock()
	s.working.Wait()
	return nil
}

// Work calls work in each term until ctx ends, and waits for it. If work ends within a term, it is called again, later each time.
func (s *Shared) Work(ctx context.Context, log logr.Logger, work func(context.Context) error) {
	for ctx.Err() == nil {
		if term, began := s.joinTerm(); term != nil {
			s.workInTerm(ctx, term, log, work)
		} else {
			select {
			case <-began:
			case <-ctx.Done():
			}
		}
	}
}

// joinTerm returns the present term, which does not end before working is done; without one, what is closed when it begins.
func (s *Shared) joinTerm() (term context.Context, began <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil || s.term.Err() != nil {
		return nil, s.began
	}
	s.working.Add(1)
	return s.term, nil
}

func (s *Shared) workInTerm(ctx, term context.Context, log logr.Logger, work func(context.Context) error) {
	defer s.working.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	RepeatUntilEnd(ctx, s.clock, func(ctx context.Context) {
		if err := work(ctx); err != nil {
			log.Error(err, "the work of the term ended early, will retry")
		}
	})
}

// The pauses of RepeatUntilEnd.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	// forgottenAfter is how long after a first pause the next one is as short again.
	forgottenAfter = 10 * time.Minute
)

// newPauses returns the pauses after failures.
func newPauses() *wait.Backoff {
	return &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.1, Steps: 8, Cap: longestPause}
}

// RepeatUntilEnd calls a function that should not return until ctx ends, again after each return: after a second at first, and
// after a minute at last. The clock decides only when the pauses begin anew.
func RepeatUntilEnd(ctx context.Context, clk clock.Clock, call func(context.Context)) {
	_ = newPauses().DelayWithReset(clk, forgottenAfter).Until(ctx, true, true, func(ctx context.Context) (bool, error) { // ends with ctx alone
		call(ctx)
		return false, nil
	})
}
