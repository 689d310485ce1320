package judge_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/webhook"
	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }

// stampOf returns the Webhook-Timestamp of an event that is sent at a time.
func stampOf(seconds float64) string { return strconv.FormatInt(at(seconds).Unix(), 10) }

const (
	claimed  = "+525512345678"
	reported = "+5215512345678" // of the same user
)

// facts returns the facts that every place has about a request.
func facts(phase string) ledger.Facts {
	f := ledger.Facts{Phone: claimed, Method: "WHATSAPP"}
	if phase == "VERIFIED" {
		f.Actual, f.Verified = reported, at(2.8)
	}
	return f
}

// goodEvidence returns the evidence of a run that upheld everything: one request was proven, one expired, one event was
// refused for good by the receiver, one request was deleted, and the database was down for a while.
func goodEvidence() *judge.Evidence {
	ack := func(id string, fate ledger.Fate) ledger.Ack {
		return ledger.Ack{
			Asked: at(0), At: at(1), Key: "key of " + id, ID: id, Phone: claimed, Number: reported, Method: "WHATSAPP", Fate: fate,
			Expires: at(60),
		}
	}
	status := func(id, phase string, seconds float64) ledger.Status {
		return ledger.Status{Facts: facts(phase), Asked: at(seconds - 0.5), At: at(seconds), ID: id, Status: phase, Expires: at(60)}
	}
	change := func(op, id, phase string, seconds float64, more ...func(*ledger.Change)) ledger.Change {
		c := ledger.Change{Facts: facts(phase), At: at(seconds), Committed: at(seconds), Op: op, ID: id, Phase: phase, Expires: at(60)}
		for _, m := range more {
			m(&c)
		}
		return c
	}
	attempted := func(code int) func(*ledger.Change) {
		return func(c *ledger.Change) {
			c.Attempts, c.Tried, c.Code, c.Delivered, c.Exhausted = 1, at(3.8), code, code == 204, code == 410
		}
	}
	event := func(id string, seconds float64, answer ledger.Answer) ledger.Delivery {
		return ledger.Delivery{
			Facts: facts("VERIFIED"), At: at(seconds), Process: "first-1", Webhook: "evt of " + id, Request: id, Valid: true,
			Body: "body of " + id, Answer: answer,
			Stamp: stampOf(seconds), Answered: at(seconds),
		}
	}
	proof := func(id string, seconds float64) ledger.Inbound {
		return ledger.Inbound{
			Asked: at(seconds - 0.5), At: at(seconds), Answer: 200, Signed: true,
			Messages: []ledger.Message{{ID: "wamid of " + id, Request: id, Proves: true, From: reported, Method: "WHATSAPP"}},
		}
	}
	e := &judge.Evidence{
		Acks: []ledger.Ack{
			ack("proven", ledger.Proven), ack("lapsed", ledger.Unproven), ack("unwanted", ledger.Proven), ack("deleted", ledger.Proven),
		},
		Statuses: []ledger.Status{
			status("proven", "PENDING", 1.5), status("proven", "VERIFIED", 5),
			status("lapsed", "PENDING", 51), status("lapsed", "EXPIRED", 71),
			{Asked: at(99), At: at(100), ID: "deleted", Status: "404"},
		},
		Inbound: []ledger.Inbound{
			proof("proven", 3), proof("unwanted", 3), proof("deleted", 3),
			{Asked: at(3), At: at(4), Answer: 401, Messages: []ledger.Message{{ID: "wamid", Request: "lapsed"}}},
		},
		Events: []ledger.Delivery{
			event("proven", 3.5, ledger.Takes), event("unwanted", 3.5, ledger.Gone), event("deleted", 3.5, ledger.Takes),
		},
		Changes: []ledger.Change{
			change(ledger.Created, "proven", "PENDING", 1), change(ledger.Updated, "proven", "VERIFIED", 3),
			change(ledger.Updated, "proven", "VERIFIED", 4, attempted(204)),
			change(ledger.Created, "lapsed", "PENDING", 1), change(ledger.Updated, "lapsed", "EXPIRED", 65),
			change(ledger.Created, "unwanted", "PENDING", 1), change(ledger.Updated, "unwanted", "VERIFIED", 3),
			change(ledger.Updated, "unwanted", "VERIFIED", 4, attempted(410)),
			change(ledger.Created, "deleted", "PENDING", 1), change(ledger.Updated, "deleted", "VERIFIED", 3),
			change(ledger.Updated, "deleted", "VERIFIED", 4, attempted(204)),
			change(ledger.Deleted, "deleted", "VERIFIED", 90, attempted(204)),
		},
		Final: []ledger.Change{
			change(ledger.Updated, "proven", "VERIFIED", 0, attempted(204)), change(ledger.Updated, "lapsed", "EXPIRED", 0),
			change(ledger.Updated, "unwanted", "VERIFIED", 0, attempted(410)),
		},
		Faults: []ledger.Fault{{
			Kind: "crash-store", From: at(20), Down: at(20), Up: at(29), Until: at(30), Victims: []string{ledger.Everyone},
		}},
		Times: judge.Times{Attempt: 2 * time.Second, Record: 2 * time.Second, Fresh: time.Second},
		KeyTries: []ledger.KeyTry{
			{At: at(7), Answer: 401, Replica: "killed"}, {At: at(26), Replica: "killed"},
			{At: at(27), Answer: 503, Error: "keys_unavailable", Replica: "one", Last: true},
			{At: at(27), Replica: "two", Last: true}, {At: at(28), Answer: 401, Replica: "two", Last: true},
		},
		End: at(100),
	}
	confirmed := ack("confirmed", ledger.Proven)
	confirmed.Session = true
	e.Acks = append(e.Acks, confirmed)
	e.Inbound = append(e.Inbound, proof("confirmed", 2))
	e.Confirms = []ledger.Confirm{
		{Asked: at(2.1), At: at(2.2), ID: "confirmed", Answer: 422, Error: "wrong_code"},
		{Asked: at(2.7), At: at(3), ID: "confirmed", Right: true, Answer: 200},
		{Asked: at(3.1), At: at(3.2), ID: "confirmed", Right: true, Answer: 409, Error: "already_confirmed"},
	}
	known := status("confirmed", "VERIFIED", 5)
	known.Assurance, known.Expires = "session", at(180)
	e.Statuses = append(e.Statuses, known)
	e.Changes = append(e.Changes,
		change(ledger.Created, "confirmed", "PENDING", 1),
		change(ledger.Updated, "confirmed", "PENDING", 1.9, func(c *ledger.Change) { c.Actual = reported }),
		change(ledger.Updated, "confirmed", "VERIFIED", 3), change(ledger.Updated, "confirmed", "VERIFIED", 4, attempted(204)))
	e.Final = append(e.Final, change(ledger.Updated, "confirmed", "VERIFIED", 0, attempted(204)))
	sent := event("confirmed", 3.5, ledger.Takes)
	sent.Assurance = "session"
	e.Events = append(e.Events, sent)
	return e
}

