package boundedhttp

import (
	"errors"
	"io"
)

// chunkedBody is a body in chunks, whose end is known only when it is read.
type chunkedBody struct {
	io.ReadCloser

	conn *conn
}

// Read records the end of the body.
func (b *chunkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.conn.pool.finishBody(b.conn)
	}
	return n, err
}
