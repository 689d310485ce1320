package phoneproof

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// HandlerOptions are what a handler does with events.
type HandlerOptions struct {
	// OnEvent is called with each event, and OnTest with those of test keys. An event is acknowledged if it returns nil, and otherwise
	// sent again later. OnEvent is required with Secrets, and OnTest with TestSecrets.
	OnEvent, OnTest func(ctx context.Context, event *Event) error
	// Seen has the ids of events that were taken, so that a repeated one is acknowledged without a call. Nil calls OnEvent for each.
	Seen Seen
	// BodySignature also accepts events that have x-webhook-signature alone. It requires Seen.
	BodySignature bool
}

// Seen is a store of the ids of events, which need to be kept for a week. An event may still come twice if it is sent twice at once.
type Seen interface {
	// Has reports whether an id was added.
	Has(ctx context.Context, id string) (bool, error)
	// Add is called after the event was handled.
	Add(ctx context.Context, id string) error
}

// Handler returns a handler for the address of the webhook. It answers 204 once the callback has returned nil, and then alone. The error is
// an *Error with CodeNoSecret or CodeInvalidArgument.
func (r *Receiver) Handler(options HandlerOptions) (http.Handler, error) {
	own := *r
	own.BodySignature = nil
	if options.BodySignature { // Seen finds the repetitions: an event whose callback failed may come again
		own.BodySignature = func(string) bool { return false }
	}
	if err := own.check(); err != nil {
		return nil, err
	}
	if options.BodySignature && options.Seen == nil {
		return nil, newArgumentError("Seen", "BodySignature requires Seen: nothing else stops a replay")
	}
	if len(r.Secrets) > 0 && options.OnEvent == nil || len(r.TestSecrets) > 0 && options.OnTest == nil {
		return nil, newArgumentError("", "Secrets require OnEvent, and TestSecrets OnTest")
	}
	return &handler{receiver: &own, options: options}, nil
}

type handler struct {
	receiver *Receiver
	options  HandlerOptions
}

// ServeHTTP takes an event.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send events by POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEvent))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		http.Error(w, CodeBodyTooLarge, http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the body did not arrive", http.StatusBadRequest)
		return
	}
	event, err := h.receiver.Receive(r.Header, body)
	switch {
	case errors.Is(err, ErrSignature):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case err != nil: // it was signed, and is no event
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		if err := h.handleOnce(r.Context(), event); err != nil {
			slog.ErrorContext(r.Context(), "phoneproof: an event was not handled", "error", err)
			http.Error(w, "the event was not handled", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// handleOnce calls the callback unless the event was handled before.
func (h *handler) handleOnce(ctx context.Context, event *Event) error {
	seen, id, handle := h.options.Seen, event.ID, h.options.OnEvent
	if event.isOfTestKey() {
		id = "test:" + id // who has a test secret alone chooses ids, too
		handle = h.options.OnTest
	}
	if seen != nil {
		if has, err := seen.Has(ctx, id); has || err != nil {
			return err //nolint:wrapcheck // it is only logged
		}
	}
	if err := handle(ctx, event); err != nil {
		return err
	}
	if seen == nil {
		return nil
	}
	if err := seen.Add(ctx, id); err != nil {
		return fmt.Errorf("add event: %w", err)
	}
	return nil
}
