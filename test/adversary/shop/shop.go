// Package shop is a client backend as the documentation asks for one: it keeps the id of a request in the session that began it,
// and redeems a code only for that session.
//
// The invariant: what it takes for verified follows from the answers of the API to calls for the request of the same session. It
// believes nothing that comes by a URL.
package shop

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

// Host is its host, and ReturnURL where pages lead back to.
const (
	Host      = "shop.example"
	URL       = "https://" + Host
	ReturnURL = URL + "/return"
	// Purpose is the name of the purpose that it sends, and Browser the browser.
	Purpose = "sign-in"
	Browser = "CHROME/WINDOWS"
)

// Options configure a shop. All are required.
type Options struct {
	// Level is SESSION, or POSSESSION for a client that takes a message from the number for enough.
	Level string
	// API returns the host:port of a replica, another one each time.
	API func() string
	// Key returns one of the shop's API keys, another one each time.
	Key func() string
	// Record writes to the ledger.
	Record func(ledger.Record)
}

// Shop is the client backend. It is safe for concurrent use.
type Shop struct {
	Options

	mux http.ServeMux

	mu       sync.Mutex
	sessions map[string]*session
	inits    int
}

// session is what it knows of a browser.
type session struct {
	id string

	mu       sync.Mutex
	request  string
	verified bool
}

// New returns a shop.
func New(o Options) *Shop {
	s := &Shop{Options: o, sessions: map[string]*session{}}
	s.mux.HandleFunc("POST /start", s.serveStart)
	s.mux.HandleFunc("GET /return", s.serveReturn)
	s.mux.HandleFunc("POST /digits", s.serveDigits)
	s.mux.HandleFunc("GET /me", s.serveMember)
	return s
}

// ServeHTTP implements http.Handler.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

const cookieName = "__Host-session"

// sessionOf returns the session of a browser; nil if it has none.
func (s *Shop) sessionOf(r *http.Request) *session {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[cookie.Value]
}

// serveStart begins a verification in the session of a browser.
func (s *Shop) serveStart(w http.ResponseWriter, r *http.Request) {
	owner := s.sessionOf(r)
	if owner == nil {
		owner = &session{id: rand.Text()}
		s.mu.Lock()
		secret := rand.Text()
		s.sessions[secret] = owner
		s.mu.Unlock()
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: secret, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
	}
	body := map[string]any{
		"phoneNumber": r.FormValue("number"), "method": r.FormValue("method"), "returnURL": ReturnURL,
		"purpose": Purpose, "browser": Browser, "locale": "en",
	}
	s.mu.Lock()
	s.inits++
	if s.Level == "SESSION" && s.inits%2 == 0 { // the others get it from the project
		body["assurance"] = s.Level
	}
	s.mu.Unlock()
	answer, err := s.call(r.Context(), http.MethodPost, "/api/verify/init", body)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err != nil || answer.status != http.StatusOK {
		w.WriteHeader(max(answer.status, http.StatusBadRequest))
		fmt.Fprintf(w, `<main data-session="%s" data-error="%s" data-limit="%s"></main>`, owner.id, html.EscapeString(answer.Error.Code),
			html.EscapeString(answer.limit))
		return
	}
	owner.mu.Lock()
	owner.request = answer.RequestID
	owner.mu.Unlock()
	fmt.Fprintf(w, `<main data-session="%s" data-request="%s"><a id="page" href="%s">Continue</a>`+
		`<a id="messenger" href="%s">Open</a>%s</main>`, owner.id, html.EscapeString(answer.RequestID), html.EscapeString(answer.PageURL),
		html.EscapeString(answer.WaLink+answer.TgLink), digitsForm)
}

const digitsForm = `<form method="post" action="/digits"><input name="code"></form>`

// serveReturn redeems the code that a page brought, if this session began that request.
func (s *Shop) serveReturn(w http.ResponseWriter, r *http.Request) {
	owner, query := s.sessionOf(r), r.URL.Query()
	if owner == nil || owner.requestID() == "" || owner.requestID() != query.Get("requestId") || query.Get("code") == "" {
		s.show(w, "not begun here")
		return
	}
	s.show(w, s.redeem(r.Context(), owner, query.Get("code"), "return"))
}

