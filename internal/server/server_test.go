package server

import (
	"context"
	"io"
	"testing"
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

// TestRunBehind_endsTheFrontFirst has what is behind the front serve it until it has ended, also when both are told to end.
func TestRunBehind_endsTheFrontFirst(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	mayEnd, ended := make(chan struct{}), make(chan error, 1)
	stopping := make(chan struct{})
	front := manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		close(stopping)
		<-mayEnd
		return nil
	})
	var behindCtx context.Context
	begun := make(chan struct{})
	behind := manager.RunnableFunc(func(ctx context.Context) error {
		behindCtx = ctx
		close(begun)
		<-ctx.Done()
		return nil
	})
	go func() { ended <- RunBehind(ctx, front, behind) }()
	<-begun
	stop()
	<-stopping
	g.Expect(behindCtx.Err()).NotTo(HaveOccurred(), "the front still works")
	close(mayEnd)
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	g.Expect(behindCtx.Err()).To(HaveOccurred())
}
