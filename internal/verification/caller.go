package verification

import "context"

// Caller is the party that a store is called for. A store for which unknown ids are expensive bounds them for each caller. The zero
// value is this process itself, which is not bounded.
type Caller struct {
	kind callerKind
	name string
}

type callerKind int

const (
	byProcess callerKind = iota
	byClient
	bySender
)

// Client returns the caller that presents the API key of that name.
func Client(keyName string) Caller { return Caller{byClient, keyName} }

// Sender returns the caller that sends messages from a number or, by its keyed hash, a messenger's account.
func Sender(name string) Caller { return Caller{bySender, name} }

// IsClient reports whether the caller presents an API key.
func (c Caller) IsClient() bool { return c.kind == byClient }

// IsSender reports whether the caller sends messages.
func (c Caller) IsSender() bool { return c.kind == bySender }

// Name identifies the caller among others of its kind. It may be a number, so it is not for logs.
func (c Caller) Name() string { return c.name }

// String hides the name.
func (c Caller) String() string { return "[caller]" }

type callerKey struct{}

// WithCaller returns a context in which a store is called for that caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller that a context names, or the zero Caller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}
