package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// codePrefix begins the reference of a delivered code: code:REQUEST_ID:CREATED_AT. Of two requests with the same id, one after the other,
// the times differ.
const codePrefix = "code:"

// newCodeReference returns what the statuses of a request's code carry.
func newCodeReference(r *verification.Request) string {
	return codePrefix + r.ID + ":" + strconv.FormatInt(r.CreatedAt.UnixMicro(), 10)
}

// receiveCodeStatus records what became of a delivered code. reference is that of its message without the prefix. A status that changes
// nothing is read only: three come of each code.
func (d *delivery) receiveCodeStatus(ctx context.Context, s *status, reference string) error {
	id, created, _ := strings.Cut(reference, ":")
	micros, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return nil // no reference of ours
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	createdAt := time.UnixMicro(micros)
	r, err := d.hook.service.Status(ctx, id)
	switch {
	case errors.Is(err, verification.ErrNotFound), err == nil && (!r.CreatedAt.Equal(createdAt) || !r.DeliversCode()):
		return nil
	case err != nil:
		return fmt.Errorf("read request of delivered code: %w", err)
	}
	result := s.judgeCodeStatus(r.Phone)
	if result.Reason != "" && result.Reason != r.Code.Reason {
		d.hook.codes.CountFailure(verification.WhatsApp, result.Reason, s.ID, d.now)
	}
	if result.State == "" || result.State == r.Code.State && !result.AddsTo(r.Code) {
		return nil
	}
	if err := d.hook.service.RecordCodeResult(ctx, id, createdAt, result, d.settings.EventKinds()); err != nil {
		return fmt.Errorf("record result of delivered code: %w", err)
	}
	return nil
}

// judgeCodeStatus returns what a status says of a code to the number asked; nothing if it says neither.
func (s *status) judgeCodeStatus(asked phone.Number) verification.CodeResult {
	switch s.Status {
	case statusSent, statusDelivered, statusRead:
		recipient, err := phone.ParseWhatsApp(s.RecipientID)
		if err != nil {
			recipient = phone.Number{}
		}
		return judgeCode(nil, recipient, asked)
	case statusFailed:
		result := judgeErrorCodes(s.errorCodes())
		result.State = verification.CodeSent // it was accepted, and when it fails after that may depend on the number
		return result
	default:
		return verification.CodeResult{}
	}
}
