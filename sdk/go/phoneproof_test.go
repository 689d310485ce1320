package phoneproof

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": day, "1.5": day, "soon": day, "99999": day, "99999999999": day,
		"Thu, 01 Jan 1970 00:00:00 GMT": 0, "Sat, 02 Jan 2106 15:04:05 GMT": day,
	} {
		if got := parseRetryAfter(value); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestChooseHold(t *testing.T) {
	if got := chooseHold(t.Context()); got != longestHold {
		t.Errorf("without a deadline: got %s", got)
	}
	for left, want := range map[time.Duration]time.Duration{
		time.Hour: longestHold, 5900 * time.Millisecond: 5 * time.Second, 900 * time.Millisecond: 0, -time.Second: 0,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		if got := chooseHold(ctx); got != want {
			t.Errorf("%s before the deadline: got %s, want %s", left, got, want)
		}
		cancel()
	}
}

func TestReceiver_printsNoSecret(t *testing.T) {
	r := &Receiver{Secrets: []string{"secret-0123456789"}}
	if text := fmt.Sprintf("%v %+v %#v %s %v", r, r, r, r, *r); strings.Contains(text, "0123") {
		t.Error(text)
	}
}

func TestStart_refusesAKeyThatIsNoHeader(t *testing.T) {
	client, _ := newScripted(t)
	_, err := client.Start(t.Context(), StartParams{PhoneNumber: "+4915112345678", IdempotencyKey: "order 1\n"})
	expectCode(t, err, CodeInvalidArgument)
}

func TestNew_ignoresATimeoutOfTheHTTPClient(t *testing.T) {
	client, answers := newScripted(t, WithHTTPClient(&http.Client{Timeout: time.Nanosecond}))
	answers <- verified
	if _, err := client.Status(t.Context(), "vr1"); err != nil {
		t.Fatal(err)
	}
}

func TestList_beginsAnew(t *testing.T) {
	var cursors []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cursors = append(cursors, r.URL.Query().Get("cursor"))
		_, _ = w.Write([]byte(map[string]string{"": `{"requests":[],"nextCursor":"two"}`, "two": `{"requests":[]}`}[cursors[len(cursors)-1]]))
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	requests := client.List(t.Context(), ListParams{})
	for range 2 {
		for _, err := range requests {
			t.Error(err)
		}
	}
	if want := []string{"", "two", "", "two"}; !slices.Equal(cursors, want) {
		t.Errorf("got %q, want %q", cursors, want)
	}
}

const (
	begun    = `{"requestId":"vr1","expectedText":"text","expiresIn":"600s","expiresAt":"2026-11-21T12:00:00.000Z"}`
	verified = `{"status":"VERIFIED","phoneNumber":"+4915112345678","expiresAt":"2026-11-21T12:00:00.000Z","assurance":"session"}`
	again    = `{"error":{"code":"already_confirmed","message":"again"}}`
)

// newScripted returns a client of a server that answers with what is sent: a body, whose status is 409 for an error. An empty one loses
// the answer.
func newScripted(t *testing.T, options ...Option) (*Client, chan<- string) {
	t.Helper()
	answers := make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := <-answers
		if body == "" {
			panic(http.ErrAbortHandler)
		}
		if strings.HasPrefix(body, `{"error"`) {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL, "key", options...)
	if err != nil {
		t.Fatal(err)
	}
	return client, answers
}

func expectCode(t *testing.T, err error, want string) {
	t.Helper()
	failure := &Error{}
	if !errors.As(err, &failure) || failure.Code != want {
		t.Fatalf("got %v, want %s", err, want)
	}
}

// TestSessions_aRefusalKeepsALostConfirm: a code that was refused for its form shows nothing about the one before.
func TestSessions_aRefusalKeepsALostConfirm(t *testing.T) {
	for name, test := range map[string]struct{ refusal, then string }{
		"malformed": {"invalid_code", ""}, "wrong": {"wrong_code", "already_confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			client, answers := newScripted(t)
			sessions := NewSessions(client, &MemoryStore{})
			answers <- begun
			if _, err := sessions.Begin(t.Context(), "old", StartParams{PhoneNumber: "+4915112345678"}); err != nil {
				t.Fatal(err)
			}
			redemption := Redemption{SessionID: "old", NewSessionID: "new", Code: "123456"}
			for range 1 + maxTries { // confirm, and the status
				answers <- ""
			}
			_, err := sessions.Redeem(t.Context(), redemption)
			expectCode(t, err, CodeConnectionFailed)
			answers <- `{"error":{"code":"` + test.refusal + `","message":"no"}}`
			_, err = sessions.Redeem(t.Context(), redemption)
			expectCode(t, err, test.refusal)
			answers <- again
			answers <- verified
			if _, err = sessions.Redeem(t.Context(), redemption); test.then != "" {
				expectCode(t, err, test.then)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSessions_aConfirmUnderWayIsNotLost: who knows a session's id redeems at the same time as its user.
func TestSessions_aConfirmUnderWayIsNotLost(t *testing.T) {
	var meanwhile func()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := verified
		if run := meanwhile; strings.HasSuffix(r.URL.Path, "/init") {
			body = begun
		} else if run != nil {
			meanwhile = nil
			run()
		} else if strings.HasSuffix(r.URL.Path, "/confirm") {
			w.WriteHeader(http.StatusConflict)
			body = again
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	client, err := New(server.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	sessions := NewSessions(client, &MemoryStore{})
	if _, err := sessions.Begin(t.Context(), "old", StartParams{PhoneNumber: "+4915112345678"}); err != nil {
		t.Fatal(err)
	}
	meanwhile = func() {
		_, err := sessions.Redeem(t.Context(), Redemption{SessionID: "old", NewSessionID: "stranger", Code: "123456"})
		expectCode(t, err, "already_confirmed")
	}
	if _, err := sessions.Redeem(t.Context(), Redemption{SessionID: "old", NewSessionID: "new", Code: "654321"}); err != nil {
		t.Fatal(err)
	}
	if number, _ := sessions.Verified(t.Context(), "stranger"); number != "" {
		t.Errorf("got %q", number)
	}
}

// leavingStore is a store whose browser leaves once the number is verified.
type leavingStore struct {
	MemoryStore

	leave func()
}

// Save stores the text of a session, while there is a browser.
func (s *leavingStore) Save(ctx context.Context, sessionID, text string) error {
	if sessionID == "new" {
		s.leave()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.MemoryStore.Save(ctx, sessionID, text)
}

// Remove deletes the text of a session, while there is a browser.
func (s *leavingStore) Remove(ctx context.Context, sessionID string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.MemoryStore.Remove(ctx, sessionID)
}

func TestSessions_aBrowserThatLeavesIsVerified(t *testing.T) {
	client, answers := newScripted(t)
	ctx, leave := context.WithCancel(t.Context())
	sessions := NewSessions(client, &leavingStore{leave: leave})
	answers <- begun
	answers <- verified
	if _, err := sessions.Begin(ctx, "old", StartParams{PhoneNumber: "+4915112345678"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.Redeem(ctx, Redemption{SessionID: "old", NewSessionID: "new", Code: "123456"}); err != nil {
		t.Fatal(err)
	}
	if number, err := sessions.Verified(t.Context(), "new"); number == "" || err != nil {
		t.Errorf("got %q, %v", number, err)
	}
}
