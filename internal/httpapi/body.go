package httpapi

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
)

// requestBody is the body of a request, which remembers whether it was read to its end.
type requestBody struct {
	io.ReadCloser

	ended bool
}

// Read notes the end.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
	}
	return n, err
}

// readBody reads the whole body, at most maxBodyBytes, into buffer. What is not to be read is refused by its headers
// first, so that a client which waits for "100 Continue" sends nothing.
func (x *exchange) readBody(buffer []byte) ([]byte, error) {
	h := x.r.Header
	if encodings := h["Content-Encoding"]; len(encodings) > 1 || (len(encodings) == 1 && !strings.EqualFold(encodings[0], "identity")) {
		return nil, errContentEncoding
	}
	if types := h["Content-Type"]; len(types) != 1 || !isJSON(types[0]) {
		return nil, errMediaType
	}
	if x.r.ContentLength > maxBodyBytes {
		return nil, errBodyTooLarge
	}
	return readAll(http.MaxBytesReader(x.w, &x.body, maxBodyBytes), buffer)
}

// readAll is io.ReadAll into a buffer that holds the largest body.
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

// isJSON tells whether a Content-Type is JSON in UTF-8. The two usual spellings cost nothing.
func isJSON(contentType string) bool {
	if contentType == "application/json" || contentType == "application/json; charset=utf-8" {
		return true
	}
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return len(params) == 0 || (len(params) == 1 && ok && strings.EqualFold(charset, "utf-8"))
}
