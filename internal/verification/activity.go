package verification

import "time"

// Activity is what became of the requests of one method since a time.
type Activity struct {
	// Expired is how many ended as EXPIRED without being canceled: of those a message could no longer come. Those with DeliverCode are
	// none of them, as none need come. A store may stop counting at MostCounted.
	Expired int
	// LastHeard is the latest time of a message for any of them; zero if none came since then.
	LastHeard time.Time
}

// Count adds a request of the method. One of a test key is no activity of a messenger.
func (a *Activity) Count(r *Request, since time.Time) {
	if r.Test {
		return
	}
	if r.Phase == Expired && !r.isCanceled() && !r.DeliversCode() && !r.expiredAt().Before(since) {
		a.Expired++
	}
	a.Hear(r, since)
}

// Hear adds the last message of a request, which need not have anything but what HeardAt reads.
func (a *Activity) Hear(r *Request, since time.Time) {
	if heard := r.HeardAt(); !heard.Before(since) && heard.After(a.LastHeard) {
		a.LastHeard = heard
	}
}

// isCanceled reports whether the client, or the user on the page, ended the request.
func (r *Request) isCanceled() bool { return r.indexOfHint(HintCanceled) >= 0 }

// expiredAt returns when the request may be expired.
func (r *Request) expiredAt() time.Time { return r.ExpiresAt.Add(ExpiryGrace) }
