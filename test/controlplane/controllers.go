package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// controllers is a running kube-controller-manager.
type controllers struct {
	process *os.Process
	ended   chan struct{}
}

// StartControllers runs controllers of Kubernetes by name, such as garbage-collector-controller and namespace-controller,
// until Stop or StopControllers; see `kube-controller-manager --help`. They begin to work a few seconds later.
func (c *ControlPlane) StartControllers(names ...string) error {
	if c.controllers != nil {
		return errors.New("start controllers: already running")
	}
	program := filepath.Join(filepath.Dir(c.Kubectl), "kube-controller-manager")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("run hack/envtest-assets.sh controllers first, it builds the controllers for the tests: %w", err)
	}
	kubeconfig := filepath.Join(c.dir, "controllers.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, c.Config); err != nil {
		return err
	}
	manager := exec.Command(program, //nolint:noctx // it ends with Stop
		"--kubeconfig="+kubeconfig, "--controllers="+strings.Join(names, ","), "--leader-elect=false", "--secure-port=0")
	manager.Stdout, manager.Stderr = c.output, c.output
	if err := manager.Start(); err != nil {
		return fmt.Errorf("start controllers: %w", err)
	}
	started := &controllers{process: manager.Process, ended: make(chan struct{})}
	go func() { // ends with the process
		_ = manager.Wait() // its exit code does not matter, because we end it
		close(started.ended)
	}()
	c.controllers = started
	return nil
}

// StopControllers stops the controllers that StartControllers started, if any.
func (c *ControlPlane) StopControllers() error {
	running := c.controllers
	if running == nil {
		return nil
	}
	c.controllers = nil
	// They have nothing to save. Asked to stop, those of Kubernetes 1.37 may wait for each other for ever.
	if err := running.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop controllers: %w", err)
	}
	<-running.ended
	return nil
}
