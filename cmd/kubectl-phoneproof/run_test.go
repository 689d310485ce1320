package main

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestRun_exitCodes(t *testing.T) {
	w := newWorld(t)
	run := func(args ...string) (code int, errors string) {
		var out, errOut bytes.Buffer
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
		code = runCommand(t.Context(), streams, append(args, "--kubeconfig="+kubeconfig, "--namespace="+w.namespace))
		return code, errOut.String()
	}
	code, errors := run("doctor", "shop", "--probe=false") // which nothing has observed
	w.Expect(code).To(Equal(1))
	w.Expect(errors).To(BeEmpty())
	code, errors = run("doctor", "--absent")
	w.Expect(code).To(Equal(2))
	w.Expect(errors).To(Equal("Error: unknown flag: --absent; see kubectl phoneproof doctor --help\n"))
	code, errors = run("status", "absent")
	w.Expect(code).To(Equal(1))
	w.Expect(errors).To(HavePrefix("Error: "))
	code, _ = run("version")
	w.Expect(code).To(BeZero())
}
