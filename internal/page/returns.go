package page

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// returnLink returns where the page of a request that ended leads back to: returnURL with requestId and status added, for the
// client's backend to ask by. It is empty without a returnURL, and where the project does not list it any more.
func (h *Handler) returnLink(v *visit, now time.Time) string {
	r := &v.request
	if r.ReturnURL == "" || !v.settings.Page.AllowsReturn(r.ReturnURL) {
		return ""
	}
	u, err := url.Parse(r.ReturnURL)
	if err != nil {
		return "" // not reached: AllowsReturn parsed it
	}
	own := []string{"requestId", "status"}
	if r.Terms.Level == verification.LevelSession {
		own = append(own, "code")
	}
	kept := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(part string) bool { return isOwnParameter(part, own) })
	u.RawQuery = strings.Join(append(kept, "requestId="+r.ID, "status="+string(r.PhaseAt(now))), "&")
	return u.String()
}

// serveWrongNumber leads a user back who saw that the number is not theirs, and records that for the client. Anyone who has the page can
// call it, so it ends nothing, and a page that has more to show is shown.
func (h *Handler) serveWrongNumber(v *visit) {
	if !h.isOfOwnPage(v) {
		return
	}
	ctx, cancel := storeContext(v)
	defer cancel()
	if request, err := h.Service.RecordWrongNumber(ctx, v.id); err == nil {
		v.request = request
	} else { // the way back does not depend on it
		h.Log.Info("page cannot record a hint", "reason", err.Error())
	}
	now := h.Clock.Now()
	target := h.returnLink(v, now)
	if target == "" || v.request.IsProven() || v.request.PhaseAt(now).Final() {
		h.answerForm(v, http.StatusOK, "")
		return
	}
	redirect(v, target)
}

// isOwnParameter reports whether a part of a query is empty, or named as one of those that the page adds: backends may read the first
// of two.
func isOwnParameter(part string, own []string) bool {
	name, _, _ := strings.Cut(part, "=")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		name = unescaped
	}
	return part == "" || slices.Contains(own, name)
}
