package controlplane_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

// dieVariable makes the test binary start all servers and kill itself, for a spec that looks at what is left.
const dieVariable = "PHONEPROOF_TEST_DIE"

func TestMain(m *testing.M) {
	if os.Getenv(dieVariable) != "" {
		fmt.Fprintln(os.Stdout, startAndDie())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// startAndDie prints the folder and the number of the servers, and does not return unless it fails.
func startAndDie() error {
	plane, err := controlplane.Start(controlplane.Options{WithoutCRDs: true})
	if err != nil {
		return err
	}
	if err := plane.StartControllers("namespace-controller"); err != nil {
		return err
	}
	count, err := controlplane.CountServers(plane.Dir())
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, plane.Dir(), count)
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Control plane")
}

var plane *controlplane.ControlPlane

var _ = BeforeSuite(func() {
	var err error
	plane, err = controlplane.Start(controlplane.Options{WithoutCRDs: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
})
