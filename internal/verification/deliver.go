package verification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/internal/redact"
)

// DeliverKind is what is sent to the number of a request.
type DeliverKind string

const (
	// DeliverNothing sends nothing: the user sends a message. It is the zero value.
	DeliverNothing DeliverKind = ""
	// DeliverCode sends eight digits through the request's Method: a template of WhatsApp, or Telegram's Gateway.
	DeliverCode DeliverKind = "CODE"
	// DeliverGiven sends a code of the client's own through the request's Method. Such a request is a delivery: nothing verifies it.
	DeliverGiven DeliverKind = "GIVEN"
)

// Via is what proved the number of a request.
type Via string

const (
	// ViaMessage is a message of its user. It is the zero value and is not shown.
	ViaMessage Via = ""
	// ViaCode is the code that was sent to the number.
	ViaCode Via = "CODE"
)

// CodeState is how far the sending of a code is, spelled as the API answers it. It is empty while that is not known.
type CodeState string

const (
	// CodeSent means that the messenger has the code, or that it refused it for a reason that may depend on the number.
	CodeSent CodeState = "SENT"
	// CodeNotSent means that no code was sent, for a reason that does not depend on the number.
	CodeNotSent CodeState = "NOT_SENT"
	// CodeUnknown means that no result was stored in time. It is shown and never stored.
	CodeUnknown CodeState = "UNKNOWN"
)

// CodeResult is what became of a code, as it is stored.
type CodeResult struct {
	// State is CodeSent or CodeNotSent; empty while there is no result.
	State CodeState
	// Reason is one word in snake_case for what the messenger answered; empty for none. Only keys with scope Read see it.
	Reason string
}

// AddsTo reports whether a result says more than a stored one of the same state.
func (c CodeResult) AddsTo(stored CodeResult) bool {
	return c.Reason == CodeReasonOtherNumber || c.Reason != "" && stored.Reason == ""
}

// CodeReasonOtherNumber is the CodeResult.Reason of a code that went to another number. It never confirms the request.
const CodeReasonOtherNumber = "other_number"

const (
	// CodeKept is how long after its creation a request that delivers a code is kept, so that it counts in the limits of codes.
	CodeKept = 24 * time.Hour
	// CodeSendTime is how long after the creation of its request a code is sent at the latest.
	CodeSendTime = 10 * time.Second
	// CodeUnknownAfter is how long after the creation a request without a result is shown as CodeUnknown.
	CodeUnknownAfter = 15 * time.Second
	// MaxDeliveredTries is how many wrong codes end a request with DeliverCode, wherever they are entered.
	MaxDeliveredTries = 3
)

// CodeSender sends codes. It is safe for concurrent use.
type CodeSender interface {
	// ReserveSlot reserves one of the sendings that the process makes at a time; false if all are taken, or those of the API key. given
	// is the code to send, if that is the client's own.
	ReserveSlot(keyName string, given redact.Value[string]) (CodeSlot, bool)
}

// CodeSlot is a reserved sending. Exactly one of its methods is called, once.
type CodeSlot interface {
	// StartSending sends the code of a request whose creation the caller has committed, and frees the slot afterwards. It does not wait.
	StartSending(r Request)
	// Release frees the slot without sending.
	Release()
}

// ErrNoCodes refuses a code in a project that sends none.
var ErrNoCodes = &Error{
	Code:    CodeCodesNotConfigured,
	Message: "This project sends no codes through this messenger: it needs spec.whatsapp.codes, or spec.telegram.codes.",
	Err:     errors.New("no sender of codes"),
}

// errCodesBusy refuses a code while as many are sent as a process may.
var errCodesBusy = &Error{
	Code: CodeCodesBusy, RetryAfter: 2 * time.Second,
	Message: "Too many codes are being sent right now. Nothing was stored: try again after the time in Retry-After.",
	Err:     errors.New("no free slot to send a code"),
}

// ErrNoRoom refuses a body that is not authenticated yet while others take the room that all of them share.
var ErrNoRoom = &Error{
	Code: CodeCodesBusy, RetryAfter: 2 * time.Second,
	Message: "Too many large bodies arrive right now. Nothing was stored: try again after the time in Retry-After.",
}

