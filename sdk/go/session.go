package phoneproof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
)

// SessionStore keeps a text for each session of your website, on your server. A session's id is what its cookie has.
type SessionStore interface {
	// Load returns the text of a session, empty if it has none.
	Load(ctx context.Context, sessionID string) (string, error)
	// Save stores the text of a session in place of another one.
	Save(ctx context.Context, sessionID, text string) error
	// Remove deletes the text of a session. It is no error if there is none.
	Remove(ctx context.Context, sessionID string) error
}

// Sessions keeps the rules of session proof (docs/session.md): a code counts for the request that its own session began, and for no other.
type Sessions struct {
	client *Client
	store  SessionStore
	accept []string
}

// NewSessions returns the sessions of a website. It accepts numbers with the assurance ProvenInSession, and the weaker ones that are
// named.
func NewSessions(client *Client, store SessionStore, accept ...string) *Sessions {
	return &Sessions{client: client, store: store, accept: append([]string{ProvenInSession}, accept...)}
}

// sessionState is what is stored for a session.
type sessionState struct {
	// Request is the latest that the session began.
	Request string `json:"request"`
	// Lost is set while it is not known what became of a confirm of Request.
	Lost bool `json:"lost,omitempty"`
	// Verified is the number, in E.164 form.
	Verified string `json:"verified,omitempty"`
}

// Begin starts a verification for a session, with AssuranceSession, in place of what the session had before.
func (s *Sessions) Begin(ctx context.Context, sessionID string, params StartParams) (*Started, error) {
	if sessionID == "" {
		return nil, newArgumentError("sessionID", "the id of the session is empty")
	}
	params.Assurance = AssuranceSession
	if params.Deliver == DeliverCode {
		params.Assurance = "" // it is of that level, also in a project that sends no replies
	}
	started, err := s.client.Start(ctx, params)
	if err != nil {
		return nil, err
	}
	if err := s.save(ctx, sessionID, sessionState{Request: started.RequestID}); err != nil {
		return nil, err
	}
	return started, nil
}

// Redemption is what Redeem takes.
type Redemption struct {
	// SessionID is the session that Begin was called for, from the browser's cookie.
	SessionID string
	// NewSessionID is the id that the session has from its verification on: one that was made just now. Set the cookie to it when Redeem
	// has returned no error, so that the former id is of no use to those who know it.
	NewSessionID string
	// Code is what the user typed.
	Code string
	// Return is the query of the return to ReturnURL, in place of Code. Its requestId is compared with that of the session, and not used.
	Return url.Values
}

// Redeem redeems a code for the request that the session began. Without an error the number is verified, and belongs to NewSessionID
// alone. ErrSession matches what was refused without a call, except CodeNotVerified: the number was verified in a way that is not accepted.
func (s *Sessions) Redeem(ctx context.Context, r Redemption) (*Status, error) {
	if r.NewSessionID == "" || r.NewSessionID == r.SessionID {
		return nil, newError(CodeSessionIDNotNew, "a verified session needs a new id, so that no one else can know it")
	}
	state, err := s.loadOpen(ctx, r.SessionID, "")
	if err != nil {
		return nil, err
	}
	code, isReturn := r.Code, len(r.Return) > 0
	if isReturn {
		code = r.Return.Get("code")
	}
	if isReturn && r.Return.Get("requestId") != state.Request {
		return nil, newError(CodeOtherRequest, "this return belongs to another session")
	}
	status, err := s.confirm(ctx, r.SessionID, code, state)
	if err != nil {
		return nil, err
	}
	if status.Status != Verified || !slices.Contains(s.accept, status.Assurance) {
		return nil, newError(CodeNotVerified, "the number was not verified for this session")
	}
	ctx = context.WithoutCancel(ctx) // the code is redeemed, so the session changes also if its browser has gone
	if _, err := s.loadOpen(ctx, r.SessionID, state.Request); err != nil {
		return nil, err
	}
	if err := s.save(ctx, r.NewSessionID, sessionState{Request: state.Request, Verified: status.PhoneNumber}); err != nil {
		return nil, err
	}
	if err := s.store.Remove(ctx, r.SessionID); err != nil {
		return nil, fmt.Errorf("remove session: %w", err)
	}
	return status, nil
}

