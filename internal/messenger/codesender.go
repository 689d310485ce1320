package messenger

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// CodePlatform sends codes through one messenger. It is safe for concurrent use.
type CodePlatform interface {
	// SendCode sends a code to the number of a request, in one call that is never repeated and ends with ctx. The state of the result is
	// empty if the code may have been sent.
	SendCode(ctx context.Context, s *settings.Settings, r *verification.Request, code redact.Value[string]) verification.CodeResult
	// CodeReasons returns the reasons of its results.
	CodeReasons() []string
}

const (
	// MaxCodesInFlight bounds the codes that a replica sends at a time.
	MaxCodesInFlight = 64
	// codeResultPause is the wait between two tries to store the result of a code, codeResultTimeout bounds one of them.
	codeResultPause   = 250 * time.Millisecond
	codeResultTimeout = 1500 * time.Millisecond
	// drainCodes bounds how long codes are still sent after the end: none is longer than that on its way.
	drainCodes = verification.CodeSendTime
)

// The reasons of results that no answer of a platform gives.
const (
	CodeUnreachable   = "unreachable"    // no connection, so nothing was sent
	CodeTooLate       = "too_late"       // the time to send had passed
	CodeNotConfigured = "not_configured" // the project has no account, secret or template any more
	CodeNoAnswer      = "no_answer"      // the message may have been sent
)

// NewCodeNotSent returns the result of a code that was not sent, for a reason that does not depend on the number.
func NewCodeNotSent(reason string) verification.CodeResult {
	return verification.CodeResult{State: verification.CodeNotSent, Reason: reason}
}

// NewCodeSent returns the result of a code for the number asked that a platform took. answered is the number that its answer names; zero if
// it names none.
func NewCodeSent(answered, asked phone.Number) verification.CodeResult {
	result := verification.CodeResult{State: verification.CodeSent}
	if !answered.IsZero() && !phone.Same(answered, asked) {
		result.Reason = verification.CodeReasonOtherNumber
	}
	return result
}

// CodeSenderOptions configure a CodeSender. All but Log are required.
type CodeSenderOptions struct {
	// Settings returns the current settings of the project; never nil.
	Settings func() *settings.Settings
	Service  *verification.Service
	// Platforms are those that codes are sent through.
	Platforms map[verification.Method]CodePlatform
	// Clock is the store's time, by which a send ends.
	Clock   clock.PassiveClock
	Metrics *CodeMetrics
	// Log logs codes that are not sent.
	Log logr.Logger
}

// CodeSender sends delivered codes beside the answers of init, each once and from memory, and records each result. It implements
// verification.CodeSender. After a crash the result is unknown, and no process sends the code again.
type CodeSender struct {
	CodeSenderOptions

	slots chan struct{} // one for each code that is being sent

	mu    sync.Mutex
	taken map[string]int // how many of the slots each API key has
}

var _ verification.CodeSender = (*CodeSender)(nil)

// NewCodeSender returns a sender that works at once.
func NewCodeSender(o CodeSenderOptions) *CodeSender {
	for method, platform := range o.Platforms {
		o.Metrics.addReasons(method, platform.CodeReasons())
	}
	return &CodeSender{CodeSenderOptions: o, slots: make(chan struct{}, MaxCodesInFlight), taken: map[string]int{}}
}

// codeSlot is the place of one code.
type codeSlot struct {
	*CodeSender

	keyName string
	given   redact.Value[string] // the client's own code; zero for the one that follows from the request
}

// ReserveSlot returns a place to send a code from; false if all are taken, or the share of the API key. One that is leaked leaves half of
// them to the others, at least.
func (s *CodeSender) ReserveSlot(keyName string, given redact.Value[string]) (verification.CodeSlot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.slots
	if s.taken[keyName] >= max(1, MaxCodesInFlight/max(2, len(s.Settings().Keys.DeliverNames()))) {
		free = nil
	}
	select {
	case free <- struct{}{}:
		s.taken[keyName]++
		return codeSlot{s, keyName, given}, true
	default:
		return nil, false
	}
}

// Release frees the place of a code that is not sent.
func (s codeSlot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[s.keyName]--; s.taken[s.keyName] == 0 {
		delete(s.taken, s.keyName)
	}
	<-s.slots
}

// StartSending sends the code of a request that was just stored, and frees the place when its result is recorded.
func (s codeSlot) StartSending(r verification.Request) {
	go func() {
		defer s.Release()
		defer panics.Recover(func(failure error) { s.Log.Error(failure, "sending of code ended", "requestID", r.ID) })
		result := s.sendCode(&r, s.given)
		s.Metrics.countResult(&r, result)
		if result.State != verification.CodeSent { // other reasons may say who has the messenger
			s.Log.Info("code not sent", "requestID", r.ID, "reason", result.Reason)
		}
		if result.State != "" {
			s.recordResult(&r, result)
		}
	}()
}

// Drain returns when no code is being sent, after drainCodes at the latest. No place is free from then on.
func (s *CodeSender) Drain() {
	timer := time.NewTimer(drainCodes)
	defer timer.Stop()
	for range cap(s.slots) {
		select {
		case s.slots <- struct{}{}:
		case <-timer.C:
			return
		}
	}
}

// sendCode makes the one call for a request. Its state is empty if the message may have been sent.
func (s *CodeSender) sendCode(r *verification.Request, given redact.Value[string]) verification.CodeResult {
	current, now := s.Settings(), s.Clock.Now()
	left := r.CreatedAt.Add(verification.CodeSendTime).Sub(now)
	if left <= 0 {
		return NewCodeNotSent(CodeTooLate)
	}
	code, ok := given, r.IsDelivery()
	if !ok {
		code, ok = current.DeliveredCode(r, now)
	}
	platform := s.Platforms[r.Method]
	if _, sent := current.CodeCountries(r.Method); !ok || !sent || platform == nil {
		return NewCodeNotSent(CodeNotConfigured)
	}
	ctx, cancel := context.WithTimeout(context.Background(), left) // the client has a bound of its own, if the clocks differ
	defer cancel()
	return platform.SendCode(ctx, current, r, code)
}

// recordResult stores the result of a code. While the store is away it tries until the result is shown as unknown.
func (s *CodeSender) recordResult(r *verification.Request, result verification.CodeResult) {
	left := r.CreatedAt.Add(verification.CodeUnknownAfter - time.Second).Sub(s.Clock.Now())
	ctx, cancel := context.WithTimeout(context.Background(), min(max(left, codeResultTimeout), verification.CodeUnknownAfter))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, codeResultPause, true, func(ctx context.Context) (bool, error) {
		err := s.Service.RecordCodeResult(ctx, r.ID, r.CreatedAt, result, s.Settings().EventKinds())
		if errors.Is(err, verification.Unavailable(nil)) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		s.Log.Error(err, "result of code not recorded", "requestID", r.ID)
	}
}
