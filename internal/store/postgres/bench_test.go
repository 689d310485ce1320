package postgres

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// newBenchStore starts a server and a store for a benchmark.
func newBenchStore(b *testing.B) (*Store, *pgserver.Server) {
	b.Helper()
	g := NewWithT(b)
	s, err := pgserver.Start(b.Context(), pgserver.Options{Output: io.Discard})
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(func() { g.Expect(s.Stop()).To(Succeed()) })
	address := Address{URI: redact.New([]byte(s.URI("postgres")))}
	store, err := New(Options{Project: "bench/project", Address: func() Address { return address }, Log: logr.Discard()})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan error, 1)
	go func() { ended <- store.Start(ctx) }()
	b.Cleanup(func() {
		stop()
		g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
	g.Eventually(store.Ready).WithArguments(ctx).WithTimeout(time.Minute).Should(Succeed())
	return store, s
}

var benchLimits = verification.Limits{
	PerKey:         verification.Rate{Requests: 1_000_000, Period: time.Minute},
	PerPhoneNumber: verification.Rate{Requests: 5, Period: 10 * time.Minute},
}

var benchCount atomic.Int64

// benchNew returns a creation with a unique number.
func benchNew(b *testing.B) verification.New {
	b.Helper()
	i := benchCount.Add(1)
	number, err := phone.FromE164(fmt.Sprintf("+49151%08d", i))
	if err != nil {
		b.Fatal(err)
	}
	return verification.New{
		ID: fmt.Sprintf("vr%024d", i), Phone: number, Method: verification.WhatsApp, TTL: time.Hour, KeyName: "backend", Fresh: true,
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			store, _ := newBenchStore(b)
			b.SetParallelism((clients + 1) / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := store.Create(b.Context(), benchNew(b), benchLimits); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

func BenchmarkGet(b *testing.B) {
	store, _ := newBenchStore(b)
	var ids []string
	for range 1000 {
		n := benchNew(b)
		if _, err := store.Create(b.Context(), n, verification.Limits{}); err != nil {
			b.Fatal(err)
		}
		ids = append(ids, n.ID)
	}
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := store.Read(b.Context(), ids[i%len(ids)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}

// BenchmarkClaim claims 50 of 1,000 due requests beside few and many finished ones.
func BenchmarkClaim(b *testing.B) {
	for _, finished := range []int{10_000, 5_000_000} {
		b.Run(fmt.Sprintf("finished=%d", finished), func(b *testing.B) {
			store, server := newBenchStore(b)
			fillRequests(b, server, finished)
			policy := verification.Policy{Retention: 24 * time.Hour, Events: verification.EventsOn}
			b.ResetTimer()
			for range b.N {
				claimed, err := store.Claim(b.Context(), policy, 50, time.Nanosecond)
				if err != nil || len(claimed) != 50 {
					b.Fatal(len(claimed), err)
				}
			}
		})
	}
}

// fillRequests stores finished requests that are not due for deletion yet, and 1,000 with a due event.
func fillRequests(b *testing.B, server *pgserver.Server, finished int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), server.URI("postgres"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	insert := `INSERT INTO phoneproof_requests (project, id, phone, method, created_at, expires_at, key_name, body_hash, phase,
			verified_at, actual, delivered_at, next_attempt_at, version, work, since)
		SELECT 'bench/project', PREFIX || lpad(i::text, 22, '0'), '+4915112345678', 'WHATSAPP', now(), now() + interval '1 hour', 'backend', '',
			'VERIFIED', now(), '+4915112345678', DELIVERED, DUE, i, WORK, now() - i * interval '1 millisecond'
		FROM generate_series(1, $1) AS i`
	for _, kind := range []struct {
		n                            int
		prefix, delivered, due, work string
	}{{finished, "'done'", "now()", "NULL", "3"}, {1000, "'wait'", "NULL", "now()", "2"}} {
		statement := strings.NewReplacer("PREFIX", kind.prefix, "DELIVERED", kind.delivered, "DUE", kind.due, "WORK", kind.work).Replace(insert)
		if _, err := conn.Exec(b.Context(), statement, kind.n); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE phoneproof_requests"); err != nil {
		b.Fatal(err)
	}
}
