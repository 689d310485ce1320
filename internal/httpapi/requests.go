package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveList answers GET /api/verify/requests.
func (x *exchange) serveList() error {
	key, err := x.authorize(settings.ScopeRead)
	if err != nil {
		return err
	}
	query, err := parseListQuery(x.r.URL.RawQuery, x.settings.ProjectID)
	if err != nil {
		return err
	}
	return x.servePage(key, query)
}

// servePage answers with the page that a query asks for.
func (x *exchange) servePage(key settings.Key, query verification.ListQuery) error {
	query.Test = key.Test
	if err := x.limitLists(key.Name, readsPerList); err != nil {
		return err
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	page, err := x.api.service.List(ctx, query)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	x.answerList(query, page)
	return nil
}

// serveRequest answers GET /api/verify/requests/{id}.
func (x *exchange) serveRequest() error {
	key, err := x.authorizeWithoutQuery(settings.ScopeRead)
	if err != nil {
		return err
	}
	if err := x.limitLists(key.Name, 1); err != nil {
		return err
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	request, err := x.api.service.StoredRequest(ctx, idInPath(x.r.URL.Path), x.testKey)
	if err != nil {
		return fmt.Errorf("read one request: %w", err)
	}
	x.answerRequest(http.StatusOK, &request, request.Code.Reason)
	return nil
}

// serveCancel answers POST /api/verify/cancel.
func (x *exchange) serveCancel() error {
	return x.serveChange(settings.ScopeInit, x.limitStatus, x.api.service.CancelByClient, x.answerStatus)
}

// serveRedeliver answers POST /api/verify/redeliver.
func (x *exchange) serveRedeliver() error {
	return x.serveChange(settings.ScopeRedeliver, x.limitRedeliveries, x.api.service.RedeliverNow, func(request verification.Request) {
		x.answerRequest(http.StatusAccepted, &request, "")
	})
}

// serveChange changes the request that the body names. What becomes an event follows from the settings of now.
func (x *exchange) serveChange(
	scope settings.Scope,
	limit func(key string) error,
	change func(context.Context, string, bool, verification.EventKinds) (verification.Request, error),
	answer func(verification.Request),
) error {
	key, err := x.authorizeWithoutQuery(scope)
	if err != nil {
		return err
	}
	body, err := readBodyAs(x, decodeRequestID)
	if err != nil {
		return fmt.Errorf("read the id: %w", err)
	}
	if !body.ID.given {
		return errMissingRequestID
	}
	// People choose the names of manual requests, so a key that only knows ids of init must not find one by guessing.
	if !verification.IsRequestID(body.ID.value) && !key.Has(settings.ScopeRead) {
		return errScopeManual
	}
	if err := limit(key.Name); err != nil {
		return fmt.Errorf("limit changes: %w", err)
	}
	ctx, cancel := x.storeContext()
	defer cancel()
	request, err := change(ctx, body.ID.value, x.testKey, x.settings.EventKinds())
	if err != nil {
		return fmt.Errorf("change request: %w", err)
	}
	answer(request)
	return nil
}

// storeContext returns the context of a call of the store, which names the key as its caller.
func (x *exchange) storeContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(verification.WithCaller(x.r.Context(), verification.Client(x.keyName)), storeTimeout)
}

// idInPath returns the last segment of the path of a single request.
func idInPath(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// answerList answers with a page.
func (x *exchange) answerList(query verification.ListQuery, page verification.ListPage) {
	buffer := takeBuffer()
	body := append(*buffer, `{"requests":[`...)
	for i := range page.Requests {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(x.appendRequest(body, &page.Requests[i]), '}')
	}
	body = append(body, ']')
	if !page.Next.IsZero() {
		body = append(body, `,"nextCursor":`...)
		body = appendString(body, encodeCursor(page.Next, x.settings.ProjectID, query.ListFilter))
	}
	body = append(body, "}\n"...)
	x.sendAnswer(http.StatusOK, body)
	releaseBuffer(buffer, body)
}

// answerRequest answers with one request and its attempts. codeReason is what the messenger answered to its code; empty for none, and for
// keys without the scope Read, because it may show who has WhatsApp.
func (x *exchange) answerRequest(status int, request *verification.Request, codeReason string) {
	buffer := takeBuffer()
	body := x.appendRequest(*buffer, request)
	if codeReason != "" {
		body = append(body, `,"codeReason":`...)
		body = appendString(body, codeReason)
	}
	body = append(appendAttempts(body, request), "}\n"...)
	x.sendAnswer(status, body)
	releaseBuffer(buffer, body)
}

// appendRequest appends a request without its last brace. The fields that status has, too, are the same.
func (x *exchange) appendRequest(body []byte, request *verification.Request) []byte {
	now := x.api.clock.Now()
	body = append(body, `{"requestId":`...)
	body = appendString(body, request.ID)
	body = append(body, `,"status":"`...)
	body = append(body, request.PhaseAt(now)...)
	if request.IsDelivery() {
		body = append(body, `","kind":"DELIVERY`...)
	}
	body = append(body, `","phoneNumber":"`...)
	body = append(body, request.Phone.E164()...)
	body = append(body, `","method":"`...)
	body = append(body, request.UsedMethod()...)
	body = append(body, `","createdAt":`...)
	body = appendTime(body, request.CreatedAt)
	body = append(body, `,"expiresAt":`...)
	body = appendTime(body, request.EndsAt())
	body = appendResult(body, request, now)
	body = appendClientData(body, request)
	if request.Locale != "" {
		body = append(body, `,"locale":`...)
		body = appendString(body, request.Locale)
	}
	if request.KeyName != "" {
		body = append(body, `,"apiKey":`...)
		body = appendString(body, request.KeyName)
	}
	return appendDelivery(appendTest(body, request), &request.Delivery)
}

// appendDelivery appends how far the event is; nothing if there is none.
func appendDelivery(body []byte, d *verification.Delivery) []byte {
	var state string
	switch {
	case d.Wanted():
		state = "WAITING"
	case !d.DeliveredAt.IsZero():
		state = "DELIVERED"
	case !d.ExhaustedAt.IsZero():
		state = "EXHAUSTED"
	default:
		return body
	}
	body = fmt.Appendf(body, `,"delivery":{"state":"%s","attempts":%d`, state, d.Attempts)
	if d.Wanted() {
		body = append(body, `,"nextAttemptAt":`...)
		body = appendTime(body, d.NextAttemptAt)
	}
	if !d.DeliveredAt.IsZero() {
		body = append(body, `,"deliveredAt":`...)
		body = appendTime(body, d.DeliveredAt)
	}
	return append(body, '}')
}

// appendAttempts appends the attempts; nothing if there are none.
func appendAttempts(body []byte, request *verification.Request) []byte {
	attempts := request.PastAttempts()
	if len(attempts) == 0 {
		return body
	}
	body = append(body, `,"attempts":`...)
	before := byte('[')
	for _, a := range attempts {
		body = append(body, before)
		body = append(body, `{"at":`...)
		body = appendTime(body, a.At)
		body = append(body, `,"event":`...)
		body = appendString(body, verification.Event{Kind: a.Event, Test: request.Test}.Name())
		if a.StatusCode != 0 {
			body = fmt.Appendf(body, `,"statusCode":%d`, a.StatusCode)
		}
		if a.Reason != "" {
			body = append(body, `,"reason":`...)
			body = appendString(body, a.Reason)
		}
		body = append(body, '}')
		before = ','
	}
	return append(body, ']')
}
