package verification

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// A message that can prove nothing adds a hint to its request and changes nothing else. Receipt.Hinted is set for the message that added
// the first of its kind.

// RefuseText handles a text that never counts, such as a forwarded one. why is the hint, unless the request shows a better one.
func (s *Service) RefuseText(ctx context.Context, m Message, why HintKind, wanted EventKinds) (Receipt, error) {
	code, found := s.codes.Extract(m.Text)
	if !found {
		return Receipt{}, nil
	}
	return s.storeHint(WithCaller(ctx, m.asCaller()), s.codes.RequestID(code), wanted, func(r *Request, now time.Time) HintKind {
		return r.hintOfText(m, why, now)
	})
}

// RefuseContact handles a contact that never counts, of the sender behind binding. why is the hint.
func (s *Service) RefuseContact(ctx context.Context, binding string, e Evidence, why HintKind, wanted EventKinds) (Receipt, error) {
	ctx = WithCaller(ctx, Sender(binding))
	awaiting, err := s.store.Awaiting(ctx, binding)
	if err != nil {
		return receiptWithout(err)
	}
	return s.storeHint(ctx, awaiting.ID, wanted, func(r *Request, now time.Time) HintKind {
		return r.hintOfContact(e, binding, why, now)
	})
}

// RecordNoQuestion records that a sender never gets the question that the request awaits an answer to. codeID is the id that the code of
// the request leads to, asked has the binding of the sender and its time.
func (s *Service) RecordNoQuestion(ctx context.Context, codeID string, asked Contact, wanted EventKinds) error {
	if !IsRequestID(codeID) {
		return nil
	}
	_, err := s.storeHint(WithCaller(ctx, Sender(asked.Binding)), codeID, wanted, func(r *Request, now time.Time) HintKind {
		return r.hintOfLostQuestion(asked, now)
	})
	return err
}

// storeHint stores the hint that choose returns, if it is not empty and news.
func (s *Service) storeHint(ctx context.Context, id string, wanted EventKinds, choose func(*Request, time.Time) HintKind) (Receipt, error) {
	hinted := false
	request, err := s.store.Update(ctx, id, func(r *Request, now time.Time) error {
		if !r.IsVisibleTo(false) {
			return errOtherMode
		}
		kind := choose(r, now)
		hinted = kind != "" && r.indexOfHint(kind) < 0
		if kind == "" || !r.addAttention(kind, now, wanted) {
			return ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return receiptWithout(err)
	}
	return Receipt{Request: request, CodeID: id, Hinted: hinted}, nil
}

// receiptWithout returns the receipt of a message whose request was not found; its error if it is not known whether there is one.
func receiptWithout(err error) (Receipt, error) {
	switch {
	case errors.Is(err, ErrNotFound):
		return Receipt{Outcome: OutcomeUnknown}, nil
	case errors.Is(err, ErrTooManyUnknown):
		return Receipt{Outcome: OutcomeLimited}, nil
	default:
		return Receipt{}, fmt.Errorf("find the request of a message: %w", err)
	}
}

// hintOfText returns the hint of a text that never counts; empty if the request needs none, because it ended, is proven, or asks its user
// for something that leads on.
func (r *Request) hintOfText(m Message, why HintKind, now time.Time) HintKind {
	if r.checkMessage(m.Evidence, now) != nil {
		return ""
	}
	ownNumber := !m.Sender.IsZero() && phone.Same(r.Phone, m.Sender)
	i := slices.IndexFunc(r.Contacts, func(c Contact) bool { // other questions went to other senders
		if !m.Sender.IsZero() {
			return ownNumber && c.Kind == ContactConfirm
		}
		return c.Binding == m.Binding || slices.Contains(m.OlderBindings, c.Binding)
	})
	lost := r.indexOfHint(HintNoQuestion)
	switch {
	case i >= 0 && (lost < 0 || r.Hints[lost].At.Before(r.Contacts[i].BoundAt)):
		return ""
	case !m.Sender.IsZero() && !ownNumber:
		return HintOtherNumber
	default:
		return why
	}
}

// hintOfContact returns the hint of a contact that never counts; empty if its sender was not asked for one before.
func (r *Request) hintOfContact(e Evidence, binding string, why HintKind, now time.Time) HintKind {
	bound := r.BoundAt(binding)
	switch {
	case r.checkMessage(e, now) != nil, bound.IsZero(), e.SentAt.Before(bound.Truncate(time.Second)):
		return ""
	case why == HintContactRefused && r.lastHint().Kind == HintNumberAnonymous:
		return "" // their own contact would not do either
	default:
		return why
	}
}

// hintOfLostQuestion returns the hint of a question that never arrives; empty if the request awaits no answer to it, as after
// a later question, or awaits the contact of another sender by now. The claimed number of an echo is no sender: whether
// it gets its question is never shown.
func (r *Request) hintOfLostQuestion(asked Contact, now time.Time) HintKind {
	if r.Phase != Pending || r.IsProven() || !now.Before(r.EndsAt()) {
		return ""
	}
	i := slices.IndexFunc(r.Contacts, func(c Contact) bool { return c.Binding == asked.Binding && c.BoundAt.Equal(asked.BoundAt) })
	switch {
	case i < 0, r.Contacts[i].Kind == ContactEcho, r.Contacts[i].Kind == ContactShare && i < len(r.Contacts)-1:
		return ""
	default:
		return HintNoQuestion
	}
}
