// Package redact hides values from everything that prints: secrets, codes, addresses of users and receivers.
package redact

import (
	"fmt"
	"io"
	"log/slog"
)

// Placeholder is what a Value prints as.
const Placeholder = "[redacted]"

// Value holds a T that no verb of package fmt, no encoder and no logger shows, also if the Value is an unexported field of a
// struct that is printed, where fmt cannot call its methods. Its zero value holds the zero T.
type Value[T any] struct {
	// fmt prints two pointers as an address. It follows a single one for a verb that does not fit.
	hidden **T
}

// New returns a Value that holds v.
func New[T any](v T) Value[T] {
	box := &struct {
		pointer *T
		value   T
	}{value: v}
	box.pointer = &box.value
	return Value[T]{&box.pointer}
}

// Reveal returns what v holds.
func (v Value[T]) Reveal() T {
	if v.hidden == nil {
		var zero T
		return zero
	}
	return **v.hidden
}

// String returns the placeholder.
func (v Value[T]) String() string { return Placeholder }

// Format writes the placeholder, whatever the verb.
func (v Value[T]) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, Placeholder) // fmt's buffer does not fail
}

// MarshalText writes the placeholder to JSON and YAML.
func (v Value[T]) MarshalText() ([]byte, error) { return []byte(Placeholder), nil }

// LogValue writes the placeholder to structured logs.
func (v Value[T]) LogValue() slog.Value { return slog.StringValue(Placeholder) }
