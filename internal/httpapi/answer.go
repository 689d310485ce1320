package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// Constant header values, shared by all answers. net/http only reads them.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noSniff  = []string{"nosniff"}
	isTrue   = []string{"true"}
	closed   = []string{"close"}
)

// buffers pools the buffers that answers are built in; an answer has a few hundred bytes.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// takeBuffer returns an empty buffer.
func takeBuffer() *[]byte { return buffers.Get().(*[]byte) } //nolint:forcetypeassert // the pool holds nothing else

// releaseBuffer returns a buffer to the pool, grown to the size of body. It clears body, which may contain phone numbers
// and codes.
func releaseBuffer(buffer *[]byte, body []byte) {
	clear(body)
	*buffer = body[:0]
	buffers.Put(buffer)
}

// setCommonHeaders sets the headers of every answer.
func (x *exchange) setCommonHeaders() {
	h := x.w.Header()
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["X-Request-Id"] = []string{x.id}
	if x.settings.Simulated {
		h["Phoneproof-Simulated"] = isTrue
	}
	if len(x.r.TransferEncoding) > 0 || (!x.r.ProtoAtLeast(1, 1) && x.r.ContentLength != 0) {
		// RFC 9112, 6.1 requires closing a connection whose request had both Content-Length and Transfer-Encoding, so
		// that the bytes after it are never parsed as a request that a proxy did not see. net/http uses the latter (in
		// HTTP/1.0, the former) and does not report that there were both, so every such body closes the connection.
		h["Connection"] = closed
	}
}

// writeError answers with an error.
func (x *exchange) writeError(e *verification.Error) {
	h := x.w.Header()
	if challenge := challenges[e]; challenge != "" {
		h["Www-Authenticate"] = []string{challenge}
	}
	status := statusOf(e.Code)
	if e.RetryAfter > 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h["Retry-After"] = []string{strconv.FormatInt(wholeSeconds(e.RetryAfter), 10)}
	}
	x.code = e.Code
	if x.refusesByBody && status < statusClientGone {
		body := appendString(fmt.Appendf(nil, `{"error":{"http_code":%d,"message":`, status), e.Message)
		x.sendAnswer(http.StatusOK, append(body, "}}\n"...))
		return
	}
	buffer := takeBuffer()
	body := *buffer
	body = append(body, `{"error":{"code":"`...)
	body = append(body, e.Code...)
	body = append(body, `","message":`...)
	body = appendString(body, e.Message)
	if e.Field != "" {
		body = append(body, `,"field":`...)
		body = appendString(body, e.Field)
	}
	if e.Reason != "" {
		body = append(body, `,"reason":`...)
		body = appendString(body, e.Reason)
	}
	body = append(body, "}}\n"...)
	x.sendAnswer(status, body)
	releaseBuffer(buffer, body)
}

// beginAnswer records the status. It must be called right before the header of an answer is written.
//
// If the body was not read to its end, the connection closes with the answer: otherwise net/http would first read the
// rest, for as long as a body may take, and only then write the answer. It still reads the rest after the answer, so that
// a client that is still sending can read it; unreadBodyTime limits that.
func (x *exchange) beginAnswer(status int) {
	x.status = status
	if x.body.ended {
		return
	}
	x.w.Header()["Connection"] = closed
	//nolint:errcheck // fails without a connection only, and then nothing is read
	http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(unreadBodyTime))
}

// sendAnswer writes an answer. A failed write is ignored, because the client has disconnected.
func (x *exchange) sendAnswer(status int, body []byte) {
	x.beginAnswer(status)
	x.w.Header()["Content-Type"] = jsonType
	x.w.WriteHeader(status)
	x.w.Write(body) //nolint:errcheck // as above
}

// wholeSeconds rounds d up to seconds, at least to one, so that a client that waits for so long never retries too early.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. As in encoding/json, the line separators of JavaScript (U+2028, U+2029) are
// escaped, and invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscaped(b, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && size == 1) || r == '\u2028' || r == '\u2029' {
			b = append(b, s[start:i]...)
			b = append(b, `\u`...)
			b = append(b, hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscaped(b []byte, c byte) []byte {
	if c == '"' || c == '\\' {
		return append(b, '\\', c)
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendTest appends the field that the answers about a request of a test key have, and no others.
func appendTest(b []byte, r *verification.Request) []byte {
	if r.Test {
		b = append(b, `,"test":true`...)
	}
	return b
}

// timeLayout is RFC 3339 in UTC with milliseconds, the same as the timestamp of webhooks.
const timeLayout = "2006-01-02T15:04:05.000Z"

// appendTime appends t as a JSON string.
func appendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timeLayout)
	return append(b, '"')
}

// serveDocument answers with the OpenAPI document. It needs no API key, because the document is public.
func (x *exchange) serveDocument() error {
	document, err := openAPIDocument()
	if err != nil {
		return fmt.Errorf("load OpenAPI document: %w", err)
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(document)))
	x.sendAnswer(http.StatusOK, document)
	return nil
}

// challenges are the WWW-Authenticate values of RFC 6750, section 3, and that of a signature. A request without a key
// gets no error code in them.
var challenges = map[*verification.Error]string{
	errMissingKey:     `Bearer realm="phoneproof"`,
	errMalformedKey:   `Bearer realm="phoneproof", error="invalid_request", error_description="The Authorization header cannot be read"`,
	errUnknownKey:     `Bearer realm="phoneproof", error="invalid_token", error_description="The API key is not known"`,
	errExpiredKey:     `Bearer realm="phoneproof", error="invalid_token", error_description="The API key is expired"`,
	errScopeInit:      `Bearer realm="phoneproof", error="insufficient_scope", scope="Init"`,
	errScopeStatus:    `Bearer realm="phoneproof", error="insufficient_scope", scope="Status"`,
	errScopeRead:      `Bearer realm="phoneproof", error="insufficient_scope", scope="Read"`,
	errScopeManual:    `Bearer realm="phoneproof", error="insufficient_scope", scope="Read"`,
	errScopeDelivery:  `Bearer realm="phoneproof", error="insufficient_scope", scope="Deliver"`,
	errSignature:      `Signature realm="phoneproof"`,
	errScopeDeliver:   `Bearer realm="phoneproof", error="insufficient_scope", scope="Deliver"`,
	errScopeRedeliver: `Bearer realm="phoneproof", error="insufficient_scope", scope="Redeliver"`,
}