// changeLastState changes the last state of a request at both the witness and the store.
func changeLastState(e *judge.Evidence, id string, change func(*ledger.Change)) {
	for i := range slices.Backward(e.Changes) {
		if e.Changes[i].ID == id {
			change(&e.Changes[i])
			break
		}
	}
	for i := range e.Final {
		if e.Final[i].ID == id {
			change(&e.Final[i])
		}
	}
}

// repeatEvent adds a changed delivery of the first event.
func repeatEvent(e *judge.Evidence, change func(*ledger.Delivery)) {
	d := e.Events[0]
	change(&d)
	e.Events = append(e.Events, d)
}

func TestJudge_goodEvidence(t *testing.T) {
	g := NewWithT(t)
	for _, v := range judge.Judge(goodEvidence()) {
		g.Expect(v.OK()).To(BeTrue(), "%s: %v", v.Name, v.Violations)
		g.Expect(v.Summary()).To(BeEmpty())
	}
}

func TestJudge_nothing(t *testing.T) {
	g := NewWithT(t)
	for _, v := range judge.Judge(&judge.Evidence{}) {
		g.Expect(v.OK()).To(BeFalse(), v.Name)
		g.Expect(v.Skipped()).To(Equal(v.Name == "O"), v.Name)
		if !v.Skipped() {
			g.Expect(v.Summary()).To(HavePrefix(v.Name + ": "))
		}
	}
}

