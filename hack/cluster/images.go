package main

import (
	"context"
	"fmt"
	"strings"
)

// runCtr runs ctr against the cluster's own containerd, in kubelet's namespace.
func runCtr(ctx context.Context, args ...string) (string, error) {
	return runCommand(ctx, "ctr", append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...)
}

// loadImages imports an OCI archive; pods then use the image by its name in the archive.
func (c *cluster) loadImages(ctx context.Context, archive string) error {
	output, err := runCtr(ctx, "images", "import", archive)
	if err != nil {
		return fmt.Errorf("load %s: %w", archive, err)
	}
	c.logf("%s", strings.TrimSpace(output))
	return nil
}
