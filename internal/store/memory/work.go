package memory

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// work orders the requests of a project by what Next says about them. A record is in exactly one of its timelines.
type work struct {
	// policy is the one that the order was made with.
	policy verification.Policy
	// waiting holds requests until Next is to be asked again, or until the lease on them ends.
	waiting timeline
	// due holds requests that need a step, by the time since when they do.
	due timeline
}

// place puts a request where it belongs at now.
func (w *work) place(rec *record, now time.Time) {
	if rec.leasedUntil.After(now) {
		rec.inWork.move(&w.waiting, rec.leasedUntil)
		return
	}
	next := verification.Next(&rec.request, now, w.policy)
	if next.Step == verification.StepWait {
		rec.inWork.move(&w.waiting, next.At)
		return
	}
	// Asked at the beginning of time, Next says since when the step is due: the longest overdue goes first, whatever
	// leases it went through.
	rec.inWork.move(&w.due, verification.Next(&rec.request, time.Time{}, w.policy).At)
}

// wake moves the requests whose wait is over. Each moves once per wait.
func (w *work) wake(now time.Time) {
	for rec := w.waiting.first(now); rec != nil; rec = w.waiting.first(now) {
		w.place(rec, now)
	}
}

// claim leases due requests to the caller. Subscribers are not told: they cannot see an epoch.
func (p *project) claim(policy verification.Policy, limit int, lease time.Duration, now time.Time) []verification.Request {
	if policy != p.work.policy {
		p.work.policy = policy
		for _, rec := range p.records {
			p.work.place(rec, now)
		}
	}
	p.work.wake(now)
	claimed := make([]verification.Request, 0, max(0, min(limit, len(p.work.due))))
	for len(claimed) < limit {
		rec := p.work.due.first(now)
		if rec == nil {
			break
		}
		rec.request.Epoch++
		rec.leasedUntil = now.Add(lease)
		p.stamp(rec)
		rec.inWork.move(&p.work.waiting, rec.leasedUntil)
		claimed = append(claimed, clone(rec.request))
	}
	return claimed
}