// forgeries are evidence of violations, by the invariant that must find them.
var forgeries = map[string]map[string]func(*judge.Evidence){
	"I1": {
		"acknowledged and uncommitted": func(e *judge.Evidence) { e.Changes[0].Committed = at(1.1) },
		"lost":                         func(e *judge.Evidence) { e.Acks = append(e.Acks, ledger.Ack{Key: "k", ID: "lost"}) },
		"pending for ever": func(e *judge.Evidence) {
			changeLastState(e, "lapsed", func(c *ledger.Change) { c.Phase = "PENDING" })
		},
		"deleted while pending": func(e *judge.Evidence) {
			e.Changes = append(e.Changes[:3:3], append([]ledger.Change{
				{At: at(2), Op: ledger.Deleted, ID: "lapsed", Phase: "PENDING", Expires: at(60)},
			}, e.Changes[5:]...)...)
		},
		"deleted with its event": func(e *judge.Evidence) {
			changeLastState(e, "deleted", func(c *ledger.Change) { c.Delivered = false })
		},
	},
	"I1k": {
		"acknowledged differently": func(e *judge.Evidence) {
			e.Acks = append(e.Acks, e.Acks[0])
			e.Acks[len(e.Acks)-1].Expires = at(61)
		},
		"two requests for a key": func(e *judge.Evidence) { e.Acks[1].Key = e.Acks[0].Key },
		"two keys for a request": func(e *judge.Evidence) {
			again := e.Acks[0]
			again.Key = "another"
			e.Acks = append(e.Acks, again)
		},
	},
	"I1p": {
		"a lost proof": func(e *judge.Evidence) { changeLastState(e, "proven", func(c *ledger.Change) { c.Phase = "EXPIRED" }) },
		"verified by no user": func(e *judge.Evidence) {
			changeLastState(e, "lapsed", func(c *ledger.Change) { c.Phase = "VERIFIED" })
		},
		"a forged webhook taken":        func(e *judge.Evidence) { e.Inbound[3].Answer = 200 },
		"acknowledged and uncommitted":  func(e *judge.Evidence) { e.Changes[1].Committed = at(3.1) },
		"a neighbour's number stored":   func(e *judge.Evidence) { e.Changes[1].Actual = "+5215512345679" },
		"a neighbour's number sent":     func(e *judge.Evidence) { e.Events[0].Actual = "+5215512345679" },
		"a neighbour's number answered": func(e *judge.Evidence) { e.Statuses[1].Actual = "+5215512345679" },
		"another claim stored":          func(e *judge.Evidence) { e.Changes[3].Phone = reported },
		"another claim answered":        func(e *judge.Evidence) { e.Statuses[2].Phone = reported },
		"another messenger":             func(e *judge.Evidence) { e.Changes[2].Method = "TELEGRAM" },
		"no messenger sent":             func(e *judge.Evidence) { e.Events[1].Method = "" },
		"no messenger stored":           func(e *judge.Evidence) { e.Changes[0].Method = "" },
		"another messenger sent":        func(e *judge.Evidence) { e.Events[1].Method = "TELEGRAM" },
		"a number before its proof":     func(e *judge.Evidence) { e.Changes[0].Actual = reported },
		"less sure than it was":         func(e *judge.Evidence) { e.Events[0].Assurance = "shared_contact" },
		"verified before it was sent": func(e *judge.Evidence) {
			for i := range e.Changes[:3] {
				e.Changes[i].Verified = at(2.4)
			}
		},
		"another time sent":                func(e *judge.Evidence) { e.Events[0].Verified = at(2.9) },
		"another time answered":            func(e *judge.Evidence) { e.Statuses[1].Verified = at(2.9) },
		"another expiry stored":            func(e *judge.Evidence) { e.Changes[0].Expires = at(61) },
		"another expiry answered":          func(e *judge.Evidence) { e.Statuses[0].Expires = at(61) },
		"verified by the message":          func(e *judge.Evidence) { e.Confirms = e.Confirms[:1] },
		"confirmed before it was asked":    func(e *judge.Evidence) { e.Confirms[1].Asked = at(2.9) },
		"not confirmed, it says":           func(e *judge.Evidence) { e.Statuses[len(e.Statuses)-1].Assurance = "" },
		"confirmed, though no client must": func(e *judge.Evidence) { e.Events[0].Assurance = "session" },
		"a neighbour's number proven":      func(e *judge.Evidence) { e.Changes[len(e.Changes)-3].Actual = "+5215512345679" },
		"of no client":                     func(e *judge.Evidence) { e.Acks = e.Acks[1:] },
	},
	"I2": {
		"verified, then expired": func(e *judge.Evidence) {
			e.Changes = append(e.Changes, ledger.Change{At: at(80), Op: ledger.Updated, ID: "proven", Phase: "EXPIRED", Expires: at(60)})
		},
		"expired, then verified": func(e *judge.Evidence) {
			e.Changes = append(e.Changes, ledger.Change{At: at(80), Op: ledger.Updated, ID: "lapsed", Phase: "VERIFIED", Expires: at(60)})
		},
		"pending again": func(e *judge.Evidence) {
			e.Changes = append(e.Changes, ledger.Change{At: at(80), Op: ledger.Updated, ID: "lapsed", Phase: "PENDING", Expires: at(60)})
		},
		"risen": func(e *judge.Evidence) {
			e.Changes = append(e.Changes, ledger.Change{At: at(95), Op: ledger.Updated, ID: "deleted", Phase: "VERIFIED"})
		},
		"expired too early":   func(e *judge.Evidence) { e.Changes[4].At = at(59) },
		"verified too late":   func(e *judge.Evidence) { e.Changes[1].At = at(80) },
		"born verified":       func(e *judge.Evidence) { e.Changes[0].Phase = "VERIFIED" },
		"from the first seen": func(e *judge.Evidence) { e.Changes[0].Op = ledger.Updated },
	},
	"I3": {
		"delivered to no one": func(e *judge.Evidence) { e.Events[0].Answer = ledger.Fails },
		"taken with a wrong signature only": func(e *judge.Evidence) {
			e.Events[0].Valid = false
		},
		"never sent": func(e *judge.Evidence) {
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered = 0, false })
		},
		"stuck": func(e *judge.Evidence) {
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered, c.Next = 2, false, at(50) })
		},
		"given up early": func(e *judge.Evidence) {
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts, c.Delivered, c.Exhausted = webhook.MaxAttempts-1, false, true })
		},
		"given up for an answer that was not given": func(e *judge.Evidence) { e.Events[1].Answer = ledger.Fails },
	},
	"I4": {
		"attempts that were not made": func(e *judge.Evidence) {
			changeLastState(e, "proven", func(c *ledger.Change) { c.Attempts = 2 })
		},
		"an answer that was not given": func(e *judge.Evidence) {
			changeLastState(e, "proven", func(c *ledger.Change) { c.Code = 200 })
		},
	},
	"I5": {
		"another body":      func(e *judge.Evidence) { repeatEvent(e, func(d *ledger.Delivery) { d.Body = "another" }) },
		"another id":        func(e *judge.Evidence) { repeatEvent(e, func(d *ledger.Delivery) { d.Webhook = "another" }) },
		"a wrong signature": func(e *judge.Evidence) { repeatEvent(e, func(d *ledger.Delivery) { d.Valid = false }) },
		"a shared id":       func(e *judge.Evidence) { e.Events[1].Webhook = e.Events[0].Webhook },
		"once too often":    func(e *judge.Evidence) { repeatEvent(e, func(*ledger.Delivery) {}) },
	},
	"I6": {
		"of an expired one": func(e *judge.Evidence) {
			e.Events = append(e.Events, ledger.Delivery{Request: "lapsed", Webhook: "evt of lapsed", Valid: true})
		},
		"before it was committed": func(e *judge.Evidence) { e.Changes[1].Committed = at(3.6) },
		"of an unknown request": func(e *judge.Evidence) {
			e.Events = append(e.Events, ledger.Delivery{Request: "unknown", Webhook: "evt of unknown", Valid: true})
		},
		"after it was refused for good": func(e *judge.Evidence) {
			late := e.Events[1]
			late.At = at(50)
			e.Events = append(e.Events, late)
		},
		"after it was deleted": func(e *judge.Evidence) {
			late := e.Events[2]
			late.At = at(95)
			e.Events = append(e.Events, late)
		},
	},
	"I10": {
		"a wrong code taken": func(e *judge.Evidence) { e.Confirms[0].Answer = 200 },
		"confirmed twice":    func(e *judge.Evidence) { e.Confirms[2].Answer = 200 },
		"a lost proof":       func(e *judge.Evidence) { e.Confirms[1].Answer, e.Confirms[1].Error = 409, "request_expired" },
		"kills that hit none": func(e *judge.Evidence) {
			for range 10 {
				e.Faults = append(e.Faults, ledger.Fault{Kind: "kill", From: at(90), Until: at(91), Victims: []string{"first-1"}})
			}
		},
		"no code for a user": func(e *judge.Evidence) { e.Confirms[1].Answer, e.Confirms[1].Error = 400, "invalid_code" },
	},
	"I8": {
		"backwards": func(e *judge.Evidence) {
			e.Statuses = append(e.Statuses, ledger.Status{Asked: at(72), At: at(73), ID: "lapsed", Status: "PENDING"})
		},
		"two final states": func(e *judge.Evidence) {
			e.Statuses = append(e.Statuses, ledger.Status{Asked: at(69), At: at(70.5), ID: "lapsed", Status: "VERIFIED"})
		},
		"gone": func(e *judge.Evidence) {
			e.Statuses = append(e.Statuses, ledger.Status{Asked: at(1), At: at(2), ID: "proven", Status: "404"})
		},
		"before it was committed": func(e *judge.Evidence) { e.Changes[1].Committed = at(5.1) },
		"behind its proof": func(e *judge.Evidence) {
			e.Statuses = append(e.Statuses, ledger.Status{Asked: at(3.1), At: at(3.2), ID: "proven", Status: "PENDING"})
		},
	},
	"W": {
		"unseen":        func(e *judge.Evidence) { e.Final = append(e.Final, ledger.Change{ID: "unseen"}) },
		"vanished":      func(e *judge.Evidence) { e.Final = e.Final[1:] },
		"another state": func(e *judge.Evidence) { e.Final[0].Attempts = 3 },
		"stored and deleted": func(e *judge.Evidence) {
			e.Final = append(e.Final, ledger.Change{ID: "deleted", Phase: "VERIFIED", Attempts: 1, Delivered: true})
		},
	},
	"A": {
		"let in":                     func(e *judge.Evidence) { e.KeyTries[0].Answer = 200 },
		"let as far as a store":      func(e *judge.Evidence) { e.KeyTries[0].Answer, e.KeyTries[0].Error = 503, "store_unavailable" },
		"one replica never answered": func(e *judge.Evidence) { e.KeyTries[4].Answer = 0 },
	},
	"O": {"acknowledged": func(e *judge.Evidence) { e.Acks[0].Asked, e.Acks[0].At = at(25), at(26) }},
}

