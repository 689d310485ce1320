// Command cluster runs a real single-node Kubernetes on this machine, from bin/kube and the distribution's containerd:
// pods, DNS and service addresses, without a container registry, a download or Docker.
//
//	cluster up                     start it, or restart its ended processes
//	cluster down                   end it and remove everything it created
//	cluster status                 print which components run
//	cluster restart COMPONENT      end one component and start it again
//	cluster load ARCHIVE           import an OCI archive, for pods to use
//
// There is one such cluster per machine, for all checkouts. Its files are below /var/lib/phoneproof-cluster and
// /run/phoneproof-cluster. It ends only processes that it recorded or that use its own socket, and packets to its addresses
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
		return fmt.Errorf("find repository: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "hack", "cluster")); err != nil {
		return fmt.Errorf("run this at the root of the repository: %w", err)
	}
	c := &cluster{bin: filepath.Join(root, "bin"), out: out}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch {
	case len(args) == 1 && args[0] == "up":
		return c.startCluster(ctx)
	case len(args) == 1 && args[0] == "down":
		return c.removeCluster(ctx)
	case len(args) == 1 && args[0] == "status":
		return c.printStatus()
	case len(args) == 2 && args[0] == "restart":
		return c.restartComponent(ctx, args[1])
	case len(args) == 2 && args[0] == "load":
		return c.loadImages(ctx, args[1])
	}
	return errUsage
}
