package requests

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The states of a request.
const (
	statusPending  = "PENDING"
	statusVerified = "VERIFIED"
	statusExpired  = "EXPIRED"
)

// The states of a delivery.
const (
	deliveryWaiting   = "WAITING"
	deliveryDelivered = "DELIVERED"
	deliveryExhausted = "EXHAUSTED"
)

// kindDelivery is a delivery, which lists do not show.
const kindDelivery = "DELIVERY"

// hintDeclined is the hint of a request whose owner answered "Not me".
const hintDeclined = "DECLINED"

// maxLimit is the largest page of requests.
const maxLimit = 200

// Request is a request as the API describes it. Requests that are stored as objects are shown in the same form.
type Request struct {
	RequestID         string            `json:"requestId"`
	Kind              string            `json:"kind,omitempty"`
	Status            string            `json:"status"`
	PhoneNumber       string            `json:"phoneNumber"`
	Method            string            `json:"method"`
	CreatedAt         time.Time         `json:"createdAt,omitzero"`
	ExpiresAt         time.Time         `json:"expiresAt,omitzero"`
	VerifiedAt        time.Time         `json:"verifiedAt,omitzero"`
	ActualPhoneNumber string            `json:"actualPhoneNumber,omitempty"`
	Assurance         string            `json:"assurance,omitempty"`
	Via               string            `json:"via,omitempty"`
	CodeDelivery      string            `json:"codeDelivery,omitempty"`
	CodeReason        string            `json:"codeReason,omitempty"`
	Hint              string            `json:"hint,omitempty"`
	Reference         string            `json:"reference,omitempty"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	Locale            string            `json:"locale,omitempty"`
	APIKey            string            `json:"apiKey,omitempty"`
	Test              bool              `json:"test,omitempty"`
	Delivery          *Delivery         `json:"delivery,omitempty"`
	Attempts          []Attempt         `json:"attempts,omitempty"`
	// Hints are all hints, oldest first; the API answers the latest alone.
	Hints []Hint `json:"hints,omitempty"`
	// Problem is why a manual request is not worked on. The API has no such requests.
	Problem string `json:"problem,omitempty"`
}

// Delivery is how far the event of a request is.
type Delivery struct {
	State         string    `json:"state"`
	Attempts      int       `json:"attempts"`
	NextAttemptAt time.Time `json:"nextAttemptAt,omitzero"`
	DeliveredAt   time.Time `json:"deliveredAt,omitzero"`
}

// Attempt is one try to deliver an event.
type Attempt struct {
	At         time.Time `json:"at"`
	Event      string    `json:"event,omitempty"`
	StatusCode int       `json:"statusCode,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// Hint is why a request was not verified yet.
type Hint struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at"`
}

// Query selects requests; zero values select all.
type Query struct {
	Status    string
	Reference string
	Since     time.Time
}

// Page is a page of requests, newest first.
type Page struct {
	Requests   []Request `json:"requests"`
	NextCursor string    `json:"nextCursor,omitempty"`
}

// List returns at most limit requests after a cursor; an empty cursor is the beginning.
func (c *apiClient) List(ctx context.Context, q Query, limit int, cursor string) (Page, error) {
	query := url.Values{"limit": {strconv.Itoa(min(limit, maxLimit))}}
	for name, value := range map[string]string{"status": q.Status, "reference": q.Reference, "cursor": cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	var page Page
	err := c.read(ctx, "/api/verify/requests", query, &page)
	return page, err
}

// Get returns a request with its delivery attempts.
func (c *apiClient) Get(ctx context.Context, id string) (Request, error) {
	var request Request
	err := c.read(ctx, "/api/verify/requests/"+url.PathEscape(id), nil, &request)
	return request, err
}

// Cancel ends a pending request.
func (c *apiClient) Cancel(ctx context.Context, id string) error {
	var status map[string]any
	return c.call(ctx, http.MethodPost, "/api/verify/cancel", nil, map[string]string{"requestId": id}, &status)
}

// Redeliver makes the event of a request due once more. Redeliveries have a limit of their own, so one that is refused is repeated when the
// API allows.
func (c *apiClient) Redeliver(ctx context.Context, id string) (Request, error) {
	var request Request
	err := waitForTurn(ctx, func() error {
		return c.call(ctx, http.MethodPost, "/api/verify/redeliver", nil, map[string]string{"requestId": id}, &request)
	})
	return request, err
}

// Init is what a verification is started with.
type Init struct {
	PhoneNumber string `json:"phoneNumber"`
	Method      string `json:"method,omitempty"`
	Reference   string `json:"reference,omitempty"`
	Subject     string `json:"subject,omitempty"`
}

// Invitation is what the user needs to be verified.
type Invitation struct {
	RequestID    string `json:"requestId"`
	WALink       string `json:"waLink,omitempty"`
	TGLink       string `json:"tgLink,omitempty"`
	PageURL      string `json:"pageURL,omitempty"`
	ExpectedText string `json:"expectedText"`
	ExpiresIn    string `json:"expiresIn"`
}

// Link returns the link that opens the messenger.
func (i *Invitation) Link() string { return i.WALink + i.TGLink }

// Init starts a verification.
func (c *apiClient) Init(ctx context.Context, init Init) (Invitation, error) {
	var invitation Invitation
	err := c.call(ctx, http.MethodPost, "/api/verify/init", nil, init, &invitation)
	return invitation, err
}

// Status is the part of the status of a request that is shown.
type Status struct {
	Status    string `json:"status"`
	Hint      string `json:"hint,omitempty"`
	Assurance string `json:"assurance,omitempty"`
}

// Await returns the status of a request when it is final, or after some seconds.
func (c *apiClient) Await(ctx context.Context, id string) (Status, error) {
	var status Status
	err := c.read(ctx, "/api/verify/status", url.Values{"id": {id}, "wait": {"20s"}}, &status)
	return status, err
}