func TestJudge_forgeries(t *testing.T) {
	names := slices.Sorted(maps.Keys(forgeries))
	for _, v := range judge.Judge(goodEvidence()) {
		NewWithT(t).Expect(names).To(ContainElement(v.Name), "every invariant has a forgery")
	}
	for _, name := range names {
		for forgery, forge := range forgeries[name] {
			t.Run(name+" "+forgery, func(t *testing.T) {
				e := goodEvidence()
				forge(e)
				for _, v := range judge.Judge(e) {
					if v.Name == name {
						g := NewWithT(t)
						g.Expect(v.OK()).To(BeFalse())
						g.Expect(v.Summary()).To(And(HavePrefix(v.Name+": "), Not(ContainSubstring("\n"))))
						g.Expect(v.Violations).NotTo(BeEmpty())
					}
				}
			})
		}
	}
}

// A kill between message, acknowledgement and confirmation is counted.
func TestJudge_killsOnTheWay(t *testing.T) {
	for seconds, want := range map[float64]string{
		1.8: "acknowledgement of 1, and between that and the answer to the code of 0",
		2.9: "acknowledgement of 0, and between that and the answer to the code of 1",
		9:   "acknowledgement of 0, and between that and the answer to the code of 0",
	} {
		e := goodEvidence()
		e.Faults = append(e.Faults, ledger.Fault{Kind: "kill", From: at(seconds), Until: at(seconds + 1), Victims: []string{"first-1"}})
		for _, v := range judge.Judge(e) {
			if v.Name == "I10" {
				NewWithT(t).Expect(v.Note).To(ContainSubstring(want))
			}
		}
	}
}