// serveDigits redeems what its user typed.
func (s *Shop) serveDigits(w http.ResponseWriter, r *http.Request) {
	owner := s.sessionOf(r)
	if owner == nil || owner.requestID() == "" {
		s.show(w, "not begun here")
		return
	}
	s.show(w, s.redeem(r.Context(), owner, r.FormValue("code"), "digits"))
}

func (s *Shop) show(w http.ResponseWriter, outcome string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<main data-outcome="%s">%s</main>`, html.EscapeString(outcome), digitsForm)
}

func (o *session) requestID() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.request
}

// redeem confirms the request of a session, and returns what came of it.
func (s *Shop) redeem(ctx context.Context, owner *session, code, where string) string {
	if s.Level != "SESSION" {
		return "not needed"
	}
	id, asked := owner.requestID(), time.Now()
	answer, err := s.call(ctx, http.MethodPost, "/api/verify/confirm", map[string]any{"requestId": id, "code": code})
	outcome := answer.Error.Code
	switch {
	case err != nil:
		outcome = "failed"
	case answer.status == http.StatusOK:
		outcome = answer.Status
	}
	s.Record(ledger.Record{
		Kind: ledger.Redeemed, Asked: asked, Session: owner.id, Request: id, Answer: answer.status, Result: outcome,
		Assurance: answer.Assurance, Where: where, Count: answer.repeated,
	})
	if answer.status == http.StatusOK && answer.Status == "VERIFIED" {
		owner.mu.Lock()
		owner.verified = owner.verified || owner.request == id
		owner.mu.Unlock()
	}
	return outcome
}

// serveMember answers whether the user of a session is verified. It asks for the status of the session's request if it does not know.
func (s *Shop) serveMember(w http.ResponseWriter, r *http.Request) {
	owner := s.sessionOf(r)
	if owner == nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	owner.mu.Lock()
	verified, id := owner.verified, owner.request
	owner.mu.Unlock()
	if !verified && id != "" {
		answer, err := s.Status(r.Context(), id)
		verified = err == nil && answer.Status == "VERIFIED"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"session":%q,"verified":%t}`, owner.id, verified)
}

// Answer is what the API answered, as far as the shop reads it.
type Answer struct {
	status int
	limit  string
	// repeated is how often the call was repeated.
	repeated int

	RequestID string `json:"requestId"`
	PageURL   string `json:"pageURL"`
	WaLink    string `json:"waLink"`
	TgLink    string `json:"tgLink"`
	Status    string `json:"status"`
	Hint      string `json:"hint"`
	Assurance string `json:"assurance"`
	Error     struct {
		Code string `json:"code"`
	} `json:"error"`
}

// Status asks for the status of a request.
func (s *Shop) Status(ctx context.Context, id string) (Answer, error) {
	return s.call(ctx, http.MethodGet, "/api/verify/status?id="+id, nil)
}

// call calls the API, and repeats what a client repeats: a call that did not arrive, or that was answered 503.
func (s *Shop) call(ctx context.Context, method, path string, body map[string]any) (Answer, error) {
	for n := 0; ; n++ {
		answer, err := s.callOnce(ctx, method, path, body)
		answer.repeated = n
		if answer.status != 0 && answer.status != http.StatusServiceUnavailable {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("call %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Shop) callOnce(ctx context.Context, method, path string, body map[string]any) (Answer, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return Answer{}, fmt.Errorf("encode body: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.API()+path, bytes.NewReader(content))
	if err != nil {
		return Answer{}, fmt.Errorf("create request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.Key())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	answer := Answer{status: response.StatusCode, limit: limitOf(response.Header)}
	content, err = io.ReadAll(response.Body)
	if err != nil {
		return answer, fmt.Errorf("read answer: %w", err)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return answer, fmt.Errorf("decode answer: %w", err)
	}
	return answer, nil
}

// limitOf returns the name of the limit that refused a call: "phoneNumber";r=0;t=60.
func limitOf(header http.Header) string {
	name, _, _ := strings.Cut(header.Get("Ratelimit"), ";")
	return strings.Trim(name, `"`)
}
