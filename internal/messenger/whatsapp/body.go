package whatsapp

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
)

var (
	errBodyTooLarge = errors.New("body is larger than Meta's are")
	errBodyCut      = errors.New("body ended before its announced length")
	errBusy         = errors.New("too many large bodies at once")
)

// bodies reads the bodies of requests that are not authenticated yet. What is beyond freeBodyBytes of each shares
// sharedBodyBytes, reserved as bytes arrive. If that is full, the body that began first and is not complete makes room: one
// that Meta sends is complete within moments.
type bodies struct {
	mu         sync.Mutex
	reserved   int64
	incomplete *list.List // of *body, the one that began first in front
}

func newBodies() *bodies { return &bodies{incomplete: list.New()} }

// body is what was reserved for one request.
type body struct {
	all        *bodies
	controller *http.ResponseController
	began      time.Time

	// These are changed under the lock of all.
	reserved int64
	place    *list.Element // nil once it is complete or has made room
	evicted  bool
}

// readBody returns the body, and a function that must be called when it is no longer used.
func (b *bodies) readBody(w http.ResponseWriter, r *http.Request) (content []byte, release func(), err error) {
	if r.ContentLength > maxBodyBytes {
		return nil, func() {}, errBodyTooLarge
	}
	reading := b.addBody(w)
	content, err = reading.readAll(w, r)
	if err == nil && r.ContentLength >= 0 && int64(len(content)) != r.ContentLength {
		err = errBodyCut
	}
	if err != nil {
		reading.releaseBytes()
		return nil, func() {}, err
	}
	return content, reading.releaseBytes, nil
}

// ReadUnsigned reads a body whose signature is still to be checked, in the room that the bodies of webhooks share. The function must be
// called when the body is no longer used. verification.ErrNoRoom means that others take the room.
func (h *Hook) ReadUnsigned(w http.ResponseWriter, r *http.Request) (content []byte, release func(), err error) {
	content, release, err = h.bodies.readBody(w, r)
	if errors.Is(err, errBusy) {
		err = verification.ErrNoRoom
	}
	return content, release, err
}

func (b *bodies) addBody(w http.ResponseWriter) *body {
	b.mu.Lock()
	defer b.mu.Unlock()
	added := &body{all: b, controller: http.NewResponseController(w), began: time.Now()}
	added.place = b.incomplete.PushBack(added)
	return added
}

// readAll reads all of the body, into a buffer that grows as bytes arrive: a length that was only announced costs nothing.
func (b *body) readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := int64(maxBodyBytes)
	if r.ContentLength >= 0 {
		most = r.ContentLength
	}
	// A body beyond the limit has net/http close the connection too, so that the rest is not sent.
	limited := http.MaxBytesReader(w, r.Body, maxBodyBytes)
	content := make([]byte, 0, min(most+1, freeBodyBytes)) // one byte more finds the end without growing
	for {
		if len(content) == cap(content) {
			size := min(2*int64(cap(content)), most+1)
			if !b.reserveBytes(size - freeBodyBytes) {
				return nil, errBusy
			}
			content = append(make([]byte, 0, size), content...)
		}
		b.expectProgress(len(content))
		n, err := limited.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		var tooLarge *http.MaxBytesError
		switch {
		case errors.Is(err, io.EOF):
			if !b.leaveIncomplete() {
				return nil, errBusy
			}
			return content, nil
		case errors.As(err, &tooLarge):
			return nil, errBodyTooLarge
		case err != nil && b.madeRoom():
			return nil, errBusy
		case err != nil:
			return nil, fmt.Errorf("read body: %w", err)
		}
	}
}

// reserveBytes has the body hold size shared bytes in all. It reports whether there is room, made if need be.
func (b *body) reserveBytes(size int64) bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.evicted {
		return false
	}
	more := size - b.reserved
	for b.all.reserved+more > sharedBodyBytes {
		if !b.all.evictFirst(b) {
			return false
		}
	}
	b.all.reserved += more
	b.reserved = size
	return true
}

// evictFirst ends the reading of the body that began first, other than except. It reports whether there was one.
func (b *bodies) evictFirst(except *body) bool {
	for e := b.incomplete.Front(); e != nil; e = e.Next() {
		victim := e.Value.(*body) //nolint:forcetypeassert // the list holds nothing else
		if victim == except || victim.reserved == 0 {
			continue
		}
		b.incomplete.Remove(e)
		b.reserved -= victim.reserved
		victim.place, victim.reserved, victim.evicted = nil, 0, true
		victim.setReadDeadline(time.Unix(1, 0)) // its Read returns at once
		return true
	}
	return false
}

// expectProgress ends the next Read if bytes arrive more slowly than minBodyRate.
func (b *body) expectProgress(received int) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if b.evicted {
		return
	}
	wait := min(bodyGrace+time.Duration(received)*time.Second/minBodyRate, bodyTimeout)
	b.setReadDeadline(b.began.Add(wait))
}

func (b *body) setReadDeadline(at time.Time) {
	_ = b.controller.SetReadDeadline(at) // what is no connection is not slow
}

func (b *body) madeRoom() bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	return b.evicted
}

// leaveIncomplete keeps the body from making room for others. It reports whether it has not done so already: its bytes are
// then given to others, and its connection is of no more use.
func (b *body) leaveIncomplete() bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.removeFromIncomplete()
	return !b.evicted
}

// releaseBytes gives back what was reserved.
func (b *body) releaseBytes() {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.removeFromIncomplete()
	b.all.reserved -= b.reserved
	b.reserved = 0
}

// removeFromIncomplete takes the body out of the incomplete ones. The lock of all is held.
func (b *body) removeFromIncomplete() {
	if b.place != nil {
		b.all.incomplete.Remove(b.place)
		b.place = nil
	}
}
