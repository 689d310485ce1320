package telegram

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// HookPath is where Telegram posts updates, below the project's baseURL.
const HookPath = "/hooks/telegram"

// What became of requests to the hook.
const (
	hookAccepted     = "accepted"
	hookOff          = "not_in_use"
	hookMethod       = "method_not_allowed"
	hookUnauthorized = "unauthorized"
	hookTooLarge     = "too_large"
	hookUnread       = "unread"
	hookFailed       = "failed"
)

// Hook returns the handler for HookPath.
//
// Telegram takes any 2xx as done, reads a method to call out of its body, and posts again after anything else, up to a day,
// later messages of the same chat waiting behind (WebhookActor.cpp). So: an empty 200 for everything that is authentic and
// that redelivery would not change, unreadable or oversized updates included; 503 only where an update could not be
// stored or its prompt not be sent.
func (c *Channel) Hook() http.Handler { return http.HandlerFunc(c.serve) }

func (c *Channel) serve(w http.ResponseWriter, r *http.Request) {
	s, now := c.settings(), c.clock.Now()
	switch {
	case s.Telegram == nil, s.Telegram.Polling, c.client.stranded(s.Telegram):
		c.refuse(w, http.StatusNotFound, hookOff)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		c.refuse(w, http.StatusMethodNotAllowed, hookMethod)
		return
	case !authentic(r.Header, s, now):
		c.refuse(w, http.StatusUnauthorized, hookUnauthorized)
		return
	}
	c.take(w, r, s)
}

// take reads and does what an authentic request brings.
func (c *Channel) take(w http.ResponseWriter, r *http.Request, s *settings.Settings) {
	log := logr.FromContextOrDiscard(r.Context())
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdateBytes))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		log.Info("telegram update dropped: it is over the limit")
		c.acknowledge(w, hookTooLarge)
		return
	}
	if err != nil { // The connection broke: whatever we answer does not arrive.
		c.refuse(w, http.StatusBadRequest, hookUnread)
		return
	}
	if err := c.receive(r.Context(), log, s, raw); err != nil {
		log.Error(err, "telegram update not acknowledged; it will be delivered again")
		wait := max(retryAfter(err), retryUpdate)
		w.Header().Set("Retry-After", strconv.FormatInt(int64(wait/time.Second), 10))
		c.refuse(w, http.StatusServiceUnavailable, hookFailed)
		return
	}
	c.acknowledge(w, hookAccepted)
}

// acknowledge answers with no body, so that there is no method in it.
func (c *Channel) acknowledge(w http.ResponseWriter, result string) {
	c.metrics.requests.WithLabelValues(result).Inc()
	w.WriteHeader(http.StatusOK)
}

func (c *Channel) refuse(w http.ResponseWriter, status int, result string) {
	c.metrics.requests.WithLabelValues(result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := `{"error":{"code":"` + result + `","message":"` + http.StatusText(status) + `."}}` + "\n"
	io.WriteString(w, body) //nolint:errcheck // a client that does not take it is no error of ours
}
