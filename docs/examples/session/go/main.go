// Command go is a website whose visitors verify a phone number at the level Session. It uses net/http alone.
//
// The id of a request stays in the session that began it. A code that a browser brings is redeemed for that request, and for no other.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// site is the website. Its sessions are in memory.
type site struct {
	origin   string // of the website
	api, key string // of PhoneProof

	mu       sync.Mutex
	sessions map[string]session
}

// session is what the website knows of a browser.
type session struct {
	request     string // requestId of init; it is in no form and comes from no URL
	typed, page string // the number that is to be verified, and where
	number      string // once it is verified
}

// start begins a verification in a new session, whose visitor sees the whole number once more beside the way to the page of PhoneProof.
func (s *site) start(w http.ResponseWriter, r *http.Request) {
	number := r.PostFormValue("number")
	begun, err := s.call(r.Context(), http.MethodPost, "init", map[string]string{
		"phoneNumber": number, "assurance": "SESSION", "purpose": "sign-in", "returnURL": s.origin + "/return",
	})
	if err != nil || begun.RequestID == "" {
		showMessage(w, http.StatusBadRequest, begun.chooseText())
		return
	}
	s.setSession(w, rand.Text(), session{request: begun.RequestID, typed: number, page: begun.PageURL})
	http.Redirect(w, r, "/me", http.StatusSeeOther)
}

// comeBack takes the code that the page of PhoneProof brings. It does not count in a browser whose session did not begin that request.
func (s *site) comeBack(w http.ResponseWriter, r *http.Request) {
	id, own := s.sessionOf(r)
	if own.request == "" || own.request != r.FormValue("requestId") || r.FormValue("code") == "" {
		http.Redirect(w, r, "/me", http.StatusSeeOther)
		return
	}
	s.redeem(w, r, id, own)
}

// digits takes the six digits of the chat, or the eight of a code that was sent to the number.
func (s *site) digits(w http.ResponseWriter, r *http.Request) {
	id, own := s.sessionOf(r)
	if own.request == "" {
		http.Redirect(w, r, "/me", http.StatusSeeOther)
		return
	}
	s.redeem(w, r, id, own)
}

// redeem confirms the request of a session by the code in a form or a query.
func (s *site) redeem(w http.ResponseWriter, r *http.Request, id string, own session) {
	result, err := s.call(r.Context(), http.MethodPost, "confirm", map[string]string{"requestId": own.request, "code": r.FormValue("code")})
	if err == nil && result.Error.Code == "already_confirmed" { // by this session, whose answer was lost: no other one knows the request
		result, err = s.call(r.Context(), http.MethodGet, "status?id="+url.QueryEscape(own.request), nil)
	}
	switch {
	case err != nil:
		showMessage(w, http.StatusBadGateway, "Try again.")
	case result.Status == "VERIFIED" && result.Assurance == "session":
		s.setSession(w, id, session{request: own.request, number: result.PhoneNumber})
		http.Redirect(w, r, "/me", http.StatusSeeOther)
	default:
		showMessage(w, http.StatusUnprocessableEntity, result.chooseText())
	}
}

// ownForms refuses what other sites have a browser send. Browsers name the site in each POST.
func (s *site) ownForms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Origin") != s.origin {
			showMessage(w, http.StatusForbidden, "Send this form from "+s.origin+".")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// me shows who is verified, or which number is to be, beside the link to its page: that one shows two digits.
func (s *site) me(w http.ResponseWriter, r *http.Request) {
	_, own := s.sessionOf(r)
	switch {
	case own.number != "":
		showMessage(w, http.StatusOK, "Verified: "+own.number)
	case own.page != "":
		way := `<p><a href="` + html.EscapeString(own.page) + `">Verify it</a></p>`
		showPage(w, http.StatusUnauthorized, "Not verified. Your number: "+own.typed, way)
	default:
		showMessage(w, http.StatusUnauthorized, "Not verified.")
	}
}

