package apiproxy

import (
	"bufio"
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
	// maxQueued is how many events of a watch wait at most; the API server ends the watch of who is slower than that.
	maxQueued = 1 << 16
	// repeatPace is between two old states, so that a client has them for a while.
	repeatPace = 5 * time.Millisecond
)

// watching is how the watches of informers are at the moment.
type watching struct {
	mu       sync.Mutex
	lag      time.Duration
	back     uint64 // in revisions
	changed  chan struct{}
	streams  map[*stream]bool
	late     int
	repeated int
}

func newWatching() watching {
	return watching{changed: make(chan struct{}), streams: map[*stream]bool{}}
}

// LagWatches has informers hear of everything that much later; zero ends that.
func (p *Proxy) LagWatches(lag time.Duration) {
	p.watching.mu.Lock()
	defer p.watching.mu.Unlock()
	p.watching.lag = lag
	close(p.watching.changed)
	p.watching.changed = make(chan struct{})
}

// RepeatWatches ends the watches of informers, and has the API server begin their next ones that many revisions earlier than
// where the last ones ended, or as many as it still knows: states come again that they knew, object by object, before what is
// new. Zero ends that.
func (p *Proxy) RepeatWatches(revisions uint64) {
	p.watching.mu.Lock()
	p.watching.back = revisions
	p.watching.mu.Unlock()
	if revisions > 0 {
		p.watching.hangUp()
	}
}

// Late returns how many events came late so far, to all informers.
func (p *Proxy) Late() int {
	p.watching.mu.Lock()
	defer p.watching.mu.Unlock()
	return p.watching.late
}

// Repeated returns how many old states came again so far, to all informers.
func (p *Proxy) Repeated() int {
	p.watching.mu.Lock()
	defer p.watching.mu.Unlock()
	return p.watching.repeated
}

// hangUp ends the watches of informers in order, as the API server does after some minutes.
func (w *watching) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.streams {
		s.end()
	}
}

func (w *watching) now() (time.Duration, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lag, w.changed
}

func (w *watching) keep(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams[s] = true
}

func (w *watching) drop(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.streams, s)
}

func (w *watching) count(late, repeated int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late += late
	w.repeated += repeated
}

// rewound is a watch that begins earlier than its client asked for.
type rewound struct {
	known uint64 // the revision that the client had reached
	back  uint64 // how many revisions before it the watch begins
}

type rewoundKey struct{}

// rewind begins an informer's watch earlier than it asks for, where old states are to come again. A watch that asks for the
// present, by initial events, gets it.
func (p *Proxy) rewind(r *httputil.ProxyRequest) {
	p.watching.mu.Lock()
	back := p.watching.back
	p.watching.mu.Unlock()
	if back == 0 || !p.informs(r.In) {
		return
	}
	query := r.Out.URL.Query()
	known, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	if err != nil || known < 2 || query.Get("sendInitialEvents") != "" {
		return
	}
	r.Out = beginAt(r.Out, rewound{known: known, back: min(back, known-1)})
}

// beginAt returns a watch that begins where it is rewound to.
func beginAt(r *http.Request, to rewound) *http.Request {
	r = r.Clone(context.WithValue(r.Context(), rewoundKey{}, to))
	query := r.URL.Query()
	query.Set("resourceVersion", strconv.FormatUint(to.known-to.back, 10))
	r.URL.RawQuery = query.Encode()
	return r
}

// wrap puts an informer's watch behind a stream.
func (p *Proxy) wrap(response *http.Response) error {
	if response.StatusCode != http.StatusOK || !p.informs(response.Request) {
		return nil
	}
	to, _ := response.Request.Context().Value(rewoundKey{}).(rewound)
	s := &stream{
		by: &p.watching, request: response.Request, send: p.transport.RoundTrip, body: response.Body, rewound: to,
		events: make(chan event, maxQueued), ended: make(chan struct{}),
	}
	s.end = sync.OnceFunc(func() { close(s.ended) })
	p.watching.keep(s)
	go s.receive() // ends with the body
	response.Body = s
	return nil
}

// event is a line of a watch.
type event struct {
	line []byte
	at   time.Time
	// old reports that the client knew of it before.
	old bool
}

// stream is the body of an informer's watch.
type stream struct {
	by      *watching
	request *http.Request
	send    func(*http.Request) (*http.Response, error)
	body    io.ReadCloser
	rewound rewound
	events  chan event
	err     error // why events ended; to read after that
	ended   chan struct{}
	end     func()
	rest    []byte
}

// receive takes the events from the API server when they come.
func (s *stream) receive() {
	defer close(s.events)
	body := s.body
	defer func() { _ = body.Close() }()
	from := bufio.NewReader(body)
	for {
		line, err := from.ReadBytes('\n')
		if told := s.read(line); told.expired() && s.rewound.back > 0 {
			_ = body.Close()
			if body, s.err = s.rewindLess(); s.err != nil {
				body = http.NoBody
				return
			}
			from.Reset(body)
			continue
		} else if len(line) > 0 {
			select {
			case s.events <- event{line: line, at: time.Now(), old: told.before(s.rewound.known)}:
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

// rewindLess begins the watch again, half as far back: the API server keeps no states from before its own start.
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

// header is what tells of an event.
type header struct {
	Type   string `json:"type"`
	Object struct {
		Code     int `json:"code"`
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	} `json:"object"`
}

// read returns what a line of a rewound watch tells; lines of others are passed on unread.
func (s *stream) read(line []byte) (h header) {
	if s.rewound.known == 0 || json.Unmarshal(line, &h) != nil {
		return header{}
	}
	return h
}

// expired reports that the API server has no states from as long ago as the watch was to begin.
func (h header) expired() bool {
	return h.Type == string(watch.Error) && h.Object.Code == http.StatusGone
}

// before reports whether a client that had reached a revision knew of the event.
func (h header) before(known uint64) bool {
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
			if !s.await(e) {
				return 0, io.EOF
			}
			s.rest = e.line
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// await returns when an event is due, or false when the stream ends before.
func (s *stream) await(e event) bool {
	if e.old {
		s.by.count(0, 1)
		return s.wait(repeatPace, nil)
	}
	late := 0
	for {
		lag, changed := s.by.now()
		left := time.Until(e.at.Add(lag))
		if left <= 0 {
			s.by.count(late, 0)
			return true
		}
		late = 1
		if !s.wait(left, changed) {
			return false
		}
	}
}

// wait waits that long, or for a change, and returns false when the stream ends before.
func (s *stream) wait(d time.Duration, changed <-chan struct{}) bool {
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
	s.by.drop(s)
	return s.body.Close()
}
