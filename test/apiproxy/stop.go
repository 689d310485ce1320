package apiproxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
)

// Stop is an order to hold one write and end its connection: before the write reaches the API server, or after the API server has answered
// and before the client learns that.
type Stop struct {
	// Method, and Marks, each a part of the path or of the body, choose the write.
	Method string
	Marks  [][]byte
	// After reports whether the API server gets the write.
	After bool
	// Do is called while the write, or its answer, is held, with the client's name.
	Do func(client string)

	once sync.Once
}

// StopWrite orders a stop, in place of the one before; nil withdraws it. It happens once.
func (p *Proxy) StopWrite(s *Stop) {
	if s == nil {
		p.AnswerWith(nil)
		return
	}
	p.AnswerWith(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != s.Method || !p.isAboutResource(r) {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for _, mark := range s.Marks {
			if !bytes.Contains(append([]byte(r.URL.Path), body...), mark) {
				return false
			}
		}
		stopped := false
		s.once.Do(func() {
			stopped = true
			if s.After {
				p.pass.ServeHTTP(httptest.NewRecorder(), r)
			}
			s.Do(p.identify(r.RemoteAddr))
		})
		if stopped {
			abortCall(nil, r, nil)
		}
		return false
	})
}
