package whatsapp

import (
	"errors"
	"io"
	"net/http"

	"golang.org/x/sync/semaphore"
)

var (
	errBodyTooLarge = errors.New("the body is larger than Meta's are")
	errBodyCut      = errors.New("the body ended before its announced length")
	errBusy         = errors.New("too many large bodies at once")
)

// bodies reads the bodies of requests that nobody has authenticated yet.
type bodies struct {
	shared *semaphore.Weighted
}

func newBodies() bodies { return bodies{shared: semaphore.NewWeighted(sharedBodyBytes)} }

// read returns the body, and a function that must be called when it is no longer used.
func (b bodies) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > maxBodyBytes {
		return nil, release, errBodyTooLarge
	}
	most := int64(maxBodyBytes)
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	// A body beyond the limit has net/http close the connection too, so that nobody sends the rest.
	limited := http.MaxBytesReader(w, r.Body, maxBodyBytes)
	head := make([]byte, min(most, freeBodyBytes))
	n, err := io.ReadFull(limited, head)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return complete(head[:n], r)
	case err != nil:
		return nil, release, err
	case most <= freeBodyBytes:
		return complete(head, r)
	}

	if !b.shared.TryAcquire(most) {
		return nil, release, errBusy
	}
	release = func() { b.shared.Release(most) }
	body, err = readRest(limited, head, most)
	if err != nil {
		return nil, release, err
	}
	body, _, err = complete(body, r)
	return body, release, err
}

// readRest reads what follows head. It grows as bytes arrive: a length that was announced only costs nothing.
func readRest(from io.Reader, head []byte, most int64) ([]byte, error) {
	body := head
	for {
		if len(body) == cap(body) {
			grown := make([]byte, len(body), min(2*int64(len(body)), most+1))
			copy(grown, body)
			body = grown
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.As(err, &tooLarge):
			return nil, errBodyTooLarge
		case err != nil:
			return nil, err
		}
	}
}

// complete refuses a body that is shorter than was announced.
func complete(body []byte, r *http.Request) ([]byte, func(), error) {
	if r.ContentLength >= 0 && int64(len(body)) != r.ContentLength {
		return nil, func() {}, errBodyCut
	}
	return body, func() {}, nil
}
