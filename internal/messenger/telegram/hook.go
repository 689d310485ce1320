package telegram

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// HookPath is where Telegram posts updates, below the project's baseURL.
const HookPath = "/hooks/telegram"

// Hook returns the handler for HookPath.
//
// Telegram takes any 2xx for done, reads a method to call from its body, and posts again after anything else, up to a day,
// later messages of the same chat waiting behind (WebhookActor.cpp). So: an empty 200 for everything that is authentic and
// that redelivery would not change, unreadable or oversized updates included; 503 only where an update could not be
// stored or its prompt not be sent.
func (c *Channel) Hook() http.Handler { return http.HandlerFunc(c.serveHook) }

func (c *Channel) serveHook(w http.ResponseWriter, r *http.Request) {
	s, now := c.settings(), c.clock.Now()
	switch {
	case s.Telegram == nil, s.Telegram.Polling, c.client.platform.Stranded(s.Telegram.Simulated):
		c.refuseRequest(w, http.StatusNotFound, messenger.RequestNotInUse)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		c.refuseRequest(w, http.StatusMethodNotAllowed, messenger.RequestMethodNotAllowed)
		return
	case !isAuthentic(r.Header, s, now):
		c.refuseRequest(w, http.StatusUnauthorized, messenger.RequestUnauthorized)
		return
	}
	c.receiveRequest(w, r, s)
}

// receiveRequest handles an authentic request.
func (c *Channel) receiveRequest(w http.ResponseWriter, r *http.Request, s *settings.Settings) {
	log := logr.FromContextOrDiscard(r.Context())
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdateBytes))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		log.Info("Telegram update dropped", "reason", "over the limit")
		c.acknowledgeRequest(w, messenger.RequestTooLarge)
		return
	}
	if err != nil { // The connection broke, so no answer arrives.
		c.refuseRequest(w, http.StatusBadRequest, messenger.RequestUnread)
		return
	}
	if err := c.receiveUpdate(r.Context(), log, s, raw); err != nil {
		log.Error(err, "Telegram update not acknowledged, will be delivered again")
		wait := max(requestedWait(err), retryUpdate)
		w.Header().Set("Retry-After", strconv.FormatInt(int64(wait/time.Second), 10))
		c.refuseRequest(w, http.StatusServiceUnavailable, messenger.RequestFailed)
		return
	}
	c.acknowledgeRequest(w, messenger.RequestAccepted)
}

// acknowledgeRequest answers with no body, so that there is no method in it.
func (c *Channel) acknowledgeRequest(w http.ResponseWriter, result string) {
	c.metrics.Requests.WithLabelValues(result).Inc()
	w.WriteHeader(http.StatusOK)
}

func (c *Channel) refuseRequest(w http.ResponseWriter, status int, result string) {
	c.metrics.Requests.WithLabelValues(result).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body := `{"error":{"code":"` + result + `","message":"` + http.StatusText(status) + `."}}` + "\n"
	io.WriteString(w, body) //nolint:errcheck // a client that does not take it is no error of ours
}
