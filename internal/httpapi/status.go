package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveStatus answers GET /api/verify/status.
func (x *exchange) serveStatus() error {
	key, err := x.authorize(settings.ScopeStatus)
	if err != nil {
		return err
	}
	query, err := parseStatusQuery(x.r.URL.RawQuery)
	if err != nil {
		return err
	}
	if err := x.limitStatus(key.Name); err != nil {
		return err
	}
	request, err := x.readOrWait(key, query)
	if err != nil {
		return err
	}
	x.answerStatus(request)
	return nil
}

// readOrWait returns the request immediately or, for a long poll that gets a slot, when it is final or the time is up.
func (x *exchange) readOrWait(key settings.Key, query statusQuery) (verification.Request, error) {
	// An id that cannot exist needs no subscription; readRequest answers it like any other unknown id.
	if query.wait == 0 || !verification.IsRequestID(query.id) {
		return x.readRequest(query.id)
	}
	request, waited, err := x.waitForChange(key, query)
	if err != nil {
		return verification.Request{}, fmt.Errorf("wait for change: %w", err)
	}
	if !waited {
		return request, nil
	}
	// The key may have been revoked or expired while the client waited.
	x.settings = x.api.settings()
	if _, err := x.authorize(settings.ScopeStatus); err != nil {
		return verification.Request{}, err
	}
	return request, nil
}

// readRequest reads the request from the store, for at most storeTimeout.
func (x *exchange) readRequest(id string) (verification.Request, error) {
	ctx, cancel := context.WithTimeout(verification.WithCaller(x.r.Context(), verification.Client(x.keyName)), storeTimeout)
	defer cancel()
	request, err := x.api.service.StatusFor(ctx, id, x.testKey)
	if err != nil {
		return verification.Request{}, fmt.Errorf("read request: %w", err)
	}
	return request, nil
}

func (x *exchange) answerStatus(request verification.Request) {
	now := x.api.clock.Now()
	buffer := takeBuffer()
	body := *buffer
	body = append(body, `{"status":"`...)
	body = append(body, request.PhaseAt(now)...)
	body = append(body, `","phoneNumber":"`...)
	body = append(body, request.Phone.E164()...)
	body = append(body, `","expiresAt":`...)
	body = appendTime(body, request.EndsAt())
	if len(request.OtherMethods) > 0 {
		body = append(body, `,"method":"`...)
		body = append(body, request.UsedMethod()...)
		body = append(body, '"')
	}
	body = appendResult(body, &request, now)
	body = appendClientData(body, &request)
	body = appendTest(body, &request)
	body = append(body, "}\n"...)
	x.sendAnswer(http.StatusOK, body)
	releaseBuffer(buffer, body)
}

// appendResult appends what became of a request so far.
func appendResult(body []byte, request *verification.Request, now time.Time) []byte {
	if request.PhaseAt(now) == verification.Verified {
		body = append(body, `,"verifiedAt":`...)
		body = appendTime(body, request.VerifiedAt)
		body = append(body, `,"actualPhoneNumber":"`...)
		body = append(body, request.Actual.E164()...)
		body = append(body, '"')
		if assurance := request.ShownAssurance(); assurance != verification.AssuranceUsual {
			body = append(body, `,"assurance":`...)
			body = appendString(body, string(assurance))
		}
		if request.Via != verification.ViaMessage {
			body = append(body, `,"via":"`...)
			body = append(body, request.Via...)
			body = append(body, '"')
		}
	}
	body = appendCodeDelivery(body, request, now)
	if hint := request.HintAt(now); hint != "" {
		body = append(body, `,"hint":"`...)
		body = append(body, hint...)
		body = append(body, '"')
	}
	return body
}

// statusQuery holds the query parameters of status that are used.
type statusQuery struct {
	id   string
	wait time.Duration
	// hint is the one that the client has seen; empty for none. It counts only if hinted is set.
	hint   verification.HintKind
	hinted bool
}

// hasNews reports whether a client that gave its hint has not seen the one of now.
func (q *statusQuery) hasNews(request *verification.Request, now time.Time) bool {
	return q.hinted && request.HintAt(now) != q.hint
}

// parseStatusQuery reads the query without url.Values, which allocates a map and silently drops malformed parts. Unknown
// parameters are ignored.
func parseStatusQuery(raw string) (statusQuery, error) {
	var (
		query         statusQuery
		hasID, waited bool
	)
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		escapedName, escaped, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escapedName)
		if err != nil {
			return statusQuery{}, errQuery
		}
		value, err := url.QueryUnescape(escaped)
		if err != nil {
			return statusQuery{}, errQuery
		}
		switch {
		case name == "id" && hasID:
			return statusQuery{}, errRepeatedID
		case name == "id":
			query.id, hasID = value, true
		case name == "wait":
			seconds, ok := parseWait(value)
			if waited || !ok {
				return statusQuery{}, errWait
			}
			query.wait, waited = seconds, true
		case name == "hint":
			if query.hinted || !isHint(value) {
				return statusQuery{}, errHint
			}
			query.hint, query.hinted = verification.HintKind(value), true
		}
	}
	if query.id == "" {
		return statusQuery{}, errMissingID
	}
	return query, nil
}

// parseWait reads whole seconds up to maxWait, such as 20s.
func parseWait(value string) (time.Duration, bool) {
	digits, ok := strings.CutSuffix(value, "s")
	if !ok || digits == "" || len(digits) > 2 || !isDigit(digits[0]) {
		return 0, false
	}
	seconds, err := strconv.Atoi(digits)
	wait := time.Duration(seconds) * time.Second
	return wait, err == nil && wait <= maxWait
}

// isHint reports whether a value has the form of a hint, or is empty. Hints that this version does not know are taken: the replica that
// answered one may be newer.
func isHint(value string) bool {
	for i := range len(value) {
		if c := value[i]; c != '_' && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return len(value) <= maxHintBytes
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
