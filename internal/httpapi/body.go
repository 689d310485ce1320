package httpapi

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// requestBody is the body of a request. It records whether it was read to its end.
type requestBody struct {
	io.ReadCloser

	ended bool
}

// Read records the end of the body.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
	}
	return n, err
}

// bodies pools the buffers that bodies are read into. One byte more than the limit shows that a body is too large.
var bodies = sync.Pool{New: func() any { return new([maxBodyBytes + 1]byte) }}

// readBodyAs reads and decodes the body. What decode returns must hold no part of its argument.
func readBodyAs[T any](x *exchange, decode func([]byte) (T, error)) (T, error) {
	buffer := bodies.Get().(*[maxBodyBytes + 1]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer func() {
		clear(buffer[:]) // It held a phone number or a code, and the client may have sent anything.
		bodies.Put(buffer)
	}()
	data, err := x.readBody(buffer[:])
	if err != nil {
		var none T
		return none, err
	}
	return decode(data)
}

// readBody reads the whole body, at most maxBodyBytes, into buffer. It checks the headers first, so that a client that
// waits for "100 Continue" does not send a body that would be refused.
func (x *exchange) readBody(buffer []byte) ([]byte, error) {
	if err := x.checkBodyHeaders(maxBodyBytes, errBodyTooLarge); err != nil {
		return nil, err
	}
	return readAll(http.MaxBytesReader(x.w, &x.body, maxBodyBytes), buffer)
}

// checkBodyHeaders returns an error for a body that is not plain JSON, and tooLarge for one that is announced as longer than most.
func (x *exchange) checkBodyHeaders(most int64, tooLarge error) error {
	h := x.r.Header
	if encodings := h["Content-Encoding"]; len(encodings) > 1 || (len(encodings) == 1 && !strings.EqualFold(encodings[0], "identity")) {
		return errContentEncoding
	}
	if types := h["Content-Type"]; len(types) != 1 || !isJSON(types[0]) {
		return errMediaType
	}
	if x.r.ContentLength > most {
		return tooLarge
	}
	return nil
}

// readAll reads body into buffer, which has room for one byte more than the largest allowed body.
func readAll(body io.Reader, buffer []byte) ([]byte, error) {
	n := 0
	for n < len(buffer) {
		read, err := body.Read(buffer[n:])
		n += read
		if errors.Is(err, io.EOF) {
			return buffer[:n], nil
		}
		if err != nil {
			return nil, classifyBodyError(err)
		}
	}
	return nil, errBodyTooLarge
}

// classifyBodyError returns the error to answer if reading a body failed with err.
func classifyBodyError(err error) error {
	var (
		tooLarge *http.MaxBytesError
		network  net.Error
	)
	switch {
	case errors.As(err, &tooLarge):
		return errBodyTooLarge
	case errors.As(err, &network) && network.Timeout():
		return errBodyTimeout
	default:
		return errIncompleteBody
	}
}

// charsetParameter matches the name of a charset in a Content-Type without its quotedStrings. mime.ParseMediaType accepts one that is
// repeated, and ignores one whose extended form (RFC 2231) it cannot read.
var (
	charsetParameter = regexp.MustCompile(`(?i);\s*charset[*0-9]*\s*=`)
	quotedStrings    = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// isJSON reports whether a Content-Type is JSON in UTF-8; other parameters mean nothing. The two usual spellings are compared
// without allocations.
func isJSON(contentType string) bool {
	if contentType == "application/json" || contentType == "application/json; charset=utf-8" {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return false
	}
	switch len(charsetParameter.FindAllString(quotedStrings.ReplaceAllString(contentType, ""), -1)) {
	case 0:
		return true
	case 1:
		return strings.EqualFold(params["charset"], "utf-8") || strings.EqualFold(params["charset"], "utf8")
	default:
		return false
	}
}
