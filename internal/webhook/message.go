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

// message is the request of one attempt. Its body asks the lease gate whenever the connection wants bytes. The header may
// be out by then, but no whole event leaves once the gate has shut.
type message struct {
	url     *url.URL
	header  http.Header
	body    []byte
	maySend func() bool
	refused atomic.Bool
}

func (m *message) newRequest(ctx context.Context) *http.Request {
	req := &http.Request{
		Method: http.MethodPost, URL: m.url, Host: m.url.Host, Header: m.header,
		Body: m.newBodyReader(), ContentLength: int64(len(m.body)),
		// Asked for only if nothing was written, to a connection that the receiver had just closed. What may have
		// arrived is not sent again within one attempt: attempts that are not counted would be none of the schedule's.
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

// Read returns ErrNotLeading instead of bytes if the gate is shut. The last byte has a read of its own: HTTP/2 reads before
// the receiver's window has room for what it read, and a receiver that opens his window late gets the end of the event
// only if the gate is open still.
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

// Close does nothing: the bytes are the event's.
func (r *gatedReader) Close() error { return nil }

// drainBody reads the rest of an answer so that its connection can be used again, but no more than maxBody and no longer than
// maxDrain; then cancel ends the read. What the body holds and how it ends changes nothing: the status has decided.
func drainBody(body io.ReadCloser, cancel context.CancelFunc) {
	timer := time.AfterFunc(maxDrain, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxBody)
	_ = body.Close()
}
