package phone

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// errEncoded is for the programmer, not the client: encoding a Number without E164 would store or send the masked form,
// or leak the real one.
var errEncoded = errors.New("phone number is not encoded implicitly: write its E164 form")

// minHidden is the fewest digits that a mask hides; if it would hide fewer, it shows no last digits.
const minHidden = 4

// String returns the masked form for logs: the country code and the last two digits, with asterisks between
// (+49*********07), or "none".
func (n Number) String() string {
	if n.IsZero() {
		return "none"
	}
	buf := []byte(n.E164())
	_, code := n.countryCode()
	shown := len(buf) - 2
	if shown-code-1 < minHidden {
		shown = len(buf)
	}
	for i := code + 1; i < shown; i++ {
		buf[i] = '*'
	}
	return string(buf)
}

// Format writes the masked form for every verb: otherwise %d and %#v would print the field.
func (n Number) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, n.String()) // fmt's buffer does not fail.
}

// LogValue returns the masked form.
func (n Number) LogValue() slog.Value { return slog.StringValue(n.String()) }

// MarshalText always fails, so that encoding/json and similar packages write neither {} nor the number. Code that sends
// or stores a number calls E164.
func (n Number) MarshalText() ([]byte, error) { return nil, errEncoded }

// Value always fails, so that a database driver that accepts any fmt.Stringer (pgx does) cannot store the masked form.
func (n Number) Value() (driver.Value, error) { return nil, errEncoded }
