package apiproxy

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	// maxQueued is the largest number of queued events of a watch; the API server ends the watch of a slower client.
	maxQueued = 1 << 16
	// repeatPace is the pause between two old states, so that a client keeps each for a while.
	repeatPace = 5 * time.Millisecond
)

// watches holds the open watches of informers, and the faults that they meet.
type watches struct {
	mu       sync.Mutex
	lag      time.Duration
	back     uint64 // in revisions
	changed  chan struct{}
	streams  map[*stream]bool
	late     int
	repeated int
}

func newWatches() watches {
	return watches{changed: make(chan struct{}), streams: map[*stream]bool{}}
}

// LagWatches delays all events to informers; zero ends that.
func (p *Proxy) LagWatches(lag time.Duration) {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	p.watches.lag = lag
	close(p.watches.changed)
	p.watches.changed = make(chan struct{})
}

// RepeatWatches ends the watches of informers, and makes their next ones begin that many revisions before the last ones ended,
// or as many as the API server still has: informers receive states again that they had, object by object, before new ones.
// Zero ends that.
func (p *Proxy) RepeatWatches(revisions uint64) {
	p.watches.mu.Lock()
	p.watches.back = revisions
	p.watches.mu.Unlock()
	if revisions > 0 {
		p.watches.endAll()
	}
}

// Late returns how many events were delivered late so far, to all informers.
func (p *Proxy) Late() int {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	return p.watches.late
}

// Repeated returns how many old states were delivered again so far, to all informers.
func (p *Proxy) Repeated() int {
	p.watches.mu.Lock()
	defer p.watches.mu.Unlock()
	return p.watches.repeated
}

// endAll ends the watches of informers gracefully, as the API server does after some minutes.
func (w *watches) endAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.streams {
		s.end()
	}
}

func (w *watches) currentLag() (time.Duration, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lag, w.changed
}

func (w *watches) addStream(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[s] = true
}

func (w *watches) removeStream(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, s)
}

func (w *watches) countEvents(late, repeated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late += late
	w.repeated += repeated
}

// rewound describes a watch that begins earlier than its client requested.
type rewound struct {
	known uint64 // the revision that the client had reached
	back  uint64 // how many revisions before it the watch begins
}

type rewoundKey struct{}

// rewindWatch begins an informer's watch earlier than requested, if old states are to be repeated. A watch that requests the
// present, by initial events, is left alone.
func (p *Proxy) rewindWatch(r *httputil.ProxyRequest) {
	p.watches.mu.Lock()
	back := p.watches.back
	p.watches.mu.Unlock()
	if back == 0 || !p.isInformerWatch(r.In) {
		return
	}
	query := r.Out.URL.Query()
	known, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil || known < 2 || query.Get("sendInitialEvents") != "" {
		return
	}
	r.Out = beginAt(r.Out, rewound{known: known, back: min(back, known-1)})
}

// beginAt returns the request of a watch that begins where it is rewound to.
func beginAt(r *http.Request, to rewound) *http.Request {
	r = r.Clone(context.WithValue(r.Context(), rewoundKey{}, to))
	query := r.URL.Query()
	query.Set("resourceVersion", strconv.FormatUint(to.known-to.back, 10))
	r.URL.RawQuery = query.Encode()
	return r
}

// wrapWatch replaces the body of an informer's watch with a stream.
func (p *Proxy) wrapWatch(response *http.Response) error {
	if response.StatusCode != http.StatusOK || !p.isInformerWatch(response.Request) {
		return nil
	}
	to, _ := response.Request.Context().Value(rewoundKey{}).(rewound)
	s := &stream{
		by: &p.watches, request: response.Request, send: p.transport.RoundTrip, body: response.Body, rewound: to,
		events: make(chan event, maxQueued), ended: make(chan struct{}),
	}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	p.watches.addStream(s)
	go s.readEvents() // ends with the body
	response.Body = s
	return nil
}

// event is a line of a watch.
type event struct {
	line []byte
	at   time.Time
	// old reports whether the client received it before.
	old bool
}

// stream is the body of an informer's watch.
type stream struct {
	by      *watches
	request *http.Request
	send    func(*http.Request) (*http.Response, error)
	body    io.ReadCloser
	rewound rewound
	events  chan event
	err     error // why events ended; read it only after that
	ended   chan struct{}
	end     func()
	rest    []byte
}

// readEvents reads the events of the API server as they arrive.
func (s *stream) readEvents() {
	defer close(s.events)
	body := s.body
	defer func() { _ = body.Close() }()
	from := json.NewDecoder(body)
	for {
		var line json.RawMessage // complete with its last brace: the API server may send the end of the line with the next event
		err := from.Decode(&line)
		if h := s.parseHeader(line); h.isExpired() && s.rewound.back > 0 {
			_ = body.Close()
			if body, s.err = s.rewindLess(); s.err != nil {
				body = http.NoBody
				return
			}
			from = json.NewDecoder(body)
			continue
		} else if len(line) > 0 {
			select {
			case s.events <- event{line: append(line, '\n'), at: time.Now(), old: h.isKnownAt(s.rewound.known)}:
			case <-s.ended:
				s.err = io.EOF
				return
			}
		}
		if err != nil {
			s.err = err
			return
		}
	}
}

// rewindLess restarts the watch half as far back: the API server keeps no states from before its own start.
func (s *stream) rewindLess() (io.ReadCloser, error) {
	s.rewound.back /= 2
	response, err := s.send(beginAt(s.request, s.rewound))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(io.ErrUnexpectedEOF, response.Body.Close())
	}
	return response.Body, nil
}

// header holds the fields of an event that are used.
type header struct {
	Type   string `json:"type"`
	Object struct {
		Code     int `json:"code"`
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"object"`
}

// parseHeader parses a line of a rewound watch; lines of other watches are forwarded without parsing.
func (s *stream) parseHeader(line []byte) (h header) {
	if s.rewound.known == 0 || json.Unmarshal(line, &h) != nil {
		return header{}
	}
	return h
}

// isExpired reports whether the API server no longer has the states from which the watch was to begin.
func (h header) isExpired() bool {
	return h.Type == string(watch.Error) && h.Object.Code == http.StatusGone
}

// isKnownAt reports whether a client that had reached a revision already has the event.
func (h header) isKnownAt(known uint64) bool {
	revision, err := strconv.ParseUint(h.Object.Metadata.ResourceVersion, 10, 64)
	return err == nil && h.Type != string(watch.Bookmark) && revision <= known
}

// Read returns the next events, when they are due.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		select {
		case <-s.ended:
			return 0, io.EOF
		case e, more := <-s.events:
			if !more {
				return 0, s.err
			}
			if !s.awaitEvent(e) {
				return 0, io.EOF
			}
			s.rest = e.line
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// awaitEvent waits until an event is due, and returns false if the stream ends before that.
func (s *stream) awaitEvent(e event) bool {
	if e.old {
		s.by.countEvents(0, 1)
		return s.waitFor(repeatPace, nil)
	}
	late := 0
	for {
		lag, changed := s.by.currentLag()
		left := time.Until(e.at.Add(lag))
		if left <= 0 {
			s.by.countEvents(late, 0)
			return true
		}
		late = 1
		if !s.waitFor(left, changed) {
			return false
		}
	}
}

// waitFor waits that long, or for a change, and returns false if the stream ends before that.
func (s *stream) waitFor(d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-s.ended:
		return false
	}
	return true
}

// Close ends the stream and the API server's watch.
func (s *stream) Close() error {
	s.end()
	s.by.removeStream(s)
	return s.body.Close()
}
