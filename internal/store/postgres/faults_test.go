package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// lossyProxy is a proxy to the server that drops every second answer to a committed transaction: the client gets a connection
// reset instead.
type lossyProxy struct {
	listener net.Listener
	armed    atomic.Bool
	commits  atomic.Int64
	lost     atomic.Int64
}

func newLossyProxy(ctx context.Context) *lossyProxy {
	GinkgoHelper()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l := &lossyProxy{listener: listener}
	go l.acceptConns() // ends with the listener
	DeferCleanup(listener.Close)
	return l
}

func (l *lossyProxy) databaseURI(schema string) string {
	port := l.listener.Addr().(*net.TCPAddr).Port
	return withSetting(fmt.Sprintf("postgresql://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), "search_path", schema)
}

func (l *lossyProxy) acceptConns() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(server.Port)))
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.Close()
		}()
		go l.forwardAnswers(client.(*net.TCPConn), upstream)
	}
}

// forwardAnswers forwards the server's messages. After a write it holds them until the server is ready for the next query, which
// is after the commit.
func (l *lossyProxy) forwardAnswers(client *net.TCPConn, from net.Conn) {
	defer func() {
		_ = client.Close()
		_ = from.Close()
	}()
	var pending []byte
	wrote := false
	for {
		var header [5]byte
		if _, err := io.ReadFull(from, header[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		pending = append(append(pending, header[:]...), body...)
		const commandComplete, readyForQuery, idle = 'C', 'Z', 'I'
		switch header[0] {
		case commandComplete:
			verb, _, _ := strings.Cut(strings.TrimRight(string(body), "\x00"), " ")
			wrote = wrote || verb == "INSERT" || verb == "UPDATE" || verb == "DELETE"
			continue
		case readyForQuery:
		default:
			if wrote {
				continue
			}
		}
		if wrote && header[0] == readyForQuery && body[0] == idle {
			wrote = false
			if l.armed.Load() && l.commits.Add(1)%2 == 0 {
				l.lost.Add(1)
				_ = client.SetLinger(0)
				return
			}
		}
		if _, err := client.Write(pending); err != nil {
			return
		}
		pending = pending[:0]
	}
}

var _ = Describe("A database whose connections break right after a commit", func() {
	It("applies each write once, and every caller gets its own result", func(ctx SpecContext) {
		schema := newSchema(ctx)
		proxy := newLossyProxy(ctx)
		s := openStore(ctx, project, proxy.databaseURI(schema))
		proxy.armed.Store(true)
		const calls = 30
		limits := verification.Limits{PerKey: verification.Rate{Requests: calls, Period: time.Hour}}
		for i := range calls {
			created, err := s.Create(ctx, creationOf(i), limits)
			Expect(err).NotTo(HaveOccurred())
			Expect(created.Existing).To(BeFalse(), "a retried creation is not reported as existing")
		}
		_, err := s.Create(ctx, creationOf(calls), limits)
		Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}), "each was counted once")
		id := creationOf(0).ID
		for range 2 { // a message that is delivered twice
			_, err := s.Update(ctx, id, func(r *verification.Request, now time.Time) error {
				if r.Phase == verification.Verified {
					return verification.ErrUnchanged
				}
				return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
			})
			Expect(err).NotTo(HaveOccurred())
		}
		for i := range 20 {
			r, err := s.Update(ctx, id, func(r *verification.Request, now time.Time) error {
				return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: i + 1, Epoch: r.Epoch, At: now, Reason: "timeout", Next: now.Add(time.Hour)})
			})
			Expect(err).NotTo(HaveOccurred(), "attempt %d", i+1)
			Expect(r.Delivery.Attempts).To(Equal(i + 1))
		}
		r, err := s.Read(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Delivery.Attempts).To(Equal(20))
		Expect(s.Delete(ctx, id, r.Version)).To(Succeed())
		proxy.armed.Store(false)
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests")).To(Equal(calls - 1))
		Expect(proxy.lost.Load()).To(BeNumerically(">=", calls/2), "lost answers")
		Expect(testutil.ToFloat64(s.metrics.retries)).To(BeNumerically(">=", calls/2))
	})
})

