package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// world is a demo whose kubectl is a script.
type world struct {
	Gomega

	*demo
	ctx     context.Context //nolint:containedctx // the demo's, which ends with a port-forward
	printed bytes.Buffer
	target  string // host:port of what the port-forwards lead to
	release string // a named pipe: `await` in the script waits until something is written to it
}

// newWorld runs forward, lines of a shell, for each port-forward, and answers a probe with a status.
func newWorld(t *testing.T, status int, forward string) *world {
	t.Helper()
	w := &world{Gomega: NewWithT(t)}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(status) }))
	t.Cleanup(server.Close)
	w.target = server.Listener.Addr().String()

	root := t.TempDir()
	w.release = filepath.Join(root, "release")
	w.Expect(syscall.Mkfifo(w.release, 0o600)).To(Succeed())
	tools := filepath.Join(root, "bin", "kube")
	w.Expect(os.MkdirAll(tools, 0o700)).To(Succeed())
	script := "#!/bin/sh\nTARGET=" + w.target + "\nawait() { read -r _ <" + w.release + `; }
case "$*" in
*" port-forward --address 127.0.0.1 service/"*" :80" | *" port-forward --address 127.0.0.1 service/"*" :8090") ;;
*" get secret shop "*) echo key; exit ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac
` + forward + "\n"
	w.Expect(os.WriteFile(filepath.Join(tools, "kubectl"), []byte(script), 0o700)).To(Succeed())

	ctx, lost := context.WithCancelCause(t.Context())
	w.ctx, w.demo = ctx, &demo{shell: newShell(&w.printed, root), lost: lost}
	t.Cleanup(w.end)
	return w
}

func TestReach_usesThePortsThatKubectlChose(t *testing.T) {
	w := newWorld(t, http.StatusOK, `echo "Forwarding from $TARGET -> 8080"; await`)
	w.Expect(w.reach(w.ctx)).To(Succeed())
	w.Expect([]string{w.api, w.sim}).To(HaveEach("http://" + w.target))
	w.Expect(w.apiKey).To(Equal("key"))
	w.Expect(w.printed.String()).To(ContainSubstring("Forwarding from " + w.target))
	w.Expect(w.call(w.ctx, http.MethodGet, w.sim+"/sim/users", nil, nil)).NotTo(Succeed(), "the stand-in answers no JSON")
	w.Expect(w.printed.String()).To(ContainSubstring("curl --silent http://"+w.target+"/sim/users"), "the commands show the port")
}

func TestReach_failsWithWhatKubectlPrinted(t *testing.T) {
	for name, forward := range map[string]string{
		"before it forwards": `echo "error: unable to listen on any of the requested ports" >&2; exit 1`,
		// Another program holds the port by then, and answers.
		"and the port answers all the same": `echo "Forwarding from $TARGET -> 8080"; echo "error: unable to listen on any of the requested ports"; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, http.StatusOK, forward)
			_ = w.reach(w.ctx)
			<-w.ctx.Done()
			w.Expect(cause(w.ctx, nil)).To(MatchError(And(HavePrefix("kubectl --namespace phoneproof-demo port-forward "),
				ContainSubstring("ended (exit status 1)"), ContainSubstring("error: unable to listen on any of the requested ports"))))
		})
	}
}

func TestReach_failsWithAWrongAnswer(t *testing.T) {
	w := newWorld(t, http.StatusTeapot, `echo "Forwarding from $TARGET -> 8080"; await`)
	w.Expect(w.reach(w.ctx)).To(MatchError(Equal(fmt.Sprintf("GET http://%s/openapi.json: 418 I'm a teapot: ", w.target))))
}

func TestForward_thatEndsEndsTheDemo(t *testing.T) {
	w := newWorld(t, http.StatusOK, `echo "Forwarding from $TARGET -> 8080"; await; echo "error: lost connection to pod" >&2; exit 1`)
	w.Expect(w.reach(w.ctx)).To(Succeed())
	w.Expect(w.ctx.Err()).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(w.release, []byte("now\n"), 0o600)).To(Succeed())
	<-w.ctx.Done()
	err := w.exchange(w.ctx, http.MethodGet, w.api, nil, nil)
	w.Expect(err).To(HaveOccurred())
	w.Expect(cause(w.ctx, err)).To(MatchError(HaveSuffix("ended (exit status 1): Forwarding from " + w.target +
		" -> 8080; error: lost connection to pod")))
}

func TestForward_ofOneThatCannotStart(t *testing.T) {
	w := newWorld(t, http.StatusOK, "")
	w.dir = t.TempDir()
	_, err := w.forward(w.ctx, w.lost, "port-forward")
	w.Expect(err).To(MatchError(os.ErrNotExist))
}