const forms = `<form method="post" action="/start"><label>Phone number <input name="number" type="tel"></label>
<button>Verify</button></form>
<form method="post" action="/digits"><label>Six or eight digits
<input name="code" inputmode="numeric" autocomplete="one-time-code"></label> <button>Confirm</button></form>`

func showMessage(w http.ResponseWriter, status int, message string) { showPage(w, status, message, "") }

// showPage shows more below the message, which is HTML.
func showPage(w http.ResponseWriter, status int, message, more string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Referrer-Policy", "strict-origin") // the address may hold a code; with no-referrer Origin would be null
	w.WriteHeader(status)
	fmt.Fprintf(w, `<!doctype html><title>Shop</title><p>%s</p>%s%s`, html.EscapeString(message), more, forms)
}

// answer has the fields of all answers that are used.
type answer struct {
	RequestID   string `json:"requestId"`
	PageURL     string `json:"pageURL"`
	Status      string `json:"status"`
	Assurance   string `json:"assurance"`
	PhoneNumber string `json:"phoneNumber"`
	Error       struct {
		Code   string `json:"code"`
		Reason string `json:"reason"`
	} `json:"error"`
}

// texts are what visitors read, by the reason or the code of an error. Its message is for developers.
var texts = map[string]string{
	"no_country_code":      "Begin with the country code, such as +49.",
	"unknown_country_code": "Begin with the country code, such as +49.",
	"invalid_phone_number": "This number cannot be verified. Is it complete?",
	"not_proven":           "Send the message from your phone first.",
	"invalid_code":         "Enter the six digits from the chat, or the eight of a code that was sent.",
	"wrong_code":           "These digits are wrong.",
	"request_expired":      "This has ended. Begin again.",
}

func (a answer) chooseText() string {
	return cmp.Or(texts[a.Error.Reason], texts[a.Error.Code], "Try again later.")
}

// call calls the API. An error means that it is not known what became of the call.
func (s *site) call(ctx context.Context, method, operation string, body map[string]string) (answer, error) {
	var result answer
	content, err := json.Marshal(body)
	if err != nil {
		return result, fmt.Errorf("encode body: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.api+"/api/verify/"+operation, bytes.NewReader(content))
	if err != nil {
		return result, fmt.Errorf("create call: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return result, fmt.Errorf("call PhoneProof: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
		return result, fmt.Errorf("decode answer: %w", err)
	}
	return result, nil
}

// cookieName has the prefix by which no other host can set the cookie, where the website has https.
func (s *site) cookieName() string {
	if s.hasTLS() {
		return "__Host-session"
	}
	return "session"
}

func (s *site) hasTLS() bool { return strings.HasPrefix(s.origin, "https:") }

func (s *site) setSession(w http.ResponseWriter, id string, own session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[id] = own
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever the website has https
		Name: s.cookieName(), Value: id, Path: "/", HttpOnly: true, Secure: s.hasTLS(), SameSite: http.SameSiteLaxMode,
	})
}

// sessionOf returns the session of a browser, and its id; an empty one for a browser that has none.
func (s *site) sessionOf(r *http.Request) (string, session) {
	cookie, err := r.Cookie(s.cookieName())
	if err != nil {
		return "", session{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cookie.Value, s.sessions[cookie.Value]
}

func main() {
	address := cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8000")
	s := &site{
		origin: cmp.Or(os.Getenv("ORIGIN"), "http://"+address), sessions: map[string]session{},
		api: cmp.Or(os.Getenv("PHONEPROOF_URL"), "http://127.0.0.1:8080"), key: os.Getenv("PHONEPROOF_KEY"),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /start", s.start)
	mux.HandleFunc("GET /return", s.comeBack)
	mux.HandleFunc("POST /digits", s.digits)
	mux.HandleFunc("GET /me", s.me)
	mux.Handle("GET /{$}", http.RedirectHandler("/me", http.StatusSeeOther))
	server := &http.Server{Addr: address, Handler: s.ownForms(mux), ReadHeaderTimeout: 10 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
