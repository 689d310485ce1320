package memory

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// room orders the requests of a project for eviction from a full store: those of test keys, or all others. A request with an open event
// is in neither timeline, because only a write can make it evictable.
type room struct {
	// records counts them, those without a place among them.
	records int
	// limits are those of the current order, as far as Request.EvictableAt depends on them.
	limits verification.Limits
	// ripening holds requests that become evictable by time: when they lapse, or when their code has rested or their
	// number has cooled down.
	ripening timeline
	// evictable holds the requests that can be evicted, by their creation.
	evictable timeline
}

// placeRecord moves a request to its timeline at now.
func (r *room) placeRecord(rec *record, now time.Time) {
	at := rec.request.EvictableAt(r.limits)
	switch {
	case at.IsZero():
		rec.inRoom.leave()
	case now.Before(at):
		rec.inRoom.move(&r.ripening, at)
	default:
		rec.inRoom.move(&r.evictable, rec.request.CreatedAt)
	}
}

// moveEvictable moves the requests that have become evictable since its last call.
func (r *room) moveEvictable(now time.Time) {
	for rec := r.ripening.firstDue(now); rec != nil; rec = r.ripening.firstDue(now) {
		r.placeRecord(rec, now)
	}
}

// untilEvictable returns the time until the next request becomes evictable; negative if that is unknown.
func (r *room) untilEvictable(now time.Time) time.Duration {
	if len(r.ripening) == 0 {
		return -1
	}
	return time.UnixMicro(r.ripening[0].at).Sub(now)
}

// roomOf returns the room of test keys, or that of all others.
func (p *project) roomOf(test bool) *room {
	if test {
		return &p.testRoom
	}
	return &p.room
}

// makeRoom evicts requests, the oldest first, until one more fits under the limit. If that is impossible, it evicts nothing and
// returns TooManyStored.
func (p *project) makeRoom(test bool, limits verification.Limits, now time.Time) error {
	r := p.roomOf(test)
	excess := r.records + 1 - limits.MaxStored
	if limits.MaxStored <= 0 || excess <= 0 {
		return nil
	}
	if order := (verification.Limits{KeepLapsed: limits.KeepLapsed, DeclineCooldown: limits.DeclineCooldown}); order != r.limits {
		r.limits = order
		for _, rec := range p.records {
			if rec.request.Test == test {
				r.placeRecord(rec, now)
			}
		}
	}
	r.moveEvictable(now)
	if len(r.evictable) < excess {
		return verification.TooManyStored(r.untilEvictable(now))
	}
	for range excess {
		p.removeRecord(r.evictable[0].record)
	}
	return nil
}
