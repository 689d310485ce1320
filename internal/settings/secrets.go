package settings

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Secrets is the state of every secret reference of a project, including former values. It is immutable. Its zero value is
// the state before the first read.
type Secrets struct {
	states map[string]secretState // by field
}

// secretState is the state of one reference. It is comparable: two are equal if nothing changed between them.
type secretState struct {
	ref    verifyv1.SecretKeyRef
	secret Secret // usable while reason is empty, and before until
	reason Reason
	until  time.Time // the end of a former value that is used although reason is set; zero for none
	// newline reports whether a newline at the end was ignored.
	newline bool
	goneAt  time.Time // since when reason is ReasonMissing; zero if it is not
}

// reading is the result of reading a secret's file: a value, or the reason why there is none.
type reading struct {
	value  []byte
	reason Reason
	// newline reports whether a newline at the end was ignored.
	newline bool
	// unknown reports whether the read failed because of this process or its disk, so the state of the file is unknown.
	unknown bool
}

// applyReadings returns the state after the readings of now. It is a pure function; doc.go lists its rules.
func (s Secrets) applyReadings(all []use, readings map[verifyv1.SecretKeyRef]reading, now time.Time) Secrets {
	next := make(map[string]secretState, len(all))
	for _, u := range all {
		next[u.field] = s.states[u.field].applyReading(u, readings[u.ref], now)
	}
	refuseRepeated(all, next)
	s.refuseKnown(all, next, now)
	refuseMixed(next)
	return Secrets{next}
}

func (h secretState) applyReading(u use, r reading, now time.Time) secretState {
	if h.ref != u.ref {
		h = secretState{}
	}
	if r.unknown && h.ref == u.ref {
		return h
	}
	kept, reason := r.value, r.reason
	if reason == "" {
		kept, reason = u.kind.acceptValue(r.value)
	}
	if reason != "" {
		return h.rejectValue(u, reason, now)
	}
	if u.kind.isMessenger() && Simulated(h.secret.Current()) != Simulated(kept) {
		return secretState{ref: u.ref, secret: NewSecret(kept)}
	}
	return secretState{ref: u.ref, secret: h.secret.replacedBy(kept, now), newline: r.newline && u.kind == kindWebhook}
}

// rejectValue returns the state of a reference whose value cannot be used. After a mistake, which is no revocation, the value
// before it stays in use for one more Overlap, so that neither events nor messages are held up at once.
func (h secretState) rejectValue(u use, reason Reason, now time.Time) secretState {
	until := h.until
	if until.IsZero() {
		until = now.Add(Overlap)
	}
	if !u.kind.isMistake(reason) || !h.secret.Usable() || hasLapsed(until, now) {
		gone := secretState{ref: u.ref, reason: reason}
		if reason == ReasonMissing {
			gone.goneAt = h.goneAt
			if gone.goneAt.IsZero() {
				gone.goneAt = now
			}
		}
		return gone
	}
	return secretState{ref: u.ref, secret: h.secret.replacedBy(h.secret.Current(), now), reason: reason, until: until}
}

// refuseRepeated keeps an API key only for the first name that has it: with two names, limits and logs would be arbitrary.
func refuseRepeated(all []use, next map[string]secretState) {
	var seen [][]byte
	for _, u := range all {
		h := next[u.field]
		if u.kind != kindAPIKey || h.reason != "" {
			continue
		}
		value := h.secret.Current()
		if slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(value, other) }) {
			next[u.field] = secretState{ref: u.ref, reason: ReasonRepeated}
			continue
		}
		seen = append(seen, value)
	}
}

// refuseMixed rejects credentials that belong together if one is simulated and one is real. Of WhatsApp one would be sent to the wrong
// service; a real Gateway would send digits that follow from a bot's token that can be guessed. The bot itself goes on.
func refuseMixed(next map[string]secretState) {
	refuse := func(fields ...string) {
		for _, field := range fields {
			next[field] = secretState{ref: next[field].ref, reason: ReasonMixedSimulator}
		}
	}
	if isMixed(next[fieldAccessToken].secret, next[fieldAppSecret].secret) {
		refuse(fieldAccessToken, fieldAppSecret)
	}
	if isMixed(next[fieldBotToken].secret, next[fieldGatewayToken].secret) {
		refuse(fieldGatewayToken)
	}
}

func isMixed(a, b Secret) bool {
	return a.Usable() && b.Usable() && Simulated(a.Current()) != Simulated(b.Current())
}

// secretAt returns the secret of a field; unusable if the project does not have the field.
func (s Secrets) secretAt(field string) Secret { return s.states[field].secret }

// listProblems returns the secrets that cannot be used, sorted by field.
func (s Secrets) listProblems() []Problem {
	var problems []Problem
	for field, h := range s.states {
		if h.reason != "" {
			problems = append(problems, Problem{Field: field, Secret: h.ref.Name, Key: h.ref.Key, Reason: h.reason})
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Field, b.Field) })
	return problems
}

// findLapsed returns the problems whose former value was used in before and has expired since.
func (s Secrets) findLapsed(before Secrets) []Problem {
	return slices.DeleteFunc(s.listProblems(), func(p Problem) bool {
		old, now := before.states[p.Field], s.states[p.Field]
		return old.reason == "" || !old.secret.Usable() || now.secret.Usable()
	})
}

// equal reports whether nothing changed, not even the end of a former value.
func (s Secrets) equal(other Secrets) bool { return maps.Equal(s.states, other.states) }

// findReplaced returns the names of secrets whose value differs from before, as SECRET/KEY, sorted.
func (s Secrets) findReplaced(before Secrets) []string {
	var names []string
	for field, h := range s.states {
		old := before.states[field]
		if old.ref == h.ref && old.secret.Usable() && h.secret.Usable() && !bytes.Equal(old.secret.Current(), h.secret.Current()) {
			names = append(names, h.ref.Name+"/"+h.ref.Key)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