var _ = Describe("A flood of refusals", func() {
	It("does not make other callers wait for the disk", func(ctx SpecContext) {
		// The statistics of former specs' connections are flushed when they close.
		Eventually(func() int {
			return queryScalar[int](ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeZero())
		uri, _ := inSchema(ctx)
		s := openStore(ctx, project, uri)
		limits := verification.Limits{PerKey: verification.Rate{Requests: 1, Period: time.Hour}}
		_, err := s.Create(ctx, creationOf(0), limits)
		Expect(err).NotTo(HaveOccurred())
		const refusals = 300
		flushes := func() int {
			execStatements(ctx, "SELECT pg_stat_force_next_flush()")
			return queryScalar[int](ctx, "SELECT wal_sync FROM pg_stat_wal")
		}
		before := flushes()
		for i := range refusals {
			_, err := s.Create(ctx, creationOf(1+i), limits)
			Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}))
		}
		Eventually(func() int { return int(s.pool.Load().Stat().AcquiredConns()) }).WithContext(ctx).WithTimeout(time.Minute).Should(BeZero())
		Consistently(func() int { return flushes() - before }).WithContext(ctx).WithTimeout(3*time.Second).WithPolling(time.Second).
			Should(BeNumerically("<", refusals/2), "a refusal writes nothing")
		created, err := s.Create(ctx, creationOf(0), limits)
		Expect(err).NotTo(HaveOccurred())
		Expect(created.Existing).To(BeTrue())
	})
})

// Dead rows cannot be removed while an old transaction might still read them.
var _ = Describe("A transaction that stays open beside the store", func() {
	It("does no harm", func(ctx SpecContext) {
		uri, schema := inSchema(ctx)
		s := openStore(ctx, project, uri)
		before := s.runLifecycles(ctx, 0)
		old := connectAsOwner(ctx)
		defer func() { _ = old.Close(context.WithoutCancel(ctx)) }()
		_, err := old.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		Expect(err).NotTo(HaveOccurred())
		var seen int
		Expect(old.QueryRow(ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests").Scan(&seen)).To(Succeed())
		during := s.runLifecycles(ctx, 1)
		Expect(queryScalar[int](ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests")).To(BeZero(), "all requests are deleted")
		execStatements(ctx, "VACUUM "+schema+".phoneproof_requests")
		left := func() int {
			return queryScalar[int](ctx, "SELECT count(*) FROM pg_stat_get_dead_tuples('"+schema+".phoneproof_requests'::regclass) AS n WHERE n > 0")
		}
		Eventually(left).WithContext(ctx).WithTimeout(time.Minute).Should(Equal(1), "dead rows stay while a transaction may read them")
		Expect(old.QueryRow(ctx, "SELECT count(*) FROM "+schema+".phoneproof_requests").Scan(&seen)).To(Succeed())
		Expect(seen).To(BeZero(), "the old transaction does not see later rows")
		_, err = old.Exec(ctx, "COMMIT")
		Expect(err).NotTo(HaveOccurred())
		// Connections report their deletions up to ten seconds late, and these are then counted as dead again.
		Eventually(func() int {
			execStatements(ctx, "VACUUM "+schema+".phoneproof_requests")
			return left()
		}).WithContext(ctx).WithTimeout(time.Minute).Should(BeZero())
		AddReportEntry("lifecycle of a request", fmt.Sprintf("%v each before, %v beside the open transaction", before, during))
	})
})

// runLifecycles takes requests from creation through claims to deletion, and returns the mean time for each.
func (s *Store) runLifecycles(ctx context.Context, round int) time.Duration {
	GinkgoHelper()
	const clients, each = 16, 40
	began := time.Now()
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			defer GinkgoRecover()
			for i := range each {
				n := creationOf((round*clients+client)*each + i)
				_, err := s.Create(ctx, n, verification.Limits{})
				Expect(err).NotTo(HaveOccurred())
				_, err = s.Update(ctx, n.ID, func(r *verification.Request, now time.Time) error {
					return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
				})
				Expect(err).NotTo(HaveOccurred())
			}
		})
	}
	all.Wait()
	for done := 0; done < clients*each; {
		claimed, err := s.Claim(ctx, verification.Policy{Events: verification.EventsOn}, 100, time.Hour)
		Expect(err).NotTo(HaveOccurred())
		Expect(claimed).NotTo(BeEmpty(), "due events, after %d", done)
		for _, r := range claimed {
			all.Go(func() {
				defer GinkgoRecover()
				r, err := s.Update(ctx, r.ID, func(r *verification.Request, now time.Time) error {
					return r.RecordAttempt(verification.Attempt{Event: r.Event(), Number: 1, Epoch: r.Epoch, At: now, Delivered: true})
				})
				Expect(err).NotTo(HaveOccurred())
				Expect(s.Delete(ctx, r.ID, r.Version)).To(Succeed())
			})
		}
		all.Wait()
		done += len(claimed)
	}
	return time.Since(began) / (clients * each)
}
