package verification

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
)

// maxIdempotencyKey bounds the Idempotency-Key header; UUIDs and most other schemes fit several times.
const maxIdempotencyKey = 255

// onceKey is the form of an Idempotency-Key that a client library makes for one call alone, of 130 random bits.
var onceKey = regexp.MustCompile(`^once_[a-z2-7]{26}$`)

// The lengths of Request.BodyHash, for the key of a client's choice and for onceKey.
const (
	hashDigits     = 32
	onceHashDigits = 40
)

// creatorBytes is the length of New.Creator, in bytes.
const creatorBytes = 8

// Service has the operations of clients and messengers on the requests of one project. It is safe for concurrent use.
type Service struct {
	codes  CodeSpace
	store  Store
	random io.Reader
	// Observer is notified of the changes that this process makes; nil for none. Set it before the first use.
	Observer Observer
	// Sender sends codes to numbers; nil refuses requests with DeliverCode. Set it before the first use.
	Sender CodeSender
	// uncounted has the requests with a wrong code that the store could not count, and when they end.
	uncounted sync.Map
}

// Observer is notified of the changes that a process makes. It must not block.
type Observer interface {
	// Started is called after a new request was stored or a manual one completed, not for the retry of init.
	Started(m Method)
	// Verified is called after this process moved a request to VERIFIED, which was created so long before by the store clock.
	Verified(m Method, took time.Duration)
	// SessionStep is called after this process moved a request of LevelSession by that step.
	SessionStep(step SessionStep)
	// TestStarted is called after the request of a test key was stored, in place of all others.
	TestStarted(outcome TestOutcome)
	// CodeRedeemed is called after the code that was sent to the number was entered at this process, once for a request.
	CodeRedeemed(r *Request)
}

// SessionStep is a step in the life of a request of LevelSession. It is a label of metrics.
type SessionStep string

// The steps.
const (
	SessionStarted     SessionStep = "started"
	SessionProven      SessionStep = "proven"
	SessionConfirmed   SessionStep = "confirmed"
	SessionWrongCode   SessionStep = "wrong_code"
	SessionTriesUsedUp SessionStep = "tries_used_up"
	SessionDeclined    SessionStep = "declined"
	SessionCanceled    SessionStep = "canceled"
)

// SessionSteps returns all of them.
func SessionSteps() []SessionStep {
	return []SessionStep{
		SessionStarted, SessionProven, SessionConfirmed, SessionWrongCode, SessionTriesUsedUp, SessionDeclined, SessionCanceled,
	}
}

// NewService returns the service of a project over its store.
func NewService(project CodeSpace, store Store) *Service {
	return &Service{codes: project, store: store, random: rand.Reader}
}

// Initiation is a client's call to verify a number.
type Initiation struct {
	Phone  phone.Number
	Method Method
	// OtherMethods are those that the page offers beside Method; without a page there are none. They are not part of what a retry
	// is recognized by.
	OtherMethods []Method
	// KeyName and KeyHash (SHA-256) identify the API key that was presented.
	KeyName string
	KeyHash [sha256.Size]byte
	// Test is set for a test key.
	Test bool
	// IdempotencyKey is the header of that name. HasIdempotencyKey distinguishes an empty header, which is refused, from none.
	IdempotencyKey    string
	HasIdempotencyKey bool
	// Subject is the party that the client acts for, such as a user's id or address. It is stored only as a hash, and only if
	// Limits count by it.
	Subject string
	TTL     time.Duration
	Limits  Limits
	// DisplayName is the project's name in the prepared text.
	DisplayName string
	ClientData
	// Terms are those that the request gets. RequestedTerms are those that the client sent: a retry is recognized by them, and not by
	// Terms, which also follow from the project's settings of the moment.
	Terms, RequestedTerms Terms
	// Given is the code to send with DeliverGiven. It is sent from memory, and never stored.
	Given redact.Value[string]
	// Signed is set if an identity server signed Phone and Given, and nothing else of the call.
	Signed bool
	// RequestedLocale is the locale as the client sent it. A retry is recognized by it, and not by ClientData.Locale, which is
	// chosen from the languages that the project has at the moment.
	RequestedLocale string
	// Refusal is why the project starts no verification at the moment; nil if it does. A retry gets the answer of its first
	// try all the same.
	Refusal *Error
}

// Initiated is a stored request with its code.
type Initiated struct {
	Created
	Code Code
}

