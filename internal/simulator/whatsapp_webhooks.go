package simulator

import (
	"net/http"
	"time"
)

// parcel is a webhook of Meta's that waits to be posted. Parcels wait independently of each other: Meta promises no order.
type parcel struct {
	to       *business
	body     []byte
	line     *line // which shows what became of it; nil if none does
	attempt  int
	due      time.Time
	inFlight bool
}

// queueWebhook has a webhook posted after a time, once Start runs. It returns false if there is no callback, or no app is subscribed.
// The lock is held.
func (wa *whatsApp) queueWebhook(b *business, v waValue, l *line, after time.Duration) bool {
	if !b.Subscribed || b.callbackURL() == "" || b.secret() == "" || len(wa.parcels) >= maxParcels {
		return false
	}
	wa.parcels = append(wa.parcels, &parcel{
		to: b, body: encodeEscaped(newEnvelope(v)), line: l, due: wa.clock.Now().Add(after),
	})
	wa.wakeWaiters()
	return true
}

// takeDueParcels returns the parcels to post now, and how long no other will be. The lock is held.
func (wa *whatsApp) takeDueParcels(now time.Time) ([]job, time.Duration) {
	jobs, next := []job{}, time.Minute
	for _, p := range wa.parcels {
		switch wait := p.due.Sub(now); {
		case p.inFlight:
		case wait > 0:
			next = min(next, wait)
		default:
			p.inFlight = true
			p.attempt++
			jobs = append(jobs, wa.newParcelJob(p))
		}
	}
	return jobs, next
}

func (wa *whatsApp) newParcelJob(p *parcel) job {
	return job{
		platform: onWhatsApp, account: p.to.ID, url: p.to.callbackURL(), body: p.body, attempt: p.attempt,
		header: http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"facebookexternalua"}, metaSignature: {metaMAC([]byte(p.to.secret()), p.body)},
		},
		finish: func(r result) time.Time { return wa.finishParcel(p, r) },
	}
}

// finishParcel forgets a parcel that was taken: Meta wants 200 and nothing else. Others come again, later each time.
func (wa *whatsApp) finishParcel(p *parcel, r result) time.Time {
	p.inFlight = false
	var again time.Time
	switch {
	case r.status == http.StatusOK:
		p.line.setState(stateDelivered, r)
	case p.attempt >= attempts:
		p.line.setState(stateFailed, r)
	default:
		again = wa.clock.Now().Add(retryDelay(wa.retry, p.attempt))
		p.due = again
		p.line.setState(stateWaiting, r)
		return again
	}
	for i := range wa.parcels {
		if wa.parcels[i] == p {
			wa.parcels = append(wa.parcels[:i:i], wa.parcels[i+1:]...)
			break
		}
	}
	return again
}

func (l *line) setState(state string, r result) {
	if l != nil {
		l.State, l.Status = state, r.status
	}
}

// writeToBusiness sends a text to a WhatsApp account. The lock is held.
func (wa *whatsApp) writeToBusiness(u *user, c *chat, l *line, forwarded bool) {
	v := u.newTextValue(c.business, l.Text, l.At)
	if forwarded {
		v.Messages[0].Context = &waContext{Forwarded: true}
	}
	wa.queueMessage(c, v, l)
}

// shareWithBusiness answers a request for the contact. The lock is held.
func (wa *whatsApp) shareWithBusiness(u *user, c *chat, l *line) {
	c.AsksForContact, c.Button = false, ""
	wa.queueMessage(c, u.newCardValue(c.business, l.At), l)
}

func (wa *whatsApp) queueMessage(c *chat, v waValue, l *line) {
	l.ID = v.Messages[0].ID
	if !wa.queueWebhook(c.business, v, l, 0) {
		l.State = stateNowhere
	}
}
