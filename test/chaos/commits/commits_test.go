package commits_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/store/postgres"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/commits"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// patience is long enough for a busy machine.
const patience = time.Minute

// world is a store on a real server with the triggers.
type world struct {
	Gomega

	server   *pgserver.Server
	store    *postgres.Store
	triggers *commits.Triggers
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Gomega: NewWithT(t)}
	var err error
	w.server, err = pgserver.Start(t.Context(), pgserver.Options{})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(w.server.Stop()).To(Succeed()) })
	w.store, err = postgres.New(postgres.Options{
		Project: "test/shop", Log: logr.Discard(), Registerer: prometheus.NewRegistry(),
		Address: func() postgres.Address { return postgres.Address{URI: redact.New([]byte(w.server.URI("postgres")))} },
	})
	w.Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.store.Start(running) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(patience).Should(Receive(BeNil()))
	})
	w.Eventually(w.store.Ready).WithArguments(t.Context()).WithTimeout(patience).Should(Succeed())
	w.triggers, err = commits.Install(t.Context(), w.server)
	w.Expect(err).NotTo(HaveOccurred())
	return w
}

func id(i int) string { return fmt.Sprintf("vr%024d", i) }

func (w *world) create(ctx context.Context, i int) error {
	number, err := phone.FromE164(fmt.Sprintf("+49151%08d", i))
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.store.Create(ctx, verification.New{
		ID: id(i), Phone: number, Method: verification.WhatsApp, TTL: time.Hour, KeyName: "backend",
	}, verification.Limits{})
	return err
}

func (w *world) verify(ctx context.Context, i int) error {
	_, err := w.store.Update(ctx, id(i), func(r *verification.Request, now time.Time) error {
		return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
	})
	return err
}

func (w *world) claim(ctx context.Context) ([]verification.Request, error) {
	return w.store.Claim(ctx, verification.Policy{Events: verification.EventsOn, Retention: time.Hour}, 10, time.Hour)
}

// decided returns the number of decided transactions, by operation.
func (w *world) decided(ctx context.Context) map[string]int {
	conn, err := pgx.Connect(ctx, w.server.URI("postgres"))
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close(ctx) }()
	counts := map[string]int{}
	for _, operation := range []string{commits.Insert, commits.Update, commits.Claim} {
		var last int
		var called bool
		w.Expect(conn.QueryRow(ctx, "SELECT last_value, is_called FROM chaos_seen_"+operation).Scan(&last, &called)).To(Succeed())
		if called {
			counts[operation] = last
		}
	}
	return counts
}

func TestTriggers_failAtCommit(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	down := MatchError(verification.Unavailable(nil))
	w.Expect(w.create(ctx, 1)).To(Succeed(), "nothing fails before Fail")

	w.Expect(w.triggers.Fail(ctx, "P0001", 1)).To(Succeed())
	w.Expect(w.create(ctx, 2)).To(down)
	w.Expect(w.verify(ctx, 1)).To(down)
	_, err := w.store.Read(ctx, id(2))
	w.Expect(err).To(MatchError(verification.ErrNotFound))
	w.Expect(w.store.Read(ctx, id(1))).To(HaveField("Phase", verification.Pending))
	w.Expect(w.triggers.Stop(ctx)).To(Succeed())
	w.Expect(w.verify(ctx, 1)).To(Succeed())

	w.Expect(w.triggers.Fail(ctx, "53100", 1)).To(Succeed())
	_, err = w.claim(ctx)
	w.Expect(err).To(down)
	w.Expect(w.triggers.Stop(ctx)).To(Succeed())
	w.Expect(w.claim(ctx)).To(HaveLen(1), "what was not claimed can be claimed")
	w.Expect(w.decided(ctx)).To(Equal(map[string]int{commits.Insert: 1, commits.Update: 1, commits.Claim: 1}))
}

func TestTriggers_failOneInSoManyTransactions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.Expect(w.triggers.Fail(ctx, "P0001", 3)).To(Succeed())
	refused := 0
	for i := range 9 {
		if w.create(ctx, i) != nil {
			refused++
		}
	}
	w.Expect(refused).To(Equal(3))
	w.Expect(w.decided(ctx)).To(Equal(map[string]int{commits.Insert: 9}))

	// Rows of one transaction share its fate.
	w.Expect(w.server.Exec(ctx, "postgres", "UPDATE phoneproof_requests SET key_name = 'another'")).To(Succeed())
	w.Expect(w.decided(ctx)).To(HaveKeyWithValue(commits.Update, 1), "one transaction, however many rows it has")
}

func TestTriggers_serialization(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.Expect(w.triggers.Fail(ctx, "40001", 2)).To(Succeed())
	for i := range 6 {
		w.Expect(w.create(ctx, i)).To(Succeed(), "the transaction is repeated as a whole")
		w.Expect(w.verify(ctx, i)).To(Succeed())
	}
	w.Expect(w.claim(ctx)).To(HaveLen(6))
	w.Expect(w.decided(ctx)).To(And(HaveKeyWithValue(commits.Insert, 11), HaveKeyWithValue(commits.Update, 11)), "five of eleven failed")
}
