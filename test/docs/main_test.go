package docs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/phoneproof/phoneproof/cmd/phoneproof/app"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// programName is the name under which this test program runs phoneproof.
const programName = "phoneproof"

// TestMain runs the tests; under the name phoneproof it runs the released command, except that dev uses free ports.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		if len(os.Args) > 1 && os.Args[1] == "dev" {
			for _, address := range []string{"bind", "simulator-bind", "health-bind"} {
				os.Args = slices.Insert(os.Args, 2, "--"+address+"-address=127.0.0.1:0") // those that are given count
			}
		}
		os.Exit(app.Main(server.Dependencies{}))
	}
	code := m.Run()
	if started.plane != nil {
		if err := errors.Join(started.plane.Stop(), os.RemoveAll(started.dir)); err != nil {
			fmt.Fprintln(os.Stderr, "stop control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// plane is the control plane of all pages. It is configured with the encryption and audit settings of operations.md.
type plane struct {
	*controlplane.ControlPlane

	dir        string
	kubeconfig string
	auditLog   string
}

// started is the plane, once a page has needed it.
var started struct {
	plane *controlplane.ControlPlane
	dir   string
}

// theControlPlane starts the control plane for the first page that needs it.
var theControlPlane = sync.OnceValues(func() (*plane, error) {
	dir, err := os.MkdirTemp("", "phoneproof-docs-")
	if err != nil {
		return nil, fmt.Errorf("create folder for control plane: %w", err)
	}
	p := &plane{dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), auditLog: filepath.Join(dir, "audit.log")}
	encryption, audit := filepath.Join(dir, "encryption.yaml"), filepath.Join(dir, "audit.yaml")
	if err := writeOperationsFiles(encryption, audit); err != nil {
		return nil, err
	}
	p.ControlPlane, err = controlplane.Start(controlplane.Options{APIServerArgs: map[string]string{
		"encryption-provider-config": encryption, "audit-policy-file": audit, "audit-log-path": p.auditLog,
	}})
	if err != nil {
		return nil, fmt.Errorf("start control plane with the files of %s: %w", operationsPage, err)
	}
	started.plane, started.dir = p.ControlPlane, dir
	return p, controlplane.WriteKubeconfig(p.kubeconfig, p.Config)
})
