package settings

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// Overlap is how long a replaced value stays accepted: kubelets refresh mounted Secrets within about two minutes of each
// other, and whoever presents the value needs time to learn of the new one.
const Overlap = 10 * time.Minute

// maxFormer bounds the former values of one secret, and with them the work of checking a presented one: whatever writes
// a Secret every second must not slow every request down.
const maxFormer = 4

// hidden stands for every value of a secret.
const hidden = "[secret]"

// Secret is the content of one secret key, with the values it had less than Overlap ago. Its zero value is a secret that
// cannot be used. It is immutable and prints as a placeholder.
type Secret struct {
	// A pointer to a pointer, because fmt follows no such thing: from a field of somebody's struct that it cannot call
	// Format on, it prints an address and not the bytes. One pointer is followed for a verb that does not fit.
	hidden **values
}

type values struct {
	current  []byte
	previous []replaced // the newest first
}

// replaced is a former value, accepted before until.
type replaced struct {
	value []byte
	until time.Time
}

// NewSecret returns a secret that had no other value before. An empty value makes an unusable one.
func NewSecret(value []byte) Secret {
	if len(value) == 0 {
		return Secret{}
	}
	return newSecret(&values{current: value})
}

func newSecret(v *values) Secret { return Secret{&v} }

// values returns what is known of the secret; nothing if it cannot be used.
func (s Secret) values() values {
	if s.hidden == nil {
		return values{}
	}
	return **s.hidden
}

// Current returns the value to present to others; nil if the secret cannot be used. It must not be changed.
func (s Secret) Current() []byte { return s.values().current }

// Usable tells whether there is a value.
func (s Secret) Usable() bool { return len(s.Current()) > 0 }

// Accepted returns the values to accept from others at now, the current one first. A secret that cannot be used has
// none: its former values go with it.
func (s Secret) Accepted(now time.Time) [][]byte {
	if !s.Usable() {
		return nil
	}
	accepted := [][]byte{s.Current()}
	for _, former := range s.values().previous {
		if now.Before(former.until) {
			accepted = append(accepted, former.value)
		}
	}
	return accepted
}

// replacedBy returns the secret after value was read at now. It returns s itself where nothing changes.
func (s Secret) replacedBy(value []byte, now time.Time) Secret {
	if !s.Usable() {
		return NewSecret(value)
	}
	old := s.values()
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
	return newSecret(&values{current: value, previous: slices.Clip(previous[:min(len(previous), maxFormer)])})
}

// String hides the value.
func (s Secret) String() string { return hidden }

// Format hides the value from every verb of package fmt.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, hidden) }

// MarshalText hides the value from JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
