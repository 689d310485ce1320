package settings

import (
	"bytes"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/internal/redact"
)

// Overlap is how long a replaced value stays accepted: kubelets refresh mounted Secrets within about two minutes of each
// other, and those who present the value need time to learn the new one.
const Overlap = 10 * time.Minute

// maxFormer limits the former values of one secret, and so the cost of checking a presented value: a Secret that changes
// every second must not slow down every request.
const maxFormer = 4

// Secret is the content of one secret key, with its values of the last Overlap. It is immutable and prints as a placeholder.
// Its zero value is a secret that cannot be used.
type Secret struct{ redact.Value[values] }

type values struct {
	current  []byte
	previous []replaced // the newest first
}

// replaced is a former value, accepted before until.
type replaced struct {
	value []byte
	until time.Time
}

// NewSecret returns a secret without former values. An empty value makes an unusable one.
func NewSecret(value []byte) Secret {
	if len(value) == 0 {
		return Secret{}
	}
	return newSecret(values{current: value})
}

func newSecret(v values) Secret { return Secret{redact.New(v)} }

// Current returns the value to present to others; nil if the secret cannot be used. It must not be changed.
func (s Secret) Current() []byte { return s.Reveal().current }

// spreadTime is how long after a change of a value another replica may still not know the new one.
const spreadTime = 3 * time.Minute

// Shared returns the value that all replicas accept at now that ran before its last change: the former one while the current one may
// be new to some. It is nil if the secret cannot be used, and must not be changed.
func (s Secret) Shared(now time.Time) []byte {
	if previous := s.Reveal().previous; len(previous) > 0 && s.Usable() {
		if newest := previous[0]; now.Before(newest.until.Add(spreadTime - Overlap)) {
			return newest.value
		}
	}
	return s.Current()
}

// Usable reports whether there is a value.
func (s Secret) Usable() bool { return len(s.Current()) > 0 }

// Accepted returns the values to accept from others at now, the current one first; none if the secret cannot be used, not
// even former ones.
func (s Secret) Accepted(now time.Time) [][]byte {
	if !s.Usable() {
		return nil
	}
	accepted := [][]byte{s.Current()}
	for _, former := range s.Reveal().previous {
		if now.Before(former.until) {
			accepted = append(accepted, former.value)
		}
	}
	return accepted
}

// replacedBy returns the secret after value was read at now. It returns s itself if nothing changes.
func (s Secret) replacedBy(value []byte, now time.Time) Secret {
	if !s.Usable() {
		return NewSecret(value)
	}
	old := s.Reveal()
	changed := !bytes.Equal(old.current, value)
	var previous []replaced
	if changed {
		previous = append(previous, replaced{old.current, now.Add(Overlap)})
	}
	for _, former := range old.previous {
		if now.Before(former.until) && !bytes.Equal(former.value, value) {
			previous = append(previous, former)
		}
	}
	if !changed && len(previous) == len(old.previous) {
		return s
	}
	return newSecret(values{current: value, previous: slices.Clip(previous[:min(len(previous), maxFormer)])})
}
