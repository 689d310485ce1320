package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/leader"
)

// sharedWorker counts what it does in the terms of a lease.
type sharedWorker struct {
	began, ended int
	fail         error
	hold         chan struct{} // delays the end of its work; nil for no delay
}

func (w *sharedWorker) work(ctx context.Context) error {
	w.began++
	defer func() { w.ended++ }()
	if w.fail != nil {
		return w.fail
	}
	<-ctx.Done()
	if w.hold != nil {
		<-w.hold
	}
	return nil
}

func TestShared_worksInEachTermAndEndsBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := leader.NewShared(clock.RealClock{})
		process, stop := context.WithCancel(t.Context())
		one, slow := &sharedWorker{}, &sharedWorker{hold: make(chan struct{})}
		for _, w := range []*sharedWorker{one, slow} {
			go shared.Work(process, logr.Discard(), w.work)
		}
		synctest.Wait()
		g.Expect(one.began).To(BeZero(), "there is no term")

		for n := 1; n <= 2; n++ {
			term, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- shared.Run(term) }()
			synctest.Wait()
			g.Expect([]int{one.began, slow.began}).To(HaveEach(n))
			end()
			synctest.Wait()
			g.Expect(one.ended).To(Equal(n))
			g.Expect(ended).NotTo(Receive(), "the lease is kept while one still works")
			slow.hold <- struct{}{}
			g.Expect(<-ended).To(Succeed())
		}

		term, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- shared.Run(term) }()
		synctest.Wait()
		stop()
		slow.hold <- struct{}{}
		synctest.Wait()
		g.Expect([]int{one.ended, slow.ended}).To(HaveEach(3), "the workers end with their process, within the term")
		end()
		g.Expect(<-ended).To(Succeed())
	})
}

func TestShared_beginsWorkAnewThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		shared := leader.NewShared(clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		well, ill := &sharedWorker{}, &sharedWorker{fail: errors.New("ill")}
		for _, w := range []*sharedWorker{well, ill} {
			go shared.Work(ctx, logr.Discard(), w.work)
		}
		ended := make(chan error, 1)
		go func() { ended <- shared.Run(ctx) }()
		<-time.After(time.Hour)
		synctest.Wait()
		g.Expect(well.began).To(Equal(1), "the other worker is left alone")
		g.Expect(ill.began).To(BeNumerically("~", 80, 20), "about once a minute, and sooner every ten minutes")
		stop()
		g.Expect(<-ended).To(Succeed())
		synctest.Wait()
	})
}
