package server

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestRunBehind_endsWithAnyPartThatFails(t *testing.T) {
	g := NewWithT(t)
	ended := make(chan error, 1)
	waits := manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })
	fails := manager.RunnableFunc(func(context.Context) error { return io.ErrUnexpectedEOF })
	go func() { ended <- RunBehind(t.Context(), waits, waits, fails) }()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(MatchError(io.ErrUnexpectedEOF)))
	go func() { ended <- RunBehind(t.Context(), fails, waits) }()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(MatchError(io.ErrUnexpectedEOF)))
}

func TestRunBehind_returnsAPanicAsAnError(t *testing.T) {
	g := NewWithT(t)
	waits := manager.RunnableFunc(func(ctx context.Context) error { <-ctx.Done(); return nil })
	panics := manager.RunnableFunc(func(context.Context) error { panic("poisoned") })
	g.Expect(RunBehind(t.Context(), waits, panics)).To(MatchError(ContainSubstring("panic: string")))
	g.Expect(RunBehind(t.Context(), panics, waits)).To(MatchError(ContainSubstring("panic: string")))
}

// TestRunBehind_endsTheFrontFirst checks that the parts behind the front run until it has ended.
func TestRunBehind_endsTheFrontFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, stop := context.WithCancel(t.Context())
		mayEnd, ended := make(chan struct{}), make(chan error, 1)
		front := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			<-mayEnd
			return nil
		})
		behindEnded := false
		behind := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			behindEnded = true
			return nil
		})
		go func() { ended <- RunBehind(ctx, front, behind) }()
		stop()
		synctest.Wait()
		g.Expect(behindEnded).To(BeFalse(), "the front is still running")
		close(mayEnd)
		g.Expect(<-ended).To(Succeed())
		g.Expect(behindEnded).To(BeTrue())
	})
}

// TestDrainAfter_needsTheStore: the codes of the last answers of the API are sent and recorded before the parts behind it end.
func TestDrainAfter_needsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		ctx, stop := context.WithCancel(t.Context())
		apiEnded, storeEnded := false, false
		api := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			apiEnded = true
			return io.ErrUnexpectedEOF
		})
		store := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			storeEnded = true
			return nil
		})
		drained := false
		front := drainAfter(api, func() {
			<-time.After(time.Second)
			drained = apiEnded && !storeEnded
		})
		stop()
		g.Expect(RunBehind(ctx, front, store)).To(MatchError(io.ErrUnexpectedEOF))
		g.Expect(drained).To(BeTrue())
		g.Expect(storeEnded).To(BeTrue())
	})
}