// noSlot is the slot of a request to whose number nothing is sent.
type noSlot struct{}

// StartSending implements CodeSlot.
func (noSlot) StartSending(Request) {}

// Release implements CodeSlot.
func (noSlot) Release() {}

// DeliversCode reports whether a code is sent to the number.
func (r *Request) DeliversCode() bool { return r.Terms.Deliver != DeliverNothing }

// IsDelivery reports whether the code is the client's own. A delivery is EXPIRED from its start, so that no message, code or page
// verifies it, not even at a replica that does not know deliveries yet.
func (r *Request) IsDelivery() bool { return r.Terms.Deliver == DeliverGiven }

// MaxTries returns how many wrong codes end the request.
func (r *Request) MaxTries() int {
	if r.DeliversCode() {
		return MaxDeliveredTries
	}
	return MaxConfirmTries
}

// TriesLeft returns how many wrong codes the request still takes, the one that ends it included; never less than 0.
func (r *Request) TriesLeft() int { return max(0, r.MaxTries()-r.WrongCodes) }

// IsCodeOpen reports whether the result of sending the code may still be stored first.
func (r *Request) IsCodeOpen() bool { return r.DeliversCode() && r.Code.State == "" && !r.Test }

// CodeDeliveryAt returns how far the sending of the code is at now; empty for a request without one, and while nothing is known.
func (r *Request) CodeDeliveryAt(now time.Time) CodeState {
	switch {
	case !r.DeliversCode():
		return ""
	case r.Test:
		return r.testCodeState()
	case r.Via == ViaCode: // it came, also if its result was lost
		return CodeSent
	case r.Code.State == CodeSent && !r.IsDelivery() && now.Before(r.CreatedAt.Add(CodeSendTime)):
		return "" // a messenger may refuse numbers that it does not know sooner than it accepts others
	case r.Code.State != "":
		return r.Code.State
	case !now.Before(r.CreatedAt.Add(CodeUnknownAfter)):
		return CodeUnknown
	default:
		return ""
	}
}

// testCodeState returns how far the sending of a code is that a test key asked for: its number decides, at once.
func (r *Request) testCodeState() CodeState {
	switch outcome, _ := findTestOutcome(r.Phone); outcome {
	case TestCodeNotSent:
		return CodeNotSent
	case TestCodeUnknown:
		return CodeUnknown
	default:
		return CodeSent
	}
}

// RecordCodeResult records what became of the code, also after the end of the request. A result is CodeSent or CodeNotSent. The first one
// stays, but CodeSent may still get a reason, because a messenger may report that later, unless the code went to another number.
// If nothing changes it is ErrUnchanged.
func (r *Request) RecordCodeResult(result CodeResult, now time.Time, wanted EventKinds) error {
	switch {
	case !r.DeliversCode() || r.Test || r.Code.Reason == CodeReasonOtherNumber || r.Code.State == CodeNotSent:
		return ErrUnchanged
	case result.State == CodeNotSent && (r.Via == ViaCode || r.Code.State != ""):
		return ErrUnchanged
	case result.State == r.Code.State && !result.AddsTo(r.Code):
		return ErrUnchanged
	}
	r.Code = result
	if result.State == CodeNotSent && r.Phase == Pending && now.Before(r.EndsAt()) && !r.IsProven() && !r.awaitsSender() {
		r.addAttention(HintCodeNotSent, now, wanted)
	}
	return nil
}

// awaitsSender reports whether a sender of the code was asked for more, and nothing came after that.
func (r *Request) awaitsSender() bool {
	last := r.lastHint().Kind
	return last == HintAwaitingContact || last == HintAwaitingConfirmation
}

// RecordCodeResult records what became of the code of the request that was created at that time; see Request.RecordCodeResult. If the
// request is gone, or another one has its id, there is nothing to record.
func (s *Service) RecordCodeResult(ctx context.Context, id string, createdAt time.Time, result CodeResult, wanted EventKinds) error {
	if !IsRequestID(id) {
		return nil
	}
	_, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		if !r.CreatedAt.Equal(createdAt) {
			return ErrUnchanged
		}
		return r.RecordCodeResult(result, now, wanted)
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("record result of a code: %w", err)
	}
	return nil
}
