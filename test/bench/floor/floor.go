// Package floor is the least that a verification server on PostgreSQL can be: net/http and encoding/json, the same requests and answers
// as PhoneProof's, one statement for all calls that wait, and every answer after its commit. It has no limits, metrics, log, settings or
// second replica. What PhoneProof costs beyond it is the price of what PhoneProof promises.
package floor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Options configure a server. All but Receiver are required.
type Options struct {
	Address  string `json:"address"`  // host:port of the API
	Database string `json:"database"` // URI of an empty PostgreSQL database
	Key      string `json:"key"`      // the only API key
	// AppSecret signs messages from WhatsApp, and WebhookSecret events.
	AppSecret     string `json:"appSecret"`
	WebhookSecret string `json:"webhookSecret"`
	Graph         string `json:"graph"`    // URL that replies to users are posted to
	Receiver      string `json:"receiver"` // URL that events are posted to; empty for none
}

const (
	timeToLive = 10 * time.Minute
	// maxBody bounds the bodies of calls, in bytes.
	maxBody = 64 << 10
	// inFlight is how many replies, and how many events, are posted at once: as many as PhoneProof posts events.
	inFlight = 32
	textPart = "Verify my number: "
)

type server struct {
	options Options
	store   *store
	client  *http.Client
	replies chan string // numbers of users
}

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &server{options: o, replies: make(chan string, inFlight), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 2 * inFlight}, Timeout: time.Minute,
	}}
	var err error
	if s.store, err = openStore(ctx, o.Database, o.Receiver != ""); err != nil {
		return err
	}
	defer s.store.close()
	failed := make(chan error, 1)
	fail := func(err error) {
		if ctx.Err() != nil {
			return // what it does at the end may fail
		}
		select {
		case failed <- err:
		default: // the first one counts
		}
		stop()
	}
	s.store.start(ctx, fail)
	if o.Receiver != "" {
		go s.deliverEvents(ctx, fail) // ends with ctx
	}
	for range inFlight {
		go s.sendReplies(ctx) // ends with ctx
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/verify/init", s.handleInit)
	mux.HandleFunc("GET /api/verify/status", s.handleStatus)
	mux.HandleFunc("POST /hooks/whatsapp", s.handleMessage)
	listening := &http.Server{
		Addr: o.Address, Handler: mux, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	context.AfterFunc(ctx, func() { _ = listening.Close() })
	if err := listening.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// initBody and initAnswer are PhoneProof's.
type initBody struct {
	PhoneNumber string `json:"phoneNumber"`
	Method      string `json:"method"`
}

type initAnswer struct {
	RequestID    string    `json:"requestId"`
	Link         string    `json:"waLink"`
	ExpectedText string    `json:"expectedText"`
	ExpiresIn    string    `json:"expiresIn"`
	ExpiresAt    time.Time `json:"expiresAt"`
}

func (s *server) handleInit(w http.ResponseWriter, r *http.Request) {
	body, err := s.readCall(w, r)
	var call initBody
	if err != nil || json.Unmarshal(body, &call) != nil || !strings.HasPrefix(call.PhoneNumber, "+") || call.Method != "WHATSAPP" {
		http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
		return
	}
	one := created{
		id: "vr" + strings.ToLower(rand.Text())[:24], phone: call.PhoneNumber, code: rand.Text()[:10], expires: time.Now().Add(timeToLive),
	}
	if _, err := s.store.creations.do(r.Context(), one); err != nil {
		http.Error(w, `{"error":"unavailable"}`, http.StatusServiceUnavailable)
		return
	}
	text := textPart + one.code
	writeAnswer(w, initAnswer{
		RequestID: one.id, Link: "https://wa.me/4915113000000?text=" + strings.ReplaceAll(text, " ", "%20"), ExpectedText: text,
		ExpiresIn: "600s", ExpiresAt: one.expires.UTC().Truncate(time.Second),
	})
}

// statusAnswer is PhoneProof's.
type statusAnswer struct {
	Status      string     `json:"status"`
	PhoneNumber string     `json:"phoneNumber"`
	VerifiedAt  *time.Time `json:"verifiedAt,omitempty"`
	ExpiresAt   time.Time  `json:"expiresAt"`
}

func (s *server) handleStatus(w http.ResponseWriter, r *http.Request) {
	if _, err := s.readCall(w, r); err != nil {
		http.Error(w, `{"error":"bad request"}`, http.StatusBadRequest)
		return
	}
	found, err := s.store.questions.do(r.Context(), r.URL.Query().Get("id"))
	switch {
	case err != nil:
		http.Error(w, `{"error":"unavailable"}`, http.StatusServiceUnavailable)
	case found.phone == "":
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
	default:
		status := statusAnswer{Status: "PENDING", PhoneNumber: found.phone, VerifiedAt: found.verified, ExpiresAt: found.expires.UTC()}
		if found.verified != nil {
			status.Status = "VERIFIED"
		}
		writeAnswer(w, status)
	}
}

// readCall returns the body of a call that has the API key.
func (s *server) readCall(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !hmac.Equal([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.options.Key)) {
		return nil, errors.New("another API key")
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}

// notification is the part of WhatsApp's webhook that matters.
type notification struct {
	Entry []struct {
		Changes []struct {
			Value struct {
				Messages []struct {
					From string `json:"from"`
					Text struct {
						Body string `json:"body"`
					} `json:"text"`
				} `json:"messages"`
			} `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

func (s *server) handleMessage(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	mac := signBody(s.options.AppSecret, body)
	if err != nil || !hmac.Equal([]byte(r.Header.Get("X-Hub-Signature-256")), []byte("sha256="+mac)) {
		http.Error(w, "", http.StatusUnauthorized)
		return
	}
	var all notification
	if json.Unmarshal(body, &all) != nil {
		return // 200: no other attempt helps
	}
	for _, entry := range all.Entry {
		for _, change := range entry.Changes {
			for _, message := range change.Value.Messages {
				if err := s.takeMessage(r.Context(), message.From, message.Text.Body); err != nil {
					http.Error(w, "", http.StatusServiceUnavailable)
					return
				}
			}
		}
	}
}

// takeMessage verifies the number of a message with a code, and replies.
func (s *server) takeMessage(ctx context.Context, from, text string) error {
	_, code, found := strings.Cut(text, textPart)
	if !found {
		return nil
	}
	if _, err := s.store.messages.do(ctx, message{phone: "+" + from, code: strings.TrimSpace(code)}); err != nil {
		return err
	}
	select {
	case s.replies <- from:
	case <-ctx.Done():
	}
	return nil
}

// sendReplies posts replies, whose outcome does not matter.
func (s *server) sendReplies(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case to := <-s.replies:
			body := fmt.Appendf(nil, `{"messaging_product":"whatsapp","to":%q,"type":"text","text":{"body":"Your number is verified."}}`, to)
			_ = s.postBody(ctx, s.options.Graph, body, http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer token"}})
		}
	}
}

func (s *server) postBody(ctx context.Context, url string, body []byte, header http.Header) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make call: %w", err)
	}
	request.Header = header
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("post: the answer is %d", response.StatusCode)
	}
	return nil
}

func writeAnswer(w http.ResponseWriter, content any) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // our types can always be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // the client may be gone
}

// signBody returns the HMAC-SHA256 in hex.
func signBody(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