// confirm redeems a code, and records that its answer was lost. A request that is confirmed already counts only if that was recorded
// before: a confirm that is still under way may be that of another browser, which has the same session.
func (s *Sessions) confirm(ctx context.Context, sessionID, code string, state sessionState) (*Status, error) {
	status, err := s.client.Confirm(ctx, state.Request, code)
	if err == nil {
		return status, nil
	}
	if state.Lost && errors.Is(err, ErrAlreadyConfirmed) {
		if now, statusErr := s.client.Status(ctx, state.Request); statusErr != nil || now.Status == Verified {
			return now, statusErr
		}
	}
	// What was refused for another reason, such as a malformed code, shows nothing about a confirm that was lost before.
	isLost := isUnanswered(err) || state.Lost && !isSettled(err)
	if isLost != state.Lost {
		ctx := context.WithoutCancel(ctx)
		if _, err := s.loadOpen(ctx, sessionID, state.Request); err != nil {
			return nil, err
		}
		state.Lost = isLost
		if err := s.save(ctx, sessionID, state); err != nil {
			return nil, err
		}
	}
	return nil, err
}

// isSettled reports whether a refusal shows that no confirm of the session is unknown any more.
func isSettled(err error) bool {
	settling := []string{"already_confirmed", "wrong_code", "not_proven", "request_expired", "confirmation_not_needed", "request_not_found"}
	failure := (*Error)(nil)
	return errors.As(err, &failure) && slices.Contains(settling, failure.Code)
}

// Verified returns the verified number of a session in E.164 form, empty if it has none.
func (s *Sessions) Verified(ctx context.Context, sessionID string) (string, error) {
	state, err := s.load(ctx, sessionID)
	return state.Verified, err
}

// loadOpen returns the state of a session that has a request to redeem; if one is named, that one. It is called again after each confirm:
// meanwhile another browser, which has the same session, may have redeemed the request or begun another one.
func (s *Sessions) loadOpen(ctx context.Context, sessionID, request string) (sessionState, error) {
	state, err := s.load(ctx, sessionID)
	if err == nil && (state.Request == "" || state.Verified != "" || request != "" && request != state.Request) {
		err = newError(CodeNoRequest, "this session has no such verification that is open")
	}
	return state, err
}

func (s *Sessions) load(ctx context.Context, sessionID string) (sessionState, error) {
	var state sessionState
	if sessionID == "" {
		return state, nil
	}
	text, err := s.store.Load(ctx, sessionID)
	if err != nil {
		return state, fmt.Errorf("load session: %w", err)
	}
	if text == "" {
		return state, nil
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return sessionState{}, fmt.Errorf("read session: %w", err)
	}
	return state, nil
}

func (s *Sessions) save(ctx context.Context, sessionID string, state sessionState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write session: %w", err)
	}
	if err := s.store.Save(ctx, sessionID, string(text)); err != nil {
		return fmt.Errorf("save session: %w", err)
	}
	return nil
}

// MemoryStore is a SessionStore for trials: what it has ends with the process.
type MemoryStore struct{ texts sync.Map }

// Load returns the text of a session.
func (m *MemoryStore) Load(_ context.Context, sessionID string) (string, error) {
	text, _ := m.texts.Load(sessionID)
	known, _ := text.(string)
	return known, nil
}

// Save stores the text of a session.
func (m *MemoryStore) Save(_ context.Context, sessionID, text string) error {
	m.texts.Store(sessionID, text)
	return nil
}

// Remove deletes the text of a session.
func (m *MemoryStore) Remove(_ context.Context, sessionID string) error {
	m.texts.Delete(sessionID)
	return nil
}
