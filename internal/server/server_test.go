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
