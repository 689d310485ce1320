package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// sink is a client's backend that receives events.
type sink struct {
	url    string
	server *http.Server
	ended  chan error

	mu      sync.Mutex
	open    chan struct{} // closed to answer held events; nil while none are held
	held    int
	arrived map[string]time.Time // by request: when the first answered event arrived
	last    posting
}

func startSink(ctx context.Context) (*sink, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{url: "http://" + listener.Addr().String() + "/hook", ended: make(chan error, 1), arrived: map[string]time.Time{}}
	s.server = &http.Server{Handler: http.HandlerFunc(s.handleEvent), ReadHeaderTimeout: time.Minute}
	go func() { s.ended <- s.server.Serve(listener) }() // ends with close
	return s, nil
}

func (s *sink) close() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		return ended
	}
	return err
}

// handleEvent answers at once, or when held events are released.
func (s *sink) handleEvent(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender closed the connection
	}
	if open := s.countHeld(); open != nil {
		select {
		case <-open:
		case <-r.Context().Done():
			return
		}
		at = time.Now()
	}
	id := requestID(body)
	s.mu.Lock()
	if _, again := s.arrived[id]; !again {
		s.arrived[id] = at
	}
	s.last = posting{URL: s.url, Header: r.Header, Body: body}
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (s *sink) countHeld() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		s.held++
	}
	return s.open
}

// requestID finds the id without decoding, because the receiver shares the machine with what is measured.
func requestID(body []byte) string {
	_, after, _ := bytes.Cut(body, []byte(`"requestId":"`))
	id, _, _ := bytes.Cut(after, []byte(`"`))
	return string(id)
}

// holdAnswers holds all answers until releaseAnswers.
func (s *sink) holdAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.held = make(chan struct{}), 0
}

func (s *sink) releaseAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		close(s.open)
		s.open = nil
	}
}

// heldCount returns the number of held events.
func (s *sink) heldCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// checkHanging returns an error if an event was answered.
func (s *sink) checkHanging() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) > 0 {
		return fmt.Errorf("the receiver should hang but took the events of %d requests", len(s.arrived))
	}
	return nil
}

// reset forgets all events.
func (s *sink) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = map[string]time.Time{}
}

// awaitEvents waits for the events of these requests and returns when each arrived.
func (s *sink) awaitEvents(ctx context.Context, of []started) ([]time.Time, error) {
	at := make([]time.Time, len(of))
	next := 0 // all before it have arrived
	err := waitFor(ctx, "the events", func(context.Context) (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for ; next < len(of); next++ {
			var came bool
			if at[next], came = s.arrived[of[next].ID]; !came {
				return false, nil
			}
		}
		return true, nil
	})
	return at, err
}

// lastEvent returns the last event that arrived.
func (s *sink) lastEvent() posting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
