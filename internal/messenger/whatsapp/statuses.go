package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// status is what became of a message of ours (webhooks/reference/messages/status). What only some of them have is decoded when it is
// needed.
type status struct {
	ID              string          `json:"id"`
	Status          string          `json:"status"`
	RecipientID     string          `json:"recipient_id"`
	RecipientUserID string          `json:"recipient_user_id"`
	Pricing         json.RawMessage `json:"pricing"`
	Errors          json.RawMessage `json:"errors"`
	CallbackData    string          `json:"biz_opaque_callback_data"`
}

// The values of status.Status that count; statusSent only for codes. A read message need not have been reported as delivered before.
const (
	statusSent      = "sent"
	statusDelivered = "delivered"
	statusRead      = "read"
	statusFailed    = "failed"
)

// pricing is what Meta says about the price of a message.
type pricing struct {
	Billable json.RawMessage `json:"billable"`
	Category string          `json:"category"`
	Type     string          `json:"type"`
}

// billedCategory returns the category that the message is billed in; false if it is not. Meta deprecates billable and names type
// regular in its place.
func (s *status) billedCategory() (string, bool) {
	var p pricing
	if !isPresent(s.Pricing) || json.Unmarshal(s.Pricing, &p) != nil {
		return "", false
	}
	switch strings.Trim(string(p.Billable), `"`) {
	case "true":
		return knownCategory(p.Category), true
	case "false":
		return "", false
	default:
		return knownCategory(p.Category), p.Type == "regular"
	}
}

// categories are those of Meta's price list, as metrics name them.
var categories = [...]string{
	"authentication", "authentication_international", "marketing", "marketing_lite", "utility", "service",
	"referral_conversion", categoryOther,
}

const categoryOther = "other"

// knownCategory folds categories that we do not know into one: they come from outside.
func knownCategory(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, known := range categories {
		if name == known {
			return known
		}
	}
	return categoryOther
}

// Meta's codes for messages that no retry delivers (Cloud API, "Error codes").
const (
	codeUndeliverable = 131026
	codeNoWindow      = 131047
)

// The reasons of failed messages, as metrics name them.
const (
	failedNoWindow      = "no_window" // the user wrote nothing within 24 hours
	failedUndeliverable = "undeliverable"
	failedOther         = "other"
)

// failureReason returns why the message failed.
func (s *status) failureReason() string {
	for _, code := range s.errorCodes() {
		switch code {
		case codeNoWindow:
			return failedNoWindow
		case codeUndeliverable:
			return failedUndeliverable
		}
	}
	return failedOther
}

// errorCodes returns Meta's codes of a failure; none if they cannot be read.
func (s *status) errorCodes() []int {
	var errors []struct {
		Code int `json:"code"`
	}
	if !isPresent(s.Errors) || json.Unmarshal(s.Errors, &errors) != nil {
		return nil
	}
	codes := make([]int, len(errors))
	for i, e := range errors {
		codes[i] = e.Code
	}
	return codes
}

// statusCounter counts what became of our messages, each once: Meta posts several statuses of one, and copies of each.
type statusCounter struct {
	billed, failed *prometheus.CounterVec
	counted        *messenger.Cooldown
}

// newStatusCounter returns a counter, with its metrics registered unless registerer is nil.
func newStatusCounter(registerer prometheus.Registerer) (*statusCounter, error) {
	const copies = " Each message counts once at a replica; a copy of its status that reaches another replica may count it again."
	c := &statusCounter{
		billed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_whatsapp_messages_billed_total",
			Help: "Messages that were delivered and that Meta bills, by the category of its price list." + copies,
		}, []string{"category"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_whatsapp_messages_failed_total",
			Help: "Messages that Meta accepted and then did not deliver: no_window (131047), undeliverable (131026) or other." + copies,
		}, []string{"reason"}),
		counted: messenger.NewCooldown(maxStatuses, statusMemory),
	}
	for _, category := range categories {
		c.billed.WithLabelValues(category)
	}
	for _, reason := range []string{failedNoWindow, failedUndeliverable, failedOther} {
		c.failed.WithLabelValues(reason)
	}
	if registerer == nil {
		return c, nil
	}
	for _, collector := range []prometheus.Collector{c.billed, c.failed} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of statuses: %w", err)
		}
	}
	return c, nil
}

// countStatus counts a status that is the first of its kind for its message. It reports whether that is that the message failed.
func (c *statusCounter) countStatus(now time.Time, s *status) (failed bool) {
	if s.ID == "" {
		return false
	}
	switch s.Status {
	case statusDelivered, statusRead:
		if category, billed := s.billedCategory(); billed && c.counted.TryStart(now, statusDelivered, s.ID) {
			c.billed.WithLabelValues(category).Inc()
		}
	case statusFailed:
		if c.counted.TryStart(now, statusFailed, s.ID) {
			c.failed.WithLabelValues(s.failureReason()).Inc()
			return true
		}
	}
	return false
}

// receiveStatus handles what became of one message, after the messages of users. One that failed is not sent again by Meta, whatever the
// reason was.
func (b *batch) receiveStatus(ctx context.Context, s *status) {
	if ctx.Err() != nil || b.failures.Load() >= maxFailures {
		b.recordFailure(messenger.OutcomeFailed, errLeftOver)
		return
	}
	defer panics.Recover(func(failure error) {
		b.hook.metrics.Count(messenger.OutcomePanicked, 1)
		b.log.Error(failure, "WhatsApp status dropped", "outcome", messenger.OutcomePanicked)
	})
	var err error
	if reference, isCode := strings.CutPrefix(s.CallbackData, codePrefix); isCode {
		err = b.receiveCodeStatus(ctx, s, reference)
	} else {
		err = b.receiveMessageStatus(ctx, s)
	}
	switch {
	case errors.Is(err, verification.ErrContent):
		b.hook.metrics.Count(messenger.OutcomeContentRefused, 1)
		b.log.Error(err, "WhatsApp status dropped", "outcome", messenger.OutcomeContentRefused)
	case err != nil:
		b.recordFailure(messenger.OutcomeFailed, err)
	}
}

// receiveMessageStatus handles what became of a reply, a prompt or a question.
func (d *delivery) receiveMessageStatus(ctx context.Context, s *status) error {
	if d.hook.statuses.countStatus(d.now, s) {
		d.freeEchoSlot(s)
	}
	if s.Status != statusFailed {
		return nil
	}
	return d.recordLostQuestion(ctx, s.CallbackData) // a copy records nothing more
}
