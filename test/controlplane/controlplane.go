package controlplane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/repository"
)

// processTimeout bounds the start and the stop of each process, so that one that hangs ends its test. A healthy one may take more than
// 90 s on a busy machine.
const processTimeout = 5 * time.Minute

// Options configure a control plane; the zero value has the project's CRDs.
type Options struct {
	// WithoutCRDs leaves out the CRDs of the chart.
	WithoutCRDs bool
	// CRDPaths are files or folders with additional CRDs, such as those of an optional API.
	CRDPaths []string
	// APIServerArgs are additional flags of the API server, by name without dashes.
	APIServerArgs map[string]string
	// Durable makes etcd sync every acknowledged write, as it does outside of tests. It is slower.
	Durable bool
	// Output receives the output of the processes; nil discards it.
	Output io.Writer
}

// ControlPlane is a running API server with its etcd.
type ControlPlane struct {
	// Config has the rights of a cluster administrator.
	Config *rest.Config
	// Kubectl is the path of the kubectl with the server's version.
	Kubectl string

	env         *envtest.Environment
	dir         string // keys and data: they must outlive a restart of the API server
	guard       *guard
	reserved    []*ports.Reservation
	output      io.Writer
	controllers *controllers
}

// Start returns when the API server is ready and serves the CRDs. The caller must Stop it.
func Start(o Options) (*ControlPlane, error) {
	root, err := repository.Root()
	if err != nil {
		return nil, err
	}
	binaries, err := findAssets(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "phoneproof-controlplane-")
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	guard, err := startGuard(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	plane := &ControlPlane{
		Kubectl: filepath.Join(binaries, "kubectl"),
		guard:   guard,
		env:     newEnvironment(o, root, binaries),
		dir:     dir,
		output:  o.Output,
	}
	if err := plane.start(o); err != nil {
		return nil, errors.Join(fmt.Errorf("start control plane: %w", err), plane.Stop())
	}
	return plane, nil
}

func newEnvironment(o Options, root, binaries string) *envtest.Environment {
	paths := o.CRDPaths
	if !o.WithoutCRDs {
		paths = append([]string{filepath.Join(root, "charts", "phoneproof", "files", "crds")}, paths...)
	}
	return &envtest.Environment{
		BinaryAssetsDirectory:    binaries,
		CRDDirectoryPaths:        paths,
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: processTimeout,
		ControlPlaneStopTimeout:  processTimeout,
		UseExistingCluster:       new(false), // never a real cluster, whatever envtest's variable says
	}
}

func (c *ControlPlane) start(o Options) error {
	server := c.env.ControlPlane.GetAPIServer()
	server.CertDir = filepath.Join(c.dir, "apiserver")
	server.Out, server.Err = o.Output, o.Output
	for name, value := range o.APIServerArgs {
		server.Configure().Set(name, value)
	}
	etcd := &envtest.Etcd{DataDir: filepath.Join(c.dir, "etcd"), Out: o.Output, Err: o.Output}
	if o.Durable {
		etcd.Configure().Set("unsafe-no-fsync", "false")
	}
	c.env.ControlPlane.Etcd = etcd
	if err := c.choosePorts(server, etcd); err != nil {
		return err
	}
	for _, dir := range []string{server.CertDir, etcd.DataDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	config, err := c.env.Start()
	if err != nil {
		return err
	}
	c.Config = config
	return nil
}

// choosePorts reserves ports for the processes until Stop, so that the API server can restart on the same port.
func (c *ControlPlane) choosePorts(server *envtest.APIServer, etcd *envtest.Etcd) error {
	var addresses [3]string
	for i := range addresses {
		reserved, err := ports.Reserve()
		if err != nil {
			return err
		}
		c.reserved = append(c.reserved, reserved)
		addresses[i] = reserved.Address()
	}
	var err error
	server.Address, server.Port, err = net.SplitHostPort(addresses[0])
	etcd.URL = &url.URL{Scheme: "http", Host: addresses[1]}
	etcd.Configure().Set("listen-peer-urls", "http://"+addresses[2])
	return err
}

// Stop ends all processes and deletes their data. A second call does nothing.
func (c *ControlPlane) Stop() error {
	if c.dir == "" {
		return nil
	}
	err := errors.Join(c.StopControllers(), c.interruptAPIServer(), c.env.Stop(), os.RemoveAll(c.dir), c.guard.release())
	for _, reserved := range c.reserved {
		err = errors.Join(err, reserved.Close())
	}
	c.dir, c.reserved = "", nil
	if err != nil {
		return fmt.Errorf("stop control plane: %w", err)
	}
	return nil
}

// StopAPIServer ends the API server at once and leaves etcd running: every client sees an outage.
func (c *ControlPlane) StopAPIServer() error {
	if err := c.interruptAPIServer(); err != nil {
		return err
	}
	// A process that has just been killed may be gone before envtest, which waits for it, knows that.
	if err := c.env.ControlPlane.APIServer.Stop(); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop API server: %w", err)
	}
	return nil
}

// StartAPIServer ends the outage that StopAPIServer began. Address, keys, users and objects are the same as before.
func (c *ControlPlane) StartAPIServer() error {
	if err := c.env.ControlPlane.APIServer.Start(); err != nil {
		return fmt.Errorf("start API server: %w", err)
	}
	return nil
}
