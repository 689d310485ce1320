package main

import (
	"context"
	"fmt"
	"strings"
)

// ctr talks to the cluster's own containerd, in the namespace that kubelet uses.
func ctr(ctx context.Context, args ...string) (string, error) {
	return command(ctx, "ctr", append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...)
}

// load imports an OCI archive; pods then use the image by the name that the archive gives it.
func (c *cluster) load(ctx context.Context, archive string) error {
	output, err := ctr(ctx, "images", "import", archive)
	if err != nil {
		return fmt.Errorf("load %s: %w", archive, err)
	}
	c.sayf("%s", strings.TrimSpace(output))
	return nil
}
