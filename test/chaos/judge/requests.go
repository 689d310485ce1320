package judge

import (
	"net/http"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

var (
	pending  = string(verification.Pending)
	verified = string(verification.Verified)
	expired  = string(verification.Expired)
)

// durable: whoever was told that a verification began finds it stored, and at the end it is VERIFIED or EXPIRED. One that
// the clean-up deleted had reached that before, with nothing left to send.
func durable(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1", Holds: "every acknowledged request is stored and ends"}
	for _, a := range e.Acks {
		v.Looked++
		last, ok := e.last(a.ID)
		switch {
		case !ok:
			v.violatedf("%s was acknowledged at %s and never stored", a.ID, stamp(a.At))
		case last.Op == ledger.Deleted && last.Phase == pending && last.At.Before(last.Expires):
			v.violatedf("%s was deleted at %s while it was pending", a.ID, stamp(last.At))
		case last.Op == ledger.Deleted && last.Phase == verified && !last.Delivered && !last.Exhausted:
			v.violatedf("%s was deleted at %s with its event unsent", a.ID, stamp(last.At))
		case last.Op != ledger.Deleted && last.Phase == pending:
			v.violatedf("%s is pending still; it expires at %s", a.ID, stamp(last.Expires))
		}
	}
	return v
}

// oneKey: an Idempotency-Key leads to one request, however often it is presented, and a request has one key.
func oneKey(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1k", Holds: "an Idempotency-Key has one request"}
	ids, keys := map[string]string{}, map[string]string{}
	for _, a := range e.Acks {
		v.Looked++
		if id, known := ids[a.Key]; known && id != a.ID {
			v.violatedf("key %s was answered with %s and %s", a.Key, id, a.ID)
		}
		if key, known := keys[a.ID]; known && key != a.Key {
			v.violatedf("%s was the answer to keys %s and %s", a.ID, key, a.Key)
		}
		ids[a.Key], keys[a.ID] = a.ID, a.Key
	}
	return v
}

// proven: a proof that a platform was told to be taken in time verifies its request, and nothing else verifies any: no
// message of somebody else, none with a forged signature, and no silence.
func proven(e *Evidence) *Verdict {
	v := &Verdict{Name: "I1p", Holds: "what was proven and acknowledged in time is VERIFIED, and nothing else"}
	expires := map[string]time.Time{}
	for _, a := range e.Acks {
		expires[a.ID] = a.Expires
		if last, ok := e.last(a.ID); ok && a.Fate != ledger.Proven && last.Phase == verified {
			v.violatedf("%s is VERIFIED and was %s", a.ID, a.Fate)
		}
	}
	for _, in := range e.Inbound {
		v.Looked++
		if !in.Signed && in.Answer >= 200 && in.Answer <= 299 {
			v.violatedf("a webhook with a wrong signature was acknowledged at %s", stamp(in.At))
		}
		if in.Answer != http.StatusOK || !in.Signed {
			continue
		}
		for _, m := range in.Messages {
			if !m.Proves || !in.At.Before(expires[m.Request]) {
				continue
			}
			if last, ok := e.last(m.Request); !ok || last.Phase != verified {
				v.violatedf("message %s was acknowledged at %s and its request %s is %q", m.ID, stamp(in.At), m.Request, last.Phase)
			}
		}
	}
	return v
}

// final: VERIFIED and EXPIRED are each reached once, and nothing comes after them.
func final(e *Evidence) *Verdict {
	v := &Verdict{Name: "I2", Holds: "one final state for each request, reached once"}
	for id, history := range e.histories {
		v.Looked++
		if first := history[0]; first.Op != ledger.Created || first.Phase != pending {
			v.violatedf("%s begins with %s, %s", id, first.Op, first.Phase)
		}
		for i := 1; i < len(history); i++ {
			before, after := history[i-1], history[i]
			switch {
			case before.Op == ledger.Deleted:
				v.violatedf("%s comes back at %s after it was deleted", id, stamp(after.At))
			case before.Phase != pending && after.Phase != before.Phase:
				v.violatedf("%s was %s and became %s at %s", id, before.Phase, after.Phase, stamp(after.At))
			case after.Op != ledger.Deleted && after.Phase == expired && before.Phase == pending && after.At.Before(after.Expires):
				v.violatedf("%s expired at %s, before its time %s", id, stamp(after.At), stamp(after.Expires))
			case after.Phase == verified && before.Phase == pending && after.At.After(after.Expires.Add(commitLag)):
				v.violatedf("%s was verified at %s, after its time %s", id, stamp(after.At), stamp(after.Expires))
			}
		}
	}
	return v
}

// commitLag is what may pass on a busy machine between the decision, made in time, and the commit that the witness saw.
const commitLag = 10 * time.Second

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000000") }
