package settings

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
)

// Secrets is what every place of a project that refers to a secret has got, with the values it had before. Its zero
// value is the state before anything was read. It is immutable.
type Secrets struct {
	held map[string]held // by field
}

// held is the state of one place. It is comparable: two are equal if nothing happened between them.
type held struct {
	ref    verifyv1.SecretKeyRef
	secret Secret // usable while reason is empty, and before until
	reason Reason
	until  time.Time // the end of a value that is used although reason is set; zero for none
}

// reading is what a look at a secret's file gave: a value, or the reason why there is none.
type reading struct {
	value  []byte
	reason Reason
	// unknown says that the look failed for a reason of ours, so that it tells nothing about the file.
	unknown bool
}

// next returns the state after all was read at now. It is pure; doc.go has its rules as a table.
func (s Secrets) next(all []use, readings map[verifyv1.SecretKeyRef]reading, now time.Time) Secrets {
	next := make(map[string]held, len(all))
	for _, u := range all {
		next[u.field] = s.held[u.field].next(u, readings[u.ref], now)
	}
	refuseRepeated(all, next)
	refuseMixed(next)
	return Secrets{next}
}

func (h held) next(u use, r reading, now time.Time) held {
	if h.ref != u.ref {
		h = held{}
	}
	if r.unknown && h.ref == u.ref {
		return h
	}
	kept, reason := r.value, r.reason
	if reason == "" {
		kept, reason = u.kind.accept(r.value)
	}
	if reason != "" {
		return h.refused(u, reason, now)
	}
	if u.kind.messenger() && messenger.Simulated(h.secret.Current()) != messenger.Simulated(kept) {
		return held{ref: u.ref, secret: NewSecret(kept)}
	}
	return held{ref: u.ref, secret: h.secret.replacedBy(kept, now)}
}

// refused returns the state of a place whose value cannot be used. A malformed webhook secret is a mistake and revokes
// nothing: the value before it signs for one more Overlap, so that events need not wait at once.
func (h held) refused(u use, reason Reason, now time.Time) held {
	until := h.until
	if until.IsZero() {
		until = now.Add(Overlap)
	}
	mistakes := []Reason{ReasonNotBase64, ReasonWebhookSecretTooShort, ReasonPlaceholder}
	if u.kind != kindWebhook || !slices.Contains(mistakes, reason) || !h.secret.Usable() || lapsed(until, now) {
		return held{ref: u.ref, reason: reason}
	}
	return held{ref: u.ref, secret: h.secret.replacedBy(h.secret.Current(), now), reason: reason, until: until}
}

// refuseRepeated keeps an API key for the first name that has it: two names would make limits and logs a matter of luck.
func refuseRepeated(all []use, next map[string]held) {
	var seen [][]byte
	for _, u := range all {
		h := next[u.field]
		if u.kind != kindAPIKey || h.reason != "" {
			continue
		}
		value := h.secret.Current()
		if slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(value, other) }) {
			next[u.field] = held{ref: u.ref, reason: ReasonRepeated}
			continue
		}
		seen = append(seen, value)
	}
}

// refuseMixed refuses a WhatsApp account of which one credential is the simulator's and the other is not: one of the two
// would go where it must not.
func refuseMixed(next map[string]held) {
	token, secret := next[fieldAccessToken], next[fieldAppSecret]
	if !token.secret.Usable() || !secret.secret.Usable() ||
		messenger.Simulated(token.secret.Current()) == messenger.Simulated(secret.secret.Current()) {
		return
	}
	next[fieldAccessToken] = held{ref: token.ref, reason: ReasonMixedSimulator}
	next[fieldAppSecret] = held{ref: secret.ref, reason: ReasonMixedSimulator}
}

// secret returns what the place has got; unusable where it is not in the project.
func (s Secrets) secret(field string) Secret { return s.held[field].secret }

// problems returns what cannot be used, sorted by field.
func (s Secrets) problems() []Problem {
	var problems []Problem
	for field, h := range s.held {
		if h.reason != "" {
			problems = append(problems, Problem{Field: field, Secret: h.ref.Name, Key: h.ref.Key, Reason: h.reason})
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Field, b.Field) })
	return problems
}

// lapsedSince returns the problems whose former value was still used in before and is no longer.
func (s Secrets) lapsedSince(before Secrets) []Problem {
	return slices.DeleteFunc(s.problems(), func(p Problem) bool {
		old, now := before.held[p.Field], s.held[p.Field]
		return old.reason == "" || !old.secret.Usable() || now.secret.Usable()
	})
}

// equal tells whether nothing happened, not even the end of a former value.
func (s Secrets) equal(other Secrets) bool { return maps.Equal(s.held, other.held) }

// replacedSince names the secrets whose value is another one than in before, as SECRET/KEY, sorted.
func (s Secrets) replacedSince(before Secrets) []string {
	var names []string
	for field, h := range s.held {
		old := before.held[field]
		if old.ref == h.ref && old.secret.Usable() && h.secret.Usable() && !bytes.Equal(old.secret.Current(), h.secret.Current()) {
			names = append(names, h.ref.Name+"/"+h.ref.Key)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
