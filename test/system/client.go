package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Begun is a started verification.
type Begun struct {
	ID           string `json:"requestId"`
	ExpectedText string `json:"expectedText"`
	Number       string `json:"-"`
}

// StatusError is a response whose status is not 200.
type StatusError struct {
	Status     int
	RetryAfter string
}

// Error returns the status as text.
func (e *StatusError) Error() string { return fmt.Sprintf("unexpected status %d", e.Status) }

// Begin starts a verification of a number through a replica; method is WHATSAPP or TELEGRAM. An empty idempotency key is
// not sent. A status other than 200 is returned as a *StatusError.
func (p *Project) Begin(ctx context.Context, through *Replica, number, method, idempotencyKey string) (Begun, error) {
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + p.Key}}
	if idempotencyKey != "" {
		header.Set("Idempotency-Key", idempotencyKey)
	}
	begun := Begun{Number: number}
	err := sendRequest(ctx, http.MethodPost, "http://"+through.API+"/api/verify/init", header,
		fmt.Appendf(nil, `{"phoneNumber":%q,"method":%q}`, number, method), &begun)
	return begun, err
}

// Status returns the status of a verification, as a replica reports it.
func (p *Project) Status(ctx context.Context, through *Replica, id string) (string, error) {
	var answer struct {
		Status string `json:"status"`
	}
	header := http.Header{"Authorization": {"Bearer " + p.Key}}
	err := sendRequest(ctx, http.MethodGet, "http://"+through.API+"/api/verify/status?id="+id, header, nil, &answer)
	return answer.Status, err
}

// Post sends the message to a replica. Nil means that the replica acknowledged it.
func (m Message) Post(ctx context.Context, to *Replica) error {
	return sendRequest(ctx, http.MethodPost, "http://"+to.API+m.Path, m.Header, m.Body, nil)
}

// sendRequest sends a request and decodes the response into into, unless that is nil.
func sendRequest(ctx context.Context, method, url string, header http.Header, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return &StatusError{response.StatusCode, strings.TrimSpace(response.Header.Get("Retry-After"))}
	case into == nil:
		return nil
	default:
		return json.Unmarshal(content, into)
	}
}
