package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// TestClaimLoop_recordsItsLastAttempt ends the loop while the receiver has an event that it has not answered yet.
func TestClaimLoop_recordsItsLastAttempt(t *testing.T) {
	w := newTestServer(t)
	w.clock = newStoreClock(clock.RealClock{}, logr.Discard())
	database, err := pgserver.Start(t.Context(), pgserver.Options{})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { w.Expect(database.Stop()).To(Succeed()) })
	w.current().Database = &settings.Database{URI: settings.NewSecret([]byte(database.URI("postgres")))}
	store, err := w.openDatabase()
	w.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stop()
		for range 100 { // after which a store that ends beside the loop has ended
			_ = store.Ready(r.Context())
		}
	}))
	t.Cleanup(receiver.Close)
	w.current().Webhook.URL = receiver.URL
	claims, err := w.newClaimLoop(t.Context(), store, func() bool { return true }, nil)
	w.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- claims.Start(ctx) }()
	w.Eventually(store.Ready).WithContext(t.Context()).WithTimeout(time.Minute).Should(Succeed())
	w.store = store
	w.createEvent(t)
	w.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))

	conn, err := pgx.Connect(t.Context(), database.URI("postgres"))
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var delivered bool
	w.Expect(conn.QueryRow(t.Context(), "SELECT delivered_at IS NOT NULL FROM phoneproof_requests").Scan(&delivered)).To(Succeed())
	w.Expect(delivered).To(BeTrue())
}
