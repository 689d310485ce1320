// Package controlplane runs a real kube-apiserver and etcd for tests.
//
// The binaries come from bin/kube, where `make envtest-assets` puts them. They are found from the working directory, so that a
// suite runs with a plain `go test` and without variables. No kubelet runs, and no controllers except those of
// StartControllers: without them, objects stay as the test and the API server's own admission leave them, and nothing is
// garbage-collected.
//
// A suite starts one control plane and stops it at its end:
//
//	var plane *controlplane.ControlPlane
//
//	var _ = BeforeSuite(func() {
//		var err error
//		plane, err = controlplane.Start(controlplane.Options{})
//		Expect(err).NotTo(HaveOccurred())
//		DeferCleanup(plane.Stop)
//	})
package controlplane
