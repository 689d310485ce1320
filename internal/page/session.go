package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The operations of a page at verification.LevelSession. The return code leaves this package in one way: by a redirect to returnURL, for a
// browser that sent the digits or the return code itself. To hold the page open is not enough, because an attacker may.

// serveConfirm leads a user back who typed the right digits into the page. Wrong ones count.
func (h *Handler) serveConfirm(v *visit) {
	if !h.admitForm(v) {
		return
	}
	if h.returnLink(v, h.Clock.Now()) == "" {
		h.answerForm(v, http.StatusOK, "") // the page does not ask for digits
		return
	}
	code, status := readCode(v)
	if status != http.StatusOK {
		h.answerForm(v, status, view.NotDigits)
		return
	}
	if v.request.PhaseAt(h.Clock.Now()).Final() {
		h.answerForm(v, http.StatusConflict, "")
		return
	}
	// One at a time: right digits of the chat are no write, so they could overtake wrong ones that are not counted yet.
	if _, busy := h.checking.LoadOrStore(v.id, nil); busy {
		h.refused.WithLabelValues(refusedRate).Inc()
		v.w.Header().Set("Retry-After", "5")
		h.answerForm(v, http.StatusTooManyRequests, view.NotChecked)
		return
	}
	defer h.checking.Delete(v.id)
	ctx, cancel := storeContext(v)
	defer cancel()
	request, err := h.Service.CheckSessionCode(ctx, v.id, code, h.sessionSecrets(v), v.settings.EventKinds())
	if err == nil || request.ID != "" {
		v.request = request
	}
	switch {
	case err == nil:
		h.leadBack(v)
	case errors.Is(err, verification.ErrWrongCode):
		h.answerForm(v, http.StatusUnprocessableEntity, view.WrongDigits)
	case errors.Is(err, verification.ErrNoDelivered), errors.Is(err, verification.ErrNotProven): // of another kind than the page asks for
		h.answerForm(v, http.StatusConflict, view.NotDigits)
	case request.ID != "":
		h.answerForm(v, http.StatusConflict, "")
	default:
		h.answerFailure(v, err, view.NotChecked)
	}
}

// readCode returns the code in the form of a call, and the HTTP status for one without.
func readCode(v *visit) (verification.SessionCode, int) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	var tooLarge *http.MaxBytesError
	if err := v.r.ParseForm(); errors.As(err, &tooLarge) {
		return verification.SessionCode{}, http.StatusRequestEntityTooLarge
	}
	code, valid := verification.ParseSessionCode(v.r.PostForm.Get("code"))
	if !valid {
		return code, http.StatusBadRequest
	}
	return code, http.StatusOK
}

// serveReturn leads a user back who opened the link in the chat in the browser in which they opened the messenger. All others, and those
// whose link is not right, get the page, without the code in its address. It changes nothing: previews and scanners of links call it, too.
// The digits do not lead back here: no try would be counted.
func (h *Handler) serveReturn(v *visit) {
	if !h.hasSession(v) {
		return
	}
	entered := v.r.URL.Query().Get("code")
	if len(v.marks) == 0 || entered == "" {
		redirect(v, v.path)
		return
	}
	// This replica may not know of the proof yet, nor of the end.
	ctx, cancel := storeContext(v)
	defer cancel()
	if err := h.confirmEnd(ctx, v); err != nil {
		h.answerFailure(v, err, "")
		return
	}
	if h.isReturnCode(v, entered) {
		h.leadBack(v)
		return
	}
	redirect(v, v.path)
}

// isReturnCode reports whether a text is the return code of a request that awaits its confirmation.
func (h *Handler) isReturnCode(v *visit, entered string) bool {
	now := h.Clock.Now()
	if r := &v.request; r.Phase != verification.Pending || !r.IsProven() || !now.Before(r.EndsAt()) {
		return false
	}
	return verification.NewCodeSpace(v.settings.Project).IsReturnCode(&v.request, entered, v.settings.CodeSecrets(&v.request, now).Session)
}

