package leader

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// passTime lets the time of a bubble go by.
func passTime(d time.Duration) { <-time.NewTimer(d).C }

// storedLock is a lease in memory, whose writes take a while.
type storedLock struct {
	writeTakes time.Duration

	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
}

func (l *storedLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "shop")
	}
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *storedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *storedLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	passTime(l.writeTakes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &record
	return nil
}

func (l *storedLock) RecordEvent(string) {}
func (l *storedLock) Identity() string   { return "first" }
func (l *storedLock) Describe() string   { return "shop" }

func (l *storedLock) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// The work may take its time to end, and what it still writes must be the leader's.
func TestElector_keepsTheLeaseUntilItsWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		lock := &storedLock{}
		began, atTheEnd := make(chan struct{}), ""
		c, err := New(Options{Lock: lock, Name: "shop", Identity: "first", Log: logr.Discard(), Term: func(ctx context.Context) error {
			close(began)
			<-ctx.Done()
			passTime(5 * time.Second)
			atTheEnd = lock.holder()
			return nil
		}})
		g.Expect(err).NotTo(HaveOccurred())
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		<-began
		stop()
		g.Expect(<-ended).To(Succeed())
		g.Expect(atTheEnd).To(Equal("first"))
		g.Expect(lock.holder()).To(BeEmpty(), "then it is given up, so that the next one need not wait")
	})
}

// The others count from the arrival of a renewal, which may be soon after it was sent.
func TestElector_holdsSafelyFromTheBeginningOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		lock := &storedLock{writeTakes: 6 * time.Second}
		c, err := New(Options{Lock: lock, Name: "shop", Identity: "first", Log: logr.Discard()})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "first"})).To(Succeed())
		g.Expect(c.HeldSafely()).To(BeTrue(), "6 of 15 s are over")
		passTime(1500*time.Millisecond - 1)
		g.Expect(c.HeldSafely()).To(BeTrue())
		passTime(1)
		g.Expect(c.HeldSafely()).To(BeFalse(), "half of 15 s are over")

		g.Expect(c.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "first"})).To(Succeed())
		g.Expect(c.HeldSafely()).To(BeTrue())
		c.lock.clearRenewal()
		g.Expect(c.HeldSafely()).To(BeFalse())
	})
}
