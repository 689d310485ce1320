package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answerTimeout is how long a connection waits for an answer; after it a run fails.
const answerTimeout = time.Minute

// Conn is a connection with as much HTTP/1.1 as a measurement needs. It costs next to nothing, so that servers are
// compared and not their client. It is for one goroutine.
type Conn struct {
	conn   net.Conn
	reader *bufio.Reader
	body   []byte
}

// Dial connects to a server.
func Dial(ctx context.Context, address string) (*Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, reader: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Request renders a request that can be sent any number of times.
func Request(method, path string, header http.Header, body []byte) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	for name, values := range header {
		for _, value := range values {
			fmt.Fprintf(&text, "%s: %s\r\n", name, value)
		}
	}
	fmt.Fprintf(&text, "Content-Length: %d\r\n\r\n", len(body))
	return append([]byte(text.String()), body...)
}

// Do sends a rendered request and returns the status and the body of its answer. The body is valid until the next call.
func (c *Conn) Do(request []byte) (status int, body []byte, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, err
	}
	status, length, err := c.readHead()
	if err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	if _, err := io.ReadFull(c.reader, c.body); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return status, c.body, nil
}

// readHead reads the status and the header of an answer, and returns the length of its body.
func (c *Conn) readHead() (status, length int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < len("HTTP/1.1 200") || string(line[:9]) != "HTTP/1.1 " {
		return 0, 0, errors.New("answer is not HTTP/1.1")
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, err
	}
	length = -1
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return 0, 0, err
		}
		if len(line) <= len("\r\n") {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		if strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return 0, 0, err
			}
		}
	}
	switch {
	case status == http.StatusNoContent:
		return status, 0, nil
	case length < 0:
		return 0, 0, errors.New("answer has no Content-Length")
	}
	return status, length, nil
}

// Expect returns clients with one connection each, which send what request returns and accept only status 200.
func Expect(address string, request func(Turn) ([]byte, error)) Client {
	return func(ctx context.Context) (Call, func() error, error) {
		conn, err := Dial(ctx, address)
		if err != nil {
			return nil, nil, err
		}
		return func(_ context.Context, turn Turn) error {
			rendered, err := request(turn)
			if err != nil {
				return err
			}
			status, body, err := conn.Do(rendered)
			if err == nil && status != http.StatusOK {
				err = &StatusError{status, string(body)}
			}
			return err
		}, conn.Close, nil
	}
}

// StatusError is an answer other than 200.
type StatusError struct {
	Status int
	Body   string
}

// Error returns the status and the body.
func (e *StatusError) Error() string { return fmt.Sprintf("the answer is %d: %s", e.Status, e.Body) }

// patience is the number of retries of a patient client, and pause the time before each.
const (
	patience = 60
	pause    = 250 * time.Millisecond
)

// Patient returns clients that retry a request that was answered 503. It is for preparing a measurement.
func Patient(client Client) Client {
	return func(ctx context.Context) (Call, func() error, error) {
		call, end, err := client(ctx)
		return func(ctx context.Context, turn Turn) error {
			for tries := 0; ; tries++ {
				err := call(ctx, turn)
				refused, ok := errors.AsType[*StatusError](err)
				if !ok || refused.Status != http.StatusServiceUnavailable || tries == patience {
					return err
				}
				again := time.NewTimer(pause)
				select {
				case <-ctx.Done():
					again.Stop()
					return err
				case <-again.C:
				}
			}
		}, end, err
	}
}