// Initiate stores a new pending request. With an Idempotency-Key it returns the request of the first try, whatever its
// current state is, as long as it is stored.
func (s *Service) Initiate(ctx context.Context, in Initiation) (Initiated, error) {
	if in.Test {
		outcome, err := testOutcome(in.Phone, in.Terms.Deliver)
		if err != nil {
			return Initiated{}, err
		}
		in.TTL, in.KeyHash, in.Subject = outcome.ttl(in.TTL), testKeyHash(in.KeyHash), ""
	}
	code, bodyHash, err := s.codeFor(in)
	if err != nil {
		return Initiated{}, err
	}
	created, err := s.createRequest(ctx, in, New{
		ID: s.codes.RequestID(code), Phone: in.Phone, Method: in.Method, OtherMethods: in.OtherMethods, TTL: in.TTL,
		KeyName: in.KeyName, BodyHash: bodyHash, Test: in.Test, DisplayName: in.DisplayName, ClientData: in.ClientData, Terms: in.Terms,
		Subject: s.subjectHash(in), Fresh: !in.IsRepeatable(), Creator: newCreator(in.Terms.Deliver),
	})
	if err != nil {
		return Initiated{}, err
	}
	if created.Existing {
		if err := mayReplay(created.Request, in, bodyHash); err != nil {
			return Initiated{}, err
		}
	}
	return Initiated{Created: created, Code: code}, nil
}

// IsRepeatable reports whether a later call may mean the same request: one with the same Idempotency-Key, or the same code of the
// client's own.
func (in *Initiation) IsRepeatable() bool {
	return in.HasIdempotencyKey || in.Terms.Deliver == DeliverGiven
}

// createRequest stores a request, or returns the one of a first try. Only the call that created a request sends its
// code: of many that overlap, and of the retries after them, that is one at most.
func (s *Service) createRequest(ctx context.Context, in Initiation, n New) (Created, error) {
	slot, refusal := s.reserveSlot(in)
	switch {
	case refusal != nil:
		return s.readFirstTry(ctx, in, n.ID, refusal)
	case slot == CodeSlot(noSlot{}):
		return s.createAndSend(ctx, n, in.Limits, slot)
	default:
		return s.createWithoutCaller(ctx, n, in.Limits, slot)
	}
}

// createWithoutCaller is createAndSend, which goes on after ctx has ended: a store may commit later, and the code is sent all the same.
func (s *Service) createWithoutCaller(ctx context.Context, n New, limits Limits, slot CodeSlot) (Created, error) {
	var created Created
	done := make(chan error, 1)
	go func() {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), CodeSendTime)
		defer cancel()
		done <- panics.ToError(func() (err error) {
			created, err = s.createAndSend(own, n, limits, slot)
			return err
		})
	}()
	select {
	case err := <-done:
		return created, err
	case <-ctx.Done():
		return Created{}, fmt.Errorf("create request: %w", ctx.Err())
	}
}

// createAndSend stores a request and sends its code if this call created it, else it frees the slot.
func (s *Service) createAndSend(ctx context.Context, n New, limits Limits, slot CodeSlot) (Created, error) {
	isMine := false
	defer func() {
		if !isMine {
			slot.Release()
		}
	}()
	created, err := s.store.Create(ctx, n, limits)
	if err != nil {
		return Created{}, fmt.Errorf("create request: %w", err)
	}
	if !created.Existing {
		isMine = true
		slot.StartSending(created.Request)
		s.observeStart(&created.Request) // not by the caller, who may have gone
	}
	return created, nil
}

// reserveSlot returns the slot to send a code in, before anything is stored, or why no request can be started now.
func (s *Service) reserveSlot(in Initiation) (CodeSlot, *Error) {
	switch {
	case in.Refusal != nil:
		return nil, in.Refusal
	case in.Terms.Deliver == DeliverNothing || in.Test:
		return noSlot{}, nil
	case s.Sender == nil:
		return nil, ErrNoCodes
	}
	slot, isFree := s.Sender.ReserveSlot(in.KeyName, in.Given)
	if !isFree {
		return nil, errCodesBusy
	}
	return slot, nil
}

// newCreator returns the New.Creator of a call.
func newCreator(deliver DeliverKind) string {
	if deliver == DeliverNothing {
		return ""
	}
	creator := make([]byte, creatorBytes)
	_, _ = rand.Read(creator) // it never fails
	return hex.EncodeToString(creator)
}

// observeStart notifies the observer of a request that was stored.
func (s *Service) observeStart(r *Request) {
	switch {
	case s.Observer == nil, r.IsDelivery(): // it is no verification
	case r.Test:
		outcome, _ := testOutcome(r.Phone, r.Terms.Deliver) // Initiate has refused other numbers
		s.Observer.TestStarted(outcome)
	default:
		s.Observer.Started(r.Method)
		s.observeStep(r, SessionStarted)
	}
}

// testKeyHash returns what a test key has in place of its hash. A key whose mode changes makes other codes from the same
// Idempotency-Keys, so that no retry in one mode gets a request of the other.
func testKeyHash(hash [sha256.Size]byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("phoneproof test key\x00"), hash[:]...))
}

// readFirstTry returns the request of a first try with the same Idempotency-Key, and the refusal if none is stored.
func (s *Service) readFirstTry(ctx context.Context, in Initiation, id string, refusal *Error) (Created, error) {
	if !in.IsRepeatable() {
		return Created{}, refusal
	}
	switch first, err := s.store.ReadFinal(ctx, id); {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrTooManyUnknown): // the refusal is true of both
		return Created{}, refusal
	case err != nil:
		return Created{}, fmt.Errorf("read the request of the first try: %w", err)
	default:
		return Created{Request: first, Existing: true}, nil
	}
}

