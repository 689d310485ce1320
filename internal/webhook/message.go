package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// message is the request of one attempt. Its body checks the lease gate on every read: the header may already be sent
// by then, but no complete event leaves once the gate is shut.
type message struct {
	url     *url.URL
	header  http.Header
	body    []byte
	maySend func() bool
	refused atomic.Bool
	asked   atomic.Bool // for a client certificate, by the connection that was dialed for it
}

func (m *message) newRequest(ctx context.Context) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: m.url, Host: m.url.Host, Header: m.header,
		Body: m.newBodyReader(), ContentLength: int64(len(m.body)),
		// Called only if nothing was written, on a connection that the receiver had just closed. Bytes that may have
		// arrived are not sent again within one attempt, because the schedule would not count that.
		GetBody: func() (io.ReadCloser, error) { return m.newBodyReader(), nil },
	}
	return req.WithContext(ctx)
}

func (m *message) newBodyReader() io.ReadCloser {
	return &gatedReader{message: m, rest: bytes.NewReader(m.body)}
}

type gatedReader struct {
	message *message
	rest    *bytes.Reader
}

// Read returns ErrNotLeading instead of bytes if the gate is shut. The last byte gets its own read: HTTP/2 reads ahead
// of the receiver's flow-control window, and a receiver that opens it late must not get the end of an event after the
// gate has shut.
func (r *gatedReader) Read(p []byte) (int, error) {
	left := r.rest.Len()
	if left == 0 {
		return 0, io.EOF
	}
	if !r.message.maySend() {
		r.message.refused.Store(true)
		return 0, ErrNotLeading
	}
	return r.rest.Read(p[:min(len(p), max(left-1, 1))])
}

// Close does nothing: the bytes belong to the event.
func (r *gatedReader) Close() error { return nil }

// drainBody reads the rest of an answer so that its connection can be reused, at most maxBody bytes and for at most
// maxDrain; then cancel ends the read. Its errors are ignored because the status has decided the outcome.
func drainBody(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(maxDrain, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxBody)
	_ = body.Close()
}
