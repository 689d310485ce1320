package memory

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// work orders the requests of a project by the result of Next. A record is in exactly one of its timelines.
type work struct {
	// policy is the policy of the current order.
	policy verification.Policy
	// waiting holds requests until Next must be called again, or until their lease ends.
	waiting timeline
	// due holds requests that need a step, by the time since when it is due.
	due timeline
}

// placeRecord moves a request to its timeline at now.
func (w *work) placeRecord(rec *record, now time.Time) {
	if rec.leasedUntil.After(now) {
		rec.inWork.move(&w.waiting, rec.leasedUntil)
		return
	}
	next := verification.Next(&rec.request, now, w.policy)
	if next.Step == verification.StepWait {
		rec.inWork.move(&w.waiting, next.At)
		return
	}
	// At the zero time, Next returns the time since when the step is due. So the longest overdue goes first, regardless of its
	// leases.
	rec.inWork.move(&w.due, verification.Next(&rec.request, time.Time{}, w.policy).At)
}

// moveDue moves the requests whose wait is over. Each moves once per wait.
func (w *work) moveDue(now time.Time) {
	for rec := w.waiting.firstDue(now); rec != nil; rec = w.waiting.firstDue(now) {
		w.placeRecord(rec, now)
	}
}

// claimDue leases due requests to the caller. It does not notify subscribers, because they cannot see an epoch.
func (p *project) claimDue(policy verification.Policy, limit int, lease time.Duration, now time.Time) []verification.Request {
	if policy != p.work.policy {
		p.work.policy = policy
		for _, rec := range p.records {
			p.work.placeRecord(rec, now)
		}
	}
	p.work.moveDue(now)
	claimed := make([]verification.Request, 0, max(0, min(limit, len(p.work.due))))
	for len(claimed) < limit {
		rec := p.work.due.firstDue(now)
		if rec == nil {
			break
		}
		rec.request.Epoch++
		rec.leasedUntil = now.Add(lease)
		p.assignVersion(rec)
		rec.inWork.move(&p.work.waiting, rec.leasedUntil)
		claimed = append(claimed, rec.request.Clone())
	}
	return claimed
}