// Who sends the text after the end, because init was answered late, gets no session code, although the message is acknowledged.
func TestJudge_provenTooLate(t *testing.T) {
	g := NewWithT(t)
	e := goodEvidence()
	e.Acks = append(e.Acks, ledger.Ack{
		Asked: at(0), At: at(61), Key: "key of late", ID: "late", Phone: claimed, Number: reported, Method: "WHATSAPP", Fate: ledger.Proven,
		Expires: at(60), Session: true,
	})
	e.Inbound = append(e.Inbound, ledger.Inbound{
		Asked: at(62), At: at(63), Answer: 200, Signed: true,
		Messages: []ledger.Message{{ID: "wamid.late", Request: "late", Proves: true, From: reported, Method: "WHATSAPP"}},
	})
	e.Confirms = append(e.Confirms, ledger.Confirm{Asked: at(64), At: at(65), ID: "late", Right: true, Answer: 400, Error: "invalid_code"})
	for _, v := range judge.Judge(e) {
		if v.Name == "I10" {
			g.Expect(v.Violations).To(BeEmpty())
		}
	}
}

// A former primary answers what it had, while it runs beside the new one.
func TestJudge_formerPrimary(t *testing.T) {
	for until, violations := range map[float64]int{80: 0, 71: 1} {
		e := goodEvidence()
		e.Faults = append(e.Faults, ledger.Fault{Kind: "isolate", From: at(68), Up: at(69), Until: at(until), Victims: []string{ledger.Everyone}})
		e.Statuses = append(e.Statuses, ledger.Status{Asked: at(72), At: at(73), ID: "lapsed", Status: "PENDING"})
		for _, v := range judge.Judge(e) {
			if v.Name == "I8" {
				NewWithT(t).Expect(v.Violations).To(HaveLen(violations))
			}
		}
	}
}

