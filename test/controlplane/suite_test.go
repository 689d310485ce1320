package controlplane_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

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
