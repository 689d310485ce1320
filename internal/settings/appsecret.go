package settings

import (
	"bytes"
	"crypto/sha256"
	"regexp"
	"slices"
	"time"
)

// appSecretForm is the form in which Meta's own examples show app secrets. No page of Meta promises it: see docs/channels.md.
var appSecretForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// acceptAppSecret returns an app secret unchanged. Anyone who knows the value can write messages from any sender, so words, the
// other contents of Secrets and digits that are all alike are refused.
func acceptAppSecret(value []byte) ([]byte, Reason) {
	switch {
	case isSimulated(value) && isGraphic(value):
		return value, ""
	case !appSecretForm.Match(value), bytes.Count(value, value[:1]) == len(value):
		return nil, ReasonNotAppSecret
	default:
		return value, ""
	}
}

// refuseKnown refuses an app secret that is also an API key or a webhook secret: the clients or the receiver know it.
func (s Secrets) refuseKnown(all []use, next map[string]secretState, now time.Time) {
	for _, u := range all {
		if u.kind != kindAppSecret || isSimulated(next[u.field].secret.Current()) {
			continue
		}
		isOther := func(other use) bool { return other.kind == kindAPIKey || other.kind.signsEvents() }
		s.refuseShared(u, ReasonKnownToOthers, selectUses(all, isOther), next, now)
	}
}

// refuseShared refuses a value that one of others has too. A former value stays in use as after any mistake, unless it is shared itself.
func (s Secrets) refuseShared(u use, reason Reason, others []use, next map[string]secretState, now time.Time) {
	isShared := func(h secretState) bool {
		return slices.ContainsFunc(others, func(other use) bool { return shareValue(h.secret, next[other.field].secret, now) })
	}
	if !isShared(next[u.field]) {
		return
	}
	former := s.states[u.field]
	if former.ref != u.ref {
		former = secretState{}
	}
	next[u.field] = former.rejectValue(u, reason, now)
	if isShared(next[u.field]) {
		next[u.field] = secretState{ref: u.ref, reason: reason}
	}
}

func selectUses(all []use, isWanted func(use) bool) []use {
	return slices.DeleteFunc(slices.Clone(all), func(u use) bool { return !isWanted(u) })
}

// shareValue reports whether two secrets have a value in common at now, in any form that it is known by.
func shareValue(a, b Secret, now time.Time) bool {
	for _, mine := range a.Accepted(now) {
		for _, theirs := range b.Accepted(now) {
			hash := sha256.Sum256(mine) // of an API key nothing else is kept
			if bytes.Equal(hash[:], theirs) || slices.ContainsFunc(knownForms(mine), func(form []byte) bool {
				return slices.ContainsFunc(knownForms(theirs), func(other []byte) bool { return bytes.Equal(form, other) })
			}) {
				return true
			}
		}
	}
	return false
}

// knownForms returns a secret's value and, of one that begins with whsec_, what follows and the key that it encodes.
func knownForms(value []byte) [][]byte {
	forms := [][]byte{value}
	if encoded, standard := bytes.CutPrefix(value, []byte(webhookPrefix)); standard {
		forms = append(forms, encoded)
		if key, err := WebhookKey(value); err == nil {
			forms = append(forms, key)
		}
	}
	return forms
}
