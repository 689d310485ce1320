package page

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// heartbeatLine is what a stream without news shows.
const heartbeatLine = ":\n\n"

// shown is what a page shows, and how far its request has come.
type shown struct {
	state    view.State
	progress int
}

// serveEvents answers with a stream of server-sent events: the present state at once, and each other one when it comes. The id of
// an event is the progress of the request. A browser that resumes names the last one, and is not set back by a replica that knows
// less.
func (h *Handler) serveEvents(v *visit) {
	if v.slot == nil { // a HEAD request
		return
	}
	stream := http.NewResponseController(v.w)
	stream.SetReadDeadline(time.Time{}) //nolint:errcheck // fails without a connection only
	v.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	v.w.Header().Set("X-Accel-Buffering", "no") // of nginx, which would keep the events back
	write := func(text string) bool {
		stream.SetWriteDeadline(time.Now().Add(writeTime)) //nolint:errcheck // fails without a connection only
		if _, err := io.WriteString(v.w, text); err != nil {
			return false
		}
		return stream.Flush() == nil
	}
	present := h.shownTo(v)
	first := renderEvent(present)
	if last, err := strconv.Atoi(v.r.Header.Get("Last-Event-ID")); err == nil && last > present.progress {
		present, first = shown{progress: last}, heartbeatLine // this replica will learn of it
	}
	if !write("retry: 3000\n" + first) {
		return
	}
	// All were used, and those of 1,792 open pages are 5 MiB.
	v.r.Header = nil
	clear(v.w.Header())
	v.path = ""
	end := h.Clock.Now().Add(followTime)
	for !isFinal(present.state) {
		next, ended := h.awaitState(v, present, min(heartbeat, h.until(end)))
		switch {
		case next != present:
			if present = next; !write(renderEvent(present)) {
				return
			}
		case ended || h.until(end) <= 0 || !write(heartbeatLine):
			return
		}
	}
}

// renderEvent returns the event of what a page shows.
func renderEvent(s shown) string {
	return "event: state\nid: " + strconv.Itoa(s.progress) + "\ndata: " + string(s.state) + "\n\n"
}

// serveState answers a poll: a long one with the state as soon as it is another than the one that the page shows, or when its time
// is up. Where no more can follow it answers at once, so that a page is late and never left behind.
func (h *Handler) serveState(v *visit) {
	v.w.Header().Set("Content-Type", "application/json")
	present := h.shownTo(v)
	since := view.State(v.r.URL.Query().Get("since"))
	if since == present.state && !isFinal(present.state) && v.r.Method == http.MethodGet && h.beginFollowing(v) {
		stream := http.NewResponseController(v.w)
		stream.SetReadDeadline(time.Time{}) //nolint:errcheck // fails without a connection only
		// An answer that has begun may be ended when connections run out, so that pages never keep out the API.
		stream.Flush() //nolint:errcheck // the browser has gone
		// It is read after the subscription, so that no change between the two is missed.
		if err := h.readRequest(v); err == nil {
			present, _ = h.awaitState(v, present, pollTime)
		}
	}
	fmt.Fprintf(v.w, `{"state":"%s","progress":%d}`+"\n", present.state, present.progress)
}

// beginFollowing takes a slot for a page that follows and subscribes to its request, and reports whether one was free.
func (h *Handler) beginFollowing(v *visit) bool {
	if v.slot = h.followers.beginFollowing(v.id, boundedhttp.ConnectionsOf(v.r.Context())); v.slot == nil {
		return false
	}
	h.following.Inc()
	v.changes, v.unsubscribe = h.Service.Subscribe(v.id)
	return true
}

// endFollowing frees the slot of a call, if it has one.
func (h *Handler) endFollowing(v *visit) {
	if v.slot == nil {
		return
	}
	v.unsubscribe()
	h.followers.endFollowing(v.id, v.slot)
	h.following.Dec()
}

// shownTo returns what the page shows now.
func (h *Handler) shownTo(v *visit) shown {
	s, now := h.Settings(), h.Clock.Now()
	method := methodOf(s, v, now)
	return shown{stateOf(s, &v.request, method, v.choosesMethod(), slices.Contains(v.marks, method), now), progressOf(&v.request, now)}
}

// awaitState returns what the page is to show as soon as that is something else than present, and not from a replica that knows less;
// or present after that time. ended is set when there is nothing more to wait for: the browser has gone, the server drains, another
// call took the slot of this one, or the request cannot be read. It reads the request after a change and when it lapses, and not
// when the time is up: many pages would read much.
func (h *Handler) awaitState(v *visit, present shown, patience time.Duration) (next shown, ended bool) {
	var draining <-chan struct{}
	if h.Draining != nil {
		draining = h.Draining(v.r.Context())
	}
	end := h.Clock.Now().Add(patience)
	for {
		next := h.shownTo(v)
		if isFinal(next.state) && v.request.Phase == verification.Pending { // only the clock says so
			if h.readRequest(v) != nil {
				return present, true
			}
			next = h.shownTo(v)
		}
		if next.state != present.state && next.progress >= present.progress {
			return next, false
		}
		now := h.Clock.Now()
		if !now.Before(end) {
			return present, false
		}
		check := nextCheck(&v.request, now, end)
		if v.timer == nil {
			v.timer = h.Clock.NewTimer(check.Sub(now))
		} else {
			v.timer.Reset(check.Sub(now))
		}
		select {
		case <-v.changes:
		case <-v.timer.C():
			if check.Equal(end) {
				continue
			}
		case <-draining:
			ended = true
		case <-v.slot.Lost():
			ended = true
		case <-v.r.Context().Done():
			ended = true
		}
		v.timer.Stop()
		if ended || h.readRequest(v) != nil {
			return present, true
		}
	}
}

// nextCheck returns when a page must check again without a change: at end, or when the request lapses before.
func nextCheck(r *verification.Request, now, end time.Time) time.Time {
	if at := r.EndsAt().Add(verification.ExpiryGrace); now.Before(at) && at.Before(end) {
		return at
	}
	return end
}
