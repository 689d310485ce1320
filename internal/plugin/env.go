// Package plugin holds what every command of kubectl-phoneproof works with, a plugin of kubectl for those who run verification APIs: the
// project that it opens, with the rights of the reader's kubeconfig, the way to its pods, and how results are printed. The commands lie
// in the packages below.
package plugin

import (
	"context"
	"fmt"
	"io"
	"net"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// Dial connects to a port of a pod.
type Dial func(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error)

// ReadLogs returns the log of a pod. The caller closes it.
type ReadLogs func(ctx context.Context, pod *corev1.Pod, options *corev1.PodLogOptions) (io.ReadCloser, error)

// Env is what every command works with.
type Env struct {
	Flags   *genericclioptions.ConfigFlags
	Streams genericiooptions.IOStreams
	// Dial makes a way to connect to pods; newDial if nil. Tests replace it, because they have no kubelet.
	Dial func(*rest.Config) (Dial, error)
	// ReadLogs makes a way to read logs of pods; NewReadLogs if nil.
	ReadLogs func(*rest.Config) (ReadLogs, error)
}

// Print prints a line for the user.
func (e *Env) Print(format string, args ...any) error {
	if _, err := fmt.Fprintf(e.Streams.Out, format+"\n", args...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