// serveCancel ends a pending request.
func (h *Handler) serveCancel(v *visit) {
	if !h.admitForm(v) {
		return
	}
	ctx, cancel := storeContext(v)
	defer cancel()
	request, err := h.Service.Cancel(ctx, v.id, v.settings.EventKinds())
	if err != nil && !errors.Is(err, verification.ErrFinal) {
		h.answerFailure(v, err, "")
		return
	}
	v.request = request
	h.answerForm(v, http.StatusOK, "")
}

// hasSession reports whether the request of a call is one of verification.LevelSession; if not, the call was refused.
func (h *Handler) hasSession(v *visit) bool {
	if v.request.Terms.Level != verification.LevelSession {
		h.refuse(v.w, v.r, http.StatusNotFound, refusedPath)
		return false
	}
	return true
}

// admitForm reports whether a call is that of a form of the page of a session; if not, it was refused.
func (h *Handler) admitForm(v *visit) bool { return h.hasSession(v) && h.isOfOwnPage(v) }

// isOfOwnPage reports whether a call comes from the page itself, and from no other site; if not, it was refused.
func (h *Handler) isOfOwnPage(v *visit) bool {
	if err := h.origins.Check(v.r); err != nil {
		h.refuse(v.w, v.r, http.StatusForbidden, refusedOrigin)
		return false
	}
	return true
}

// answerForm answers a form with the page as it is then.
func (h *Handler) answerForm(v *visit, status int, problem view.Problem) {
	out := h.viewOf(v)
	out.Answer, out.Problem, out.TriesLeft = true, problem, v.request.TriesLeft()
	h.write(v, status, out)
}

// answerFailure answers a call whose request could not be read or changed. With a problem the user can enter the digits once more.
func (h *Handler) answerFailure(v *visit, err error, problem view.Problem) {
	if errors.Is(err, verification.ErrNotFound) {
		h.refuse(v.w, v.r, http.StatusNotFound, refusedTicket)
		return
	}
	h.Log.Info("page cannot serve a call", "reason", err.Error())
	v.w.Header().Set("Retry-After", "5")
	if problem != "" && (v.request.IsProven() || v.request.DeliversCode()) {
		h.answerForm(v, http.StatusServiceUnavailable, problem)
		return
	}
	out := h.newView(v, view.Unavailable)
	out.Answer = true
	h.write(v, http.StatusServiceUnavailable, out)
}

// leadBack redirects to the client with the return code of a request that awaits its confirmation.
func (h *Handler) leadBack(v *visit) {
	now := h.Clock.Now()
	target := h.returnLink(v, now)
	codes, found := v.settings.SessionCodes(&v.request, now)
	if target == "" || !found {
		redirect(v, v.path)
		return
	}
	redirect(v, target+"&code="+url.QueryEscape(codes.Return.Reveal()))
}

// redirect answers a call with another address. It has no body: that would repeat the address.
func redirect(v *visit, target string) {
	v.w.Header().Set("Location", target)
	v.w.WriteHeader(http.StatusSeeOther)
}

// sessionSecrets returns what the codes of a request may have been made with.
func (h *Handler) sessionSecrets(v *visit) verification.SecretsFunc {
	now := h.Clock.Now()
	return func(r *verification.Request) verification.CodeSecrets { return v.settings.CodeSecrets(r, now) }
}

// storeContext bounds a call of the store. A browser that goes does not end it.
func storeContext(v *visit) (context.Context, context.CancelFunc) {
	return context.WithTimeout(verification.WithCaller(context.WithoutCancel(v.r.Context()), verification.Client(callerName)), storeTime)
}

// formTargets returns what the forms of a page may lead to, as sources of a policy: the page itself, and the origins of returnURLs.
// Browsers hold each redirect of a form to that, so a client whose page redirects to another origin lists that as well.
func formTargets(p *settings.Page) []string {
	targets := []string{"'self'"}
	for _, listed := range p.ReturnURLs {
		u, err := url.Parse(listed)
		if err != nil {
			continue // not reached: the API server and the file mode check them
		}
		if origin := fmt.Sprintf("%s://%s", u.Scheme, u.Host); !slices.Contains(targets, origin) {
			targets = append(targets, origin)
		}
	}
	return targets
}
