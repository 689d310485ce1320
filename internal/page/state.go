package page

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// stateOf returns what the page of a request shows at now with a messenger. chosen is set if its user chose the messenger, also in place of
// a code; opened if they tapped the button that opens it. The end is shown only after verification.ExpiryGrace, as in the API.
func stateOf(s *settings.Settings, r *verification.Request, method verification.Method, chosen, opened bool, now time.Time) view.State {
	hint := r.HintOfMessage(now)
	if about := methodOfHint(s, hint); about != "" && about != method {
		hint = "" // a user who changes to another messenger begins anew there
	}
	switch phase := r.PhaseAt(now); {
	case phase == verification.Verified:
		return view.Verified
	case phase == verification.Expired && hint == verification.HintDeclined:
		return view.Declined
	case phase == verification.Expired && hint == verification.HintCanceled:
		return view.Canceled
	case phase == verification.Expired:
		return view.Expired
	case r.IsProven() && r.Via == verification.ViaCode:
		return view.Code
	case r.IsProven():
		return view.Digits // whatever becomes of the messengers
	case r.DeliversCode() && !chosen && (stateOfHint(hint) == "" || isUnavailable(s, r)):
		return view.Code // whatever became of it: a stranger may look, too
	case isUnavailable(s, r):
		return view.Unavailable
	}
	if state := stateOfHint(hint); state != "" {
		return state
	}
	if opened {
		return view.Opened
	}
	return view.Ready
}

// stateOfHint returns what the page shows for the hint of an open request; empty if it shows none.
func stateOfHint(hint verification.HintKind) view.State {
	switch hint {
	case verification.HintOtherNumber:
		return view.OtherNumber
	case verification.HintNumberHidden:
		return view.Hidden
	case verification.HintAwaitingContact:
		return view.Seen
	case verification.HintTextRefused:
		return view.TextRefused
	case verification.HintContactRefused:
		return view.ContactRefused
	case verification.HintNumberAnonymous:
		return view.Anonymous
	case verification.HintNoQuestion:
		return view.NoQuestion
	case verification.HintAwaitingConfirmation, verification.HintTextChanged:
		return view.Confirm
	case "":
	case verification.HintTooLate, verification.HintDeclined, verification.HintWrongCode, verification.HintCanceled: // only after the end
	case verification.HintNumberWrong, verification.HintCodeNotSent: // not of a message
	}
	return ""
}

// progressOf returns how far a request has come. It never falls, so a replica that knows less is recognized by it.
func progressOf(r *verification.Request, now time.Time) int {
	progress := len(r.Hints)
	if r.IsProven() {
		progress++ // its hint may have been there before
	}
	if r.PhaseAt(now).Final() {
		progress += len(verification.HintKinds()) + 2
	}
	return progress
}

// isFinal reports whether the state of a page never changes again.
func isFinal(s view.State) bool {
	return s == view.Verified || s == view.Declined || s == view.Canceled || s == view.Expired
}

// methodOfHint returns the messenger that a hint is about; empty if it may be any.
func methodOfHint(s *settings.Settings, hint verification.HintKind) verification.Method {
	switch hint {
	case verification.HintNumberHidden, verification.HintAwaitingConfirmation, verification.HintTextChanged,
		verification.HintTextRefused, verification.HintNoQuestion:
		return verification.WhatsApp
	case verification.HintNumberAnonymous:
		return verification.Telegram
	case verification.HintAwaitingContact, verification.HintContactRefused:
		if s.WhatsApp == nil || s.WhatsApp.HiddenNumbers != settings.HiddenShared {
			return verification.Telegram
		}
		return ""
	case verification.HintOtherNumber, verification.HintTooLate, verification.HintDeclined, verification.HintWrongCode,
		verification.HintCanceled, verification.HintNumberWrong, verification.HintCodeNotSent, "":
		return ""
	}
	return ""
}

// isUnavailable reports whether no messenger can verify the request at the moment.
func isUnavailable(s *settings.Settings, r *verification.Request) bool {
	return !r.Test && (s.Suspended || len(usableMethods(s, r)) == 0)
}

// usableMethods returns the messengers that can verify the request at the moment, the client's choice first.
func usableMethods(s *settings.Settings, r *verification.Request) []verification.Method {
	var usable []verification.Method
	for _, method := range append([]verification.Method{r.Method}, r.OtherMethods...) {
		if s.Method(method) == settings.MethodReady {
			usable = append(usable, method)
		}
	}
	return usable
}
