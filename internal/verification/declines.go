package verification

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// declines are the stored requests whose prover answered "Not me", for stores that count in memory. The zero value is ready.
type declines struct {
	byID     map[string]decline
	byNumber map[phone.Number]map[string]time.Time // when, by id
}

type decline struct {
	number  phone.Number
	created time.Time
}

// AddState adds the state of a stored request, for Limits.DeclineCooldown. A decline is final, so an older state of the same request
// that is added later changes nothing. That of a test key is played, and no owner of a number answered.
func (a *Admissions) AddState(r *Request) {
	if known, ok := a.declined.byID[r.ID]; ok && known.created.Equal(r.CreatedAt) {
		return
	}
	a.RemoveState(r.ID)
	if at := r.DeclinedAt(); !at.IsZero() && !r.Test {
		a.declined.add(r.ID, decline{phone.Canonical(r.Phone), r.CreatedAt}, at)
	}
}

// RemoveState removes the state of a request that is no longer stored.
func (a *Admissions) RemoveState(id string) { a.declined.remove(id) }

func (d *declines) add(id string, added decline, at time.Time) {
	if d.byID == nil {
		d.byID, d.byNumber = make(map[string]decline), make(map[phone.Number]map[string]time.Time)
	}
	d.byID[id] = added
	if d.byNumber[added.number] == nil {
		d.byNumber[added.number] = make(map[string]time.Time)
	}
	d.byNumber[added.number][id] = at
}

func (d *declines) remove(id string) {
	known, ok := d.byID[id]
	if !ok {
		return
	}
	delete(d.byID, id)
	if delete(d.byNumber[known.number], id); len(d.byNumber[known.number]) == 0 {
		delete(d.byNumber, known.number)
	}
}

// retryAfter returns how long after now the cool-down of a number lasts; zero or less if it has none.
func (d *declines) retryAfter(number phone.Number, cooldown time.Duration, now time.Time) time.Duration {
	if cooldown <= 0 || len(d.byNumber) == 0 {
		return 0
	}
	var last time.Time
	for _, at := range d.byNumber[phone.Canonical(number)] {
		if at.After(last) {
			last = at
		}
	}
	return UntilCooledDown(last, cooldown, now)
}

// UntilCooledDown returns how long after now the cool-down of a number lasts that was declined at that time; zero or less if it is over,
// or the time is zero.
func UntilCooledDown(declined time.Time, cooldown time.Duration, now time.Time) time.Duration {
	if cooldown <= 0 || declined.IsZero() {
		return 0
	}
	return declined.Add(cooldown).Sub(now)
}
