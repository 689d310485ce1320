package memory

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Bounds of the advice to come back to a full store: a request may end at any moment, which no store can foresee, and
// asking more than once a second helps nobody.
const (
	leastRoomWait = time.Second
	mostRoomWait  = time.Minute
)

// room orders the requests of a project by which may go when the store is full. A request with an open event is in
// neither timeline: only a write can make it evictable.
type room struct {
	// ripening holds requests until they become evictable without a write: they lapse, or their code has rested.
	ripening timeline
	// evictable holds what may go, by its creation.
	evictable timeline
}

// place puts a request where it belongs at now.
func (r *room) place(rec *record, now time.Time) {
	at := rec.request.EvictableAt()
	switch {
	case at.IsZero():
		rec.inRoom.leave()
	case now.Before(at):
		rec.inRoom.move(&r.ripening, at)
	default:
		rec.inRoom.move(&r.evictable, rec.request.CreatedAt)
	}
}

// ripen moves the requests that became evictable since it was called last.
func (r *room) ripen(now time.Time) {
	for rec := r.ripening.first(now); rec != nil; rec = r.ripening.first(now) {
		r.place(rec, now)
	}
}

// wait is how long to wait for room: until the next request becomes evictable, for all that can be known.
func (r *room) wait(now time.Time) time.Duration {
	if len(r.ripening) == 0 {
		return mostRoomWait
	}
	ripe := time.UnixMicro(r.ripening[0].at).Sub(now)
	return min(max(ripe, leastRoomWait), mostRoomWait)
}

// makeRoom evicts until one more request fits under limit, the oldest first, or refuses and evicts nothing.
func (p *project) makeRoom(limit int, now time.Time) error {
	excess := len(p.records) + 1 - limit
	if limit <= 0 || excess <= 0 {
		return nil
	}
	p.room.ripen(now)
	if len(p.room.evictable) < excess {
		return verification.TooManyStored(p.room.wait(now))
	}
	for range excess {
		p.remove(p.room.evictable[0].record)
	}
	return nil
}
