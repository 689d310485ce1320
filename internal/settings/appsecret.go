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
	case Simulated(value) && isGraphic(value):
		return value, ""
	case !appSecretForm.Match(value), bytes.Count(value, value[:1]) == len(value):
		return nil, ReasonNotAppSecret
	default:
		return value, ""
	}
}

// refuseKnown refuses an app secret that is also an API key, a signing secret or a webhook secret, because others know it, a signing
// secret that any of the others know, and a test secret that signs live events, because the receiver of test events could forge those.
func (s Secrets) refuseKnown(all []use, next map[string]secretState, now time.Time) {
	for _, u := range all {
		switch {
		case u.kind == kindTestWebhook:
			s.refuseCommon(u, ReasonSignsLive, selectFields(all, kind.signsLive), next, now)
		case u.kind == kindAppSecret && !Simulated(next[u.field].secret.Current()):
			s.refuseCommon(u, ReasonKnownToOthers, selectFields(all, kind.isShared), next, now)
		case u.kind == kindSigning:
			others := slices.DeleteFunc(selectFields(all, kind.isShared), func(field string) bool { return field == u.field })
			s.refuseCommon(u, ReasonKnownToOthers, others, next, now)
		}
	}
}

// refuseCommon refuses a value that one of the other fields has too. A former value stays in use as after any mistake, unless
// another field has it as well: then it is refused alone.
func (s Secrets) refuseCommon(u use, reason Reason, others []string, next map[string]secretState, now time.Time) {
	isCommon := func() bool {
		return slices.ContainsFunc(others, func(other string) bool { return shareValue(next[u.field].secret, next[other].secret, now) })
	}
	if !isCommon() {
		return
	}
	given := next[u.field]
	next[u.field] = secretState{ref: given.ref, secret: NewSecret(given.secret.Current()), reason: given.reason, until: given.until}
	if !isCommon() {
		return
	}
	former := s.states[u.field]
	if former.ref != u.ref {
		former = secretState{}
	}
	next[u.field] = former.rejectValue(u, reason, now)
	if isCommon() {
		next[u.field] = secretState{ref: u.ref, reason: reason}
	}
}

func selectFields(all []use, isWanted func(kind) bool) []string {
	var fields []string
	for _, u := range all {
		if isWanted(u.kind) {
			fields = append(fields, u.field)
		}
	}
	return fields
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

// knownForms returns a secret's value and, of one that begins with whsec_, what follows and the key that it encodes, without Supabase's
// version before them.
func knownForms(value []byte) [][]byte {
	value = bytes.TrimPrefix(value, []byte(supabasePrefix))
	forms := [][]byte{value}
	if encoded, standard := bytes.CutPrefix(value, []byte(webhookPrefix)); standard {
		forms = append(forms, encoded)
		if key, err := WebhookKey(value); err == nil {
			forms = append(forms, key)
		}
	}
	return forms
}
