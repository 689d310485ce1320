// Command cluster runs a real single-node Kubernetes on this machine, from bin/kube and the distribution's containerd:
// pods, DNS and service addresses, without a container registry, a download or Docker.
//
//	cluster up                     start it, or restart what died of it
//	cluster down                   end it and remove everything it made
//	cluster status                 say what runs
//	cluster restart COMPONENT      end one component and start it again
//	cluster load ARCHIVE           import an OCI archive, for pods to use
//
// There is one such cluster per machine, whatever the checkout. Everything it keeps is below /var/lib/phoneproof-cluster
// and /run/phoneproof-cluster. It ends only processes that it recorded or that name its own socket, and its addresses
// never leave the machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		slog.Error("cluster", "error", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: cluster up | down | status | restart COMPONENT | load ARCHIVE")

func run(ctx context.Context, args []string, out io.Writer) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "hack", "cluster")); err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	c := &cluster{bin: filepath.Join(root, "bin"), out: out}
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case len(args) == 1 && args[0] == "up":
		return c.up(ctx)
	case len(args) == 1 && args[0] == "down":
		return c.down(ctx)
	case len(args) == 1 && args[0] == "status":
		return c.status()
	case len(args) == 2 && args[0] == "restart":
		return c.restart(ctx, args[1])
	case len(args) == 2 && args[0] == "load":
		return c.load(ctx, args[1])
	}
	return errUsage
}
