package boundedhttp

import (
	"errors"
	"io"
)

// chunkedBody is a body in chunks, whose end only its reader sees.
type chunkedBody struct {
	io.ReadCloser

	conn *conn
}

// Read notes the end.
func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.conn.pool.finishBody(b.conn)
	}
	return n, err //nolint:wrapcheck // an io.Reader's
}