// waitingEvidence returns good evidence in which the first event has failed twice, at 4 and 10 s, and is due again at 400 s.
func waitingEvidence() *judge.Evidence {
	e := goodEvidence()
	e.Events[0].Answer = ledger.Fails
	changeLastState(e, "proven", func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 500, false, at(9) })
	second := e.Changes[2]
	second.At, second.Committed, second.Attempts, second.Tried, second.Next = at(10), at(10), 2, at(9.8), at(400)
	e.Changes = append(e.Changes, second)
	e.Final[0] = second
	repeatEvent(e, func(d *ledger.Delivery) { d.At = at(9.5) })
	return e
}

// addExtra adds an extra attempt of the first event that ended at a time.
func addExtra(e *judge.Evidence, seconds float64, change func(*ledger.Change)) {
	extra := e.Final[0]
	extra.At, extra.Committed, extra.Tried = at(seconds), at(seconds), at(seconds-0.2)
	change(&extra)
	e.Changes = append(e.Changes, extra)
	e.Final[0] = extra
	repeatEvent(e, func(d *ledger.Delivery) { d.At = at(seconds - 0.5) })
}

// Only an event that failed twice may still wait. After a repair it has one attempt beside its schedule in an hour.
func TestJudge_waiting(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*judge.Evidence)
		fails  string
	}{
		"it waits":         {func(*judge.Evidence) {}, ""},
		"an extra attempt": {func(e *judge.Evidence) { addExtra(e, 50, func(*ledger.Change) {}) }, ""},
		"an extra one that delivers": {func(e *judge.Evidence) {
			addExtra(e, 50, func(c *ledger.Change) { c.Code, c.Delivered, c.Next = 204, true, time.Time{} })
			e.Events[len(e.Events)-1].Answer = ledger.Takes
		}, ""},
		"two of them": {func(e *judge.Evidence) {
			addExtra(e, 50, func(*ledger.Change) {})
			addExtra(e, 70, func(*ledger.Change) {})
		}, "I4"},
		"one that is counted": {func(e *judge.Evidence) {
			addExtra(e, 50, func(*ledger.Change) {})
			addExtra(e, 70, func(c *ledger.Change) { c.Attempts = 4 })
		}, "I4 I5"},
		"one of the schedule that is not counted": {func(e *judge.Evidence) { addExtra(e, 401, func(*ledger.Change) {}) }, "I4"},
		"one that is not recorded": {func(e *judge.Evidence) {
			repeatEvent(e, func(d *ledger.Delivery) { d.At = at(49.5) })
		}, "I5"},
		"one whose sender was killed": {func(e *judge.Evidence) {
			repeatEvent(e, func(d *ledger.Delivery) { d.At, d.Answered, d.Stamp = at(49.5), at(49.5), stampOf(49.5) })
			e.Faults = append(e.Faults, ledger.Fault{Kind: "kill", From: at(49.6), Until: at(49.7), Victims: []string{"first-1"}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := waitingEvidence()
			tc.change(e)
			for _, v := range judge.Judge(e) {
				NewWithT(t).Expect(v.OK()).To(Equal(!slices.Contains(strings.Fields(tc.fails), v.Name)), "%s: %v", v.Name, v.Violations)
			}
		})
	}
}
