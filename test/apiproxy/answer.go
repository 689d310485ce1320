package apiproxy

import "net/http"

// AnswerWith shows all calls to answer, which handles those for which it returns true; nil forwards everything.
func (p *Proxy) AnswerWith(answer func(w http.ResponseWriter, r *http.Request) bool) {
	p.answer.Store(&answer)
}

// answerCall has a call answered by the proxy's user, or serves it.
func (p *Proxy) answerCall(w http.ResponseWriter, r *http.Request) {
	if answer := p.answer.Load(); answer == nil || *answer == nil || !(*answer)(w, r) {
		p.serveCall(w, r)
	}
}