// subjectHash returns the hash of the subject if a limit counts by it, else nothing.
func (s *Service) subjectHash(in Initiation) string {
	if in.Subject == "" || !in.Limits.PerSubject.Limited() {
		return ""
	}
	return s.codes.SubjectHash(in.KeyHash, in.Subject)
}

func (s *Service) codeFor(in Initiation) (Code, string, error) {
	if !in.IsRepeatable() {
		code, err := s.codes.NewCode(s.random)
		if err != nil {
			return Code{}, "", fmt.Errorf("make code: %w", err)
		}
		return code, "", nil
	}
	if n := len(in.IdempotencyKey); in.HasIdempotencyKey && (n == 0 || n > maxIdempotencyKey) {
		return Code{}, "", &Error{
			Code: CodeInvalidIdempotency, Field: "Idempotency-Key",
			Message: fmt.Sprintf("Idempotency-Key must have 1 to %d characters.", maxIdempotencyKey),
		}
	}
	if in.Terms.Deliver == DeliverGiven {
		code, fingerprint := s.codes.deliveryFor(in)
		return code, fingerprint, nil
	}
	return s.codes.CodeFor(in.KeyHash, in.IdempotencyKey), bodyHash(in), nil
}

// hashedBody is what bodyHash covers. What a call does not have is left out, so that replicas of two versions make the same hash for a
// call without the fields that only one of them knows.
type hashedBody struct {
	Method    Method            `json:"method"`
	Phone     string            `json:"phone"`
	Reference string            `json:"reference,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	Locale    string            `json:"locale,omitempty"`
	ReturnURL string            `json:"returnURL,omitempty"`
	Level     Level             `json:"level,omitempty"`
	Purpose   string            `json:"purpose,omitempty"`
	Browser   string            `json:"browser,omitempty"`
	Deliver   DeliverKind       `json:"deliver,omitempty"`
}

// bodyHash identifies the call, however its JSON was written. The subject is not part of it: a user who changes networks between
// two tries still gets the first one's request, and the answer does not depend on it.
func bodyHash(in Initiation) string {
	terms := in.RequestedTerms
	body, err := json.Marshal(hashedBody{
		Method: in.Method, Phone: in.Phone.E164(), Reference: in.Reference, Metadata: in.Metadata, Locale: in.RequestedLocale,
		ReturnURL: in.ReturnURL, Level: terms.Level, Purpose: terms.Purpose, Browser: terms.Browser,
		Deliver: terms.Deliver,
	})
	if err != nil {
		panic(err) // not reached: text always marshals
	}
	sum := sha256.Sum256(body)
	digits := hashDigits
	if onceKey.MatchString(in.IdempotencyKey) {
		digits = onceHashDigits
	}
	return hex.EncodeToString(sum[:])[:digits]
}

// mayReplay refuses an existing request that is not the answer to a retry.
func mayReplay(existing Request, in Initiation, bodyHash string) error {
	if !in.IsRepeatable() {
		return Unavailable(errors.New("a fresh code met a stored request")) // 2^-65: the random source is broken
	}
	// An older replica stores hashDigits for each key.
	if existing.BodyHash != bodyHash && existing.BodyHash != bodyHash[:hashDigits] {
		return &Error{
			Code: CodeIdempotencyKeyReused, Field: "Idempotency-Key",
			Message: "This Idempotency-Key was used with another phoneNumber, method, reference, metadata, locale, returnURL, " +
				"assurance, purpose, browser, deliver or code. " +
				"Use a new key for a new call.",
		}
	}
	return nil
}

// Status returns a request for the caller that ctx names.
func (s *Service) Status(ctx context.Context, id string) (Request, error) {
	if !IsRequestID(id) {
		return Request{}, ErrNotFound
	}
	return s.store.ReadFinal(ctx, id)
}

// StatusFor is Status for an API key: one of the other mode gets ErrNotFound, as for an id that does not exist.
func (s *Service) StatusFor(ctx context.Context, id string, testKey bool) (Request, error) {
	request, err := s.Status(ctx, id)
	if err == nil && !request.IsVisibleTo(testKey) {
		return Request{}, errOtherMode
	}
	return request, err
}

// StatusCached returns a request for the caller that ctx names as this replica knows it, which costs next to nothing. It may be
// older than what another replica wrote just now; a final one never changes. The id is one that a CodeSpace made of a code.
func (s *Service) StatusCached(ctx context.Context, id string) (Request, error) {
	request, err := s.store.ReadCached(ctx, id)
	if err == nil && request.IsDelivery() {
		return Request{}, ErrNotFound
	}
	return request, err
}

// Subscribe returns a channel that gets a value after each change of the request; see Store.
func (s *Service) Subscribe(id string) (<-chan struct{}, func()) { return s.store.Subscribe(id) }

// Ready returns nil if the store answers.
func (s *Service) Ready(ctx context.Context) error { return s.store.Ready(ctx) }
