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

// sink is a client's backend that takes events.
type sink struct {
	url    string
	server *http.Server
	ended  chan error

	mu      sync.Mutex
	open    chan struct{} // closed when held events are let go; nil while none are held
	held    int
	arrived map[string]time.Time // by request, when the first event came that was answered
	last    posting
}

func startSink(ctx context.Context) (*sink, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{url: "http://" + listener.Addr().String() + "/hook", ended: make(chan error, 1), arrived: map[string]time.Time{}}
	s.server = &http.Server{Handler: http.HandlerFunc(s.take), ReadHeaderTimeout: time.Minute}
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

// take answers at once, or when held events are let go.
func (s *sink) take(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender is gone
	}
	if open := s.enter(); open != nil {
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

func (s *sink) enter() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		s.held++
	}
	return s.open
}

// requestID finds the id without decoding: the receiver shares the machine with what is measured.
func requestID(body []byte) string {
	_, after, _ := bytes.Cut(body, []byte(`"requestId":"`))
	id, _, _ := bytes.Cut(after, []byte(`"`))
	return string(id)
}

// hold keeps the answers back from now on, until release.
func (s *sink) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.held = make(chan struct{}), 0
}

func (s *sink) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		close(s.open)
		s.open = nil
	}
}

// waiting is how many events are held.
func (s *sink) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// stillHangs tells whether no event was answered.
func (s *sink) stillHangs() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrived) > 0 {
		return fmt.Errorf("the receiver was to hang and took the events of %d requests", len(s.arrived))
	}
	return nil
}

// forget begins anew.
func (s *sink) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = map[string]time.Time{}
}

// all waits for the events of these requests, and returns when each came.
func (s *sink) all(ctx context.Context, of []begun) ([]time.Time, error) {
	at := make([]time.Time, len(of))
	next := 0 // those before it came
	err := await(ctx, "the events", func(context.Context) (bool, error) {
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

// example is the last event that came.
func (s *sink) example() posting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
