package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// sink is a client's backend that receives events, and the Graph API that takes replies.
type sink struct {
	url, graph string
	server     *http.Server
	ended      chan error

	mu      sync.Mutex
	arrived map[string]time.Time // by request: when the first event arrived
}

// graphAnswer is what the Graph API answers to a reply.
const graphAnswer = `{"messaging_product":"whatsapp","contacts":[{"input":"4915112345678","wa_id":"4915112345678"}],` +
	`"messages":[{"id":"wamid.bench"}]}`

func startSink(ctx context.Context) (*sink, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	at := "http://" + listener.Addr().String()
	s := &sink{url: at + "/hook", graph: at, ended: make(chan error, 1), arrived: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/hook", s.handleEvent)
	mux.HandleFunc("/", handleReply)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
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

func (s *sink) handleEvent(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender closed the connection
	}
	id := requestID(body)
	s.mu.Lock()
	if _, again := s.arrived[id]; !again {
		s.arrived[id] = at
	}
	s.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func handleReply(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // an error does not matter: the connection is kept
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, graphAnswer)
}

// requestID finds the id without decoding, because the receiver shares the machine with what is measured.
func requestID(body []byte) string {
	_, after, _ := bytes.Cut(body, []byte(`"requestId":"`))
	id, _, _ := bytes.Cut(after, []byte(`"`))
	return string(id)
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
