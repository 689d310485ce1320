package verification

import (
	"errors"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// errOtherMode hides a request from the API keys of the other mode, and one of a test key from all messengers.
var errOtherMode = ErrNotFound

// IsVisibleTo reports whether an API key sees the request: a test key those of test keys, and any other key the others. A delivery is
// seen by StoredRequest and List alone.
func (r *Request) IsVisibleTo(testKey bool) bool { return r.Test == testKey && !r.IsDelivery() }

// PlaysAt returns when the outcome of a test number is to be played; zero if it was, or if there is nothing to play.
func (r *Request) PlaysAt() time.Time {
	outcome, found := findTestOutcome(r.Phone)
	if !r.Test || !found || r.Phase != Pending || r.IsProven() || len(r.Hints) > 0 {
		return time.Time{}
	}
	after, played := outcome.after()
	if !played || outcome == TestCodeNotSent && !r.DeliversCode() {
		return time.Time{}
	}
	return r.CreatedAt.Add(after)
}

// Play does to the request of a test key what the messages of its outcome do to any other, with the same states after it. It is
// ErrUnchanged for all other requests, before its time, and from the end of the request on.
func (r *Request) Play(now time.Time, wanted EventKinds) error {
	if at := r.PlaysAt(); at.IsZero() || now.Before(at) || !now.Before(r.EndsAt()) {
		return ErrUnchanged
	}
	claimed := Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}
	outcome, _ := findTestOutcome(r.Phone)
	switch outcome {
	case TestVerifiedAtOnce, TestVerifiedLater:
		return r.acceptProof(claimed, "", now, wanted)
	case TestNumberHidden:
		r.addAttention(HintNumberHidden, now, wanted)
	case TestOtherNumber:
		r.addAttention(HintOtherNumber, now, wanted)
	case TestDeclined:
		r.playDecline(claimed, now, wanted)
	case TestCodeNotSent:
		r.addAttention(HintCodeNotSent, now, wanted)
	case TestExpired, TestCodeUnknown, TestCodesLimited: // nothing comes
		return ErrUnchanged
	}
	return nil
}

// playDecline lets the owner of the number decline, who was asked before: by the session codes, or by an echo.
func (r *Request) playDecline(claimed Evidence, now time.Time, wanted EventKinds) {
	if r.Terms.Level == LevelSession {
		r.recordProof(claimed, "", now, wanted)
	} else {
		r.addHint(HintAwaitingConfirmation, now)
	}
	r.endBecause(HintDeclined, now, wanted)
}

// testOutcome returns the outcome of a test key's call, or why it is refused.
func testOutcome(n phone.Number, deliver DeliverKind) (TestOutcome, error) {
	outcome, found := findTestOutcome(n)
	if !found {
		return "", errNoTestNumber
	}
	if outcome == TestCodesLimited && deliver != DeliverNothing {
		return "", CodesLimited(LimitCodes, TestShortLife)
	}
	return outcome, nil
}

// errNoTestNumber refuses a number for which a test key would verify nothing.
var errNoTestNumber = &Error{
	Code: CodeNoTestNumber, Field: "phoneNumber",
	Message: "This is a test key: it takes only the test numbers that the documentation lists, and /openapi.json. " +
		"Use a key with mode Live for any other number.",
	Err: errors.New("not a test number"),
}
