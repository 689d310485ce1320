// Command demo goes from nothing to two verified numbers: a cluster on this machine, the image, the chart, a project with
// two replicas, and the simulator in place of WhatsApp, Telegram, an end user's phone and the client's webhook receiver.
//
// It does nothing that could not be typed: before each step it prints the command. Whatever it made before is used again,
// so a second run takes seconds. `make demo` runs it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		slog.Error("the demo did not come to its end", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	s := newShell(os.Stdout, root)
	defer s.end()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	d := &demo{shell: s, lost: lost}
	began := time.Now()
	s.textf("PhoneProof, from nothing to two verified numbers. Every command below can be typed by hand, after this one:\n")
	s.command("export PATH=$PWD/bin/kube:$PATH KUBECONFIG=$PWD/" + filepath.ToSlash(kubeconfig))
	for i, step := range d.steps() {
		s.title(i+1, step.title)
		if err := step.do(ctx); err != nil {
			err = fmt.Errorf("step %d, %s: %w", i+1, step.title, cause(ctx, err))
			d.diagnose(ctx)
			return err
		}
	}
	d.summary(time.Since(began))
	return nil
}

// cause returns why a step failed: rather the end of a port-forward than its effect on a request, which may be seen first.
func cause(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Second):
		return err
	}
}
