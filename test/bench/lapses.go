package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/bench/load"
)

// firstExpiry is how long after they are stored the first requests expire; the rest expire evenly while the load runs.
const firstExpiry = 500 * time.Millisecond

// rowExpiries are rows. A trigger of the benchmark records when each expired, by the database's clock.
type rowExpiries struct {
	site    *site
	length  time.Duration
	waiting int
	rounds  int
}

func (b *bench) recordExpiries(ctx context.Context, x *site) (*rowExpiries, error) {
	for _, statement := range []string{
		`CREATE TABLE bench_lapses (late double precision NOT NULL)`,
		`CREATE FUNCTION bench_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO bench_lapses VALUES (extract(epoch FROM clock_timestamp() - NEW.expires_at));
			RETURN NULL;
		END $$`,
		`CREATE TRIGGER bench_note AFTER UPDATE ON phoneproof_requests FOR EACH ROW
			WHEN (OLD.phase = 'PENDING' AND NEW.phase = 'EXPIRED' AND NEW.id LIKE 'vrlapse%') EXECUTE FUNCTION bench_note()`,
	} {
		if err := executeSQL(ctx, x.system.Database, statement); err != nil {
			return nil, fmt.Errorf("install expiry trigger: %w", err)
		}
	}
	return &rowExpiries{site: x, length: b.length}, nil
}

func (l *rowExpiries) storeExpiring(ctx context.Context, n int) error {
	l.rounds++
	l.waiting = n
	if err := executeSQL(ctx, l.site.system.Database, "TRUNCATE bench_lapses"); err != nil {
		return err
	}
	return executeSQL(ctx, l.site.system.Database, `INSERT INTO phoneproof_requests
			(project, id, phone, method, created_at, expires_at, key_name, body_hash, phase, version, work, since)
		SELECT $1, $2 || lpad(i::text, 10, '0'), '+4915112345678', 'WHATSAPP', now() - interval '10 minutes',
			now() + i * $4::interval - $5::interval + $6::interval, 'backend', '', 'PENDING', i, 1, now() + i * $4::interval + $6::interval
		FROM generate_series(1, $3) AS i`,
		l.site.Name(), fmt.Sprintf("vrlapse%06d", l.rounds), n, (l.length-firstExpiry)/time.Duration(n), verification.ExpiryGrace, firstExpiry)
}

func (l *rowExpiries) measureDelays(ctx context.Context) (*load.Histogram, error) {
	err := waitFor(ctx, "requests to expire", func(ctx context.Context) (bool, error) {
		n, err := queryCount(ctx, l.site.system.Database, "SELECT count(*) FROM bench_lapses")
		return n >= l.waiting, err
	})
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, l.site.system.Database.URI("postgres"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // only read from
	rows, err := conn.Query(ctx, "SELECT late FROM bench_lapses")
	if err != nil {
		return nil, err
	}
	seconds, err := pgx.CollectRows(rows, pgx.RowTo[float64])
	late := &load.Histogram{}
	for _, s := range seconds {
		late.Record(time.Duration(s*float64(time.Second)) - verification.ExpiryGrace)
	}
	return late, err
}

// objectExpiries are objects. A watch records when each expired.
type objectExpiries struct {
	site    *site
	length  time.Duration
	changes watch.Interface
	ended   chan struct{}

	mu      sync.Mutex
	due     map[string]time.Time
	expired map[string]time.Time
}

func (b *bench) watchExpiries(ctx context.Context, x *site) (*objectExpiries, error) {
	scheme := runtime.NewScheme()
	if err := verifyv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	watcher, err := client.NewWithWatch(x.system.Plane.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	l := &objectExpiries{site: x, length: b.length, ended: make(chan struct{})}
	if l.changes, err = watcher.Watch(ctx, &verifyv1.VerificationRequestList{}, client.InNamespace(x.Namespace)); err != nil {
		return nil, err
	}
	go func() { // ends with the watch
		defer close(l.ended)
		for change := range l.changes.ResultChan() {
			l.recordExpiry(change, time.Now())
		}
	}()
	return l, nil
}

func (l *objectExpiries) stop() {
	l.changes.Stop()
	<-l.ended
}

func (l *objectExpiries) recordExpiry(change watch.Event, now time.Time) {
	o, ok := change.Object.(*verifyv1.VerificationRequest)
	if !ok || o.Status.Phase != verifyv1.PhaseExpired {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, again := l.expired[o.Name]; !again && l.expired != nil {
		l.expired[o.Name] = now
	}
}

func (l *objectExpiries) storeExpiring(ctx context.Context, n int) error {
	l.mu.Lock()
	l.due, l.expired = map[string]time.Time{}, map[string]time.Time{}
	l.mu.Unlock()
	first := time.Now().Add(firstExpiry)
	for i := range n {
		at := first.Add((l.length - firstExpiry) * time.Duration(i) / time.Duration(n)).Add(-verification.ExpiryGrace).Truncate(time.Microsecond)
		o := &verifyv1.VerificationRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.site.Namespace, GenerateName: "vr"},
			Spec: verifyv1.VerificationRequestSpec{
				ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: phoneNumber(int64(i)), Method: verifyv1.MethodWhatsApp,
				Init: &verifyv1.Init{
					CreatedAt: metav1.NewMicroTime(at.Add(-10 * time.Minute)), ExpiresAt: metav1.NewMicroTime(at), KeyName: "backend",
				},
			},
		}
		if err := l.site.system.Admin.Create(ctx, o); err != nil {
			return err
		}
		due := at.Add(verification.ExpiryGrace)
		if now := time.Now(); now.After(due) {
			due = now // it was created after it was due
		}
		l.mu.Lock()
		l.due[o.Name] = due
		l.mu.Unlock()
	}
	return nil
}

func (l *objectExpiries) measureDelays(ctx context.Context) (*load.Histogram, error) {
	late := &load.Histogram{}
	err := waitFor(ctx, "requests to expire", func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for name := range l.due {
			if _, ok := l.expired[name]; !ok {
				return false, nil
			}
		}
		for name, due := range l.due {
			late.Record(l.expired[name].Sub(due))
		}
		return true, nil
	})
	return late, err
}
