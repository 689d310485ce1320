package whatsapp

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// CodeSenderOptions configure a CodeSender. All but Log are required.
type CodeSenderOptions struct {
	// Settings returns the current settings of the project; never nil.
	Settings func() *settings.Settings
	Service  *verification.Service
	Client   *Client
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
	return &CodeSender{CodeSenderOptions: o, slots: make(chan struct{}, maxCodesInFlight), taken: map[string]int{}}
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
	if s.taken[keyName] >= max(1, maxCodesInFlight/max(2, len(s.Settings().Keys.DeliverNames()))) {
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
		if result.State != verification.CodeSent { // other reasons may say who has WhatsApp
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
		return newNotSent(reasonTooLate)
	}
	code, ok := given, r.IsDelivery()
	if !ok {
		code, ok = current.DeliveredCode(r, now)
	}
	if !ok || current.WhatsApp.Codes == nil {
		return newNotSent(reasonNotConfigured)
	}
	ctx, cancel := context.WithTimeout(context.Background(), left) // the client has a bound of its own, if the clocks differ
	defer cancel()
	codes := current.WhatsApp.Codes
	answered, err := s.Client.SendCode(ctx, current.WhatsApp, r.Phone, CodeTemplate{
		Name: codes.TemplateName, Language: codes.LanguageFor(r.Locale), Code: code, Reference: newCodeReference(r),
	})
	return judgeCode(err, answered, r.Phone)
}

// recordResult stores the result of a code. While the store is away it tries until the result is shown as unknown.
func (s *CodeSender) recordResult(r *verification.Request, result verification.CodeResult) {
	left := r.CreatedAt.Add(verification.CodeUnknownAfter - time.Second).Sub(s.Clock.Now())
	ctx, cancel := context.WithTimeout(context.Background(), min(max(left, messageTimeout), verification.CodeUnknownAfter))
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
