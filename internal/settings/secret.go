package settings

import (
	"log/slog"
	"time"
)

// Overlap is how long a replaced value stays accepted: kubelets refresh mounted Secrets within about two minutes of each
// other, and whoever presents the value needs time to learn of the new one.
const Overlap = 10 * time.Minute

// Secret is the content of one secret key, with the values it had less than Overlap ago. Its zero value is a secret that
// cannot be read. It prints as a placeholder.
type Secret struct {
	current  []byte
	previous []replaced
}

// replaced is a former value, accepted before until.
type replaced struct {
	value []byte
	until time.Time
}

// Current returns the value to present to others; nil if the secret cannot be read. It must not be changed.
func (s Secret) Current() []byte { return s.current }

// Usable tells whether there is a value.
func (s Secret) Usable() bool { return len(s.current) > 0 }

// Accepted returns the values to accept from others at now, the current one first. A secret that cannot be read has
// none: its former values go with it.
func (s Secret) Accepted(now time.Time) [][]byte {
	if !s.Usable() {
		return nil
	}
	values := [][]byte{s.current}
	for _, former := range s.previous {
		if now.Before(former.until) {
			values = append(values, former.value)
		}
	}
	return values
}

// String hides the value.
func (s Secret) String() string { return "[secret]" }

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the value.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
