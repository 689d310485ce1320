package floor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// idlePause is how long the loop waits when nothing is due.
	idlePause = 50 * time.Millisecond
	// maxClaim bounds a claim.
	maxClaim = 500
)

// eventBody is PhoneProof's.
type eventBody struct {
	Event             string    `json:"event"`
	PhoneNumber       string    `json:"phoneNumber"`
	ActualPhoneNumber string    `json:"actualPhoneNumber"`
	RequestID         string    `json:"requestId"`
	ProjectID         string    `json:"projectId"`
	Method            string    `json:"method"`
	Timestamp         time.Time `json:"timestamp"`
}

// deliverEvents sends events that are due until ctx ends. One that fails is due again when its lease ends.
func (s *server) deliverEvents(ctx context.Context, fail func(error)) {
	events := make(chan dueEvent)
	for range inFlight {
		go s.sendEvents(ctx, events) // ends with ctx
	}
	for ctx.Err() == nil {
		claimed, err := s.store.claim(ctx, maxClaim)
		if err != nil {
			fail(fmt.Errorf("claim events: %w", err))
			return
		}
		for _, e := range claimed {
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
		if len(claimed) == 0 {
			select {
			case <-time.After(idlePause):
			case <-ctx.Done():
			}
		}
	}
}

func (s *server) sendEvents(ctx context.Context, events <-chan dueEvent) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			body, err := json.Marshal(eventBody{
				"verification.success", e.phone, e.phone, e.id, "default/floor", "WHATSAPP", e.verified.UTC().Truncate(time.Millisecond),
			})
			if err != nil {
				panic(err) // our types can always be encoded
			}
			header := http.Header{"Content-Type": {"application/json"}, "X-Webhook-Signature": {signBody(s.options.WebhookSecret, body)}}
			if s.postBody(ctx, s.options.Receiver, body, header) == nil {
				_, _ = s.store.records.do(ctx, e.id) // the batcher fails with the server
			}
		}
	}
}
