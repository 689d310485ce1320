package hack

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

// clusterDemo is demo-cluster.sh with a script in the place of kubectl.
type clusterDemo struct {
	Gomega

	t       *testing.T
	tools   string // the folder of kubectl
	target  string // host:port of what the port-forwards lead to
	release string // a named pipe: `await` in kubectl waits until something is written to it
}

// newClusterDemo has kubectl run forward, lines of a shell, for each port-forward; what it leads to answers with a status.
func newClusterDemo(t *testing.T, status int, forward string) *clusterDemo {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed; make demo-cluster installs it")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, `{"paths": {}}`)
	}))
	t.Cleanup(server.Close)
	d := &clusterDemo{Gomega: NewWithT(t), t: t, tools: t.TempDir(), target: server.Listener.Addr().String()}
	d.release = filepath.Join(d.tools, "release")
	d.Expect(syscall.Mkfifo(d.release, 0o600)).To(Succeed())
	script := "#!/bin/sh\nTARGET=" + d.target + "\nawait() { read -r _ <" + d.release + `; }
case "$*" in
*" port-forward --address 127.0.0.1 service/"*" :80" | *" port-forward --address 127.0.0.1 service/"*" :8090") ;;
*" get secret shop "*) echo key; exit ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac
` + forward + "\n"
	d.Expect(os.WriteFile(filepath.Join(d.tools, "kubectl"), []byte(script), 0o700)).To(Succeed())
	return d
}

// run sources the demo, runs lines of a shell, and returns what they print.
func (d *clusterDemo) run(lines string) (string, error) {
	d.t.Helper()
	script := "source ./demo-cluster.sh; PATH=" + d.tools + ":$PATH; prepare; trap 'end_forwards; rm -rf \"$work\"' EXIT; " + lines
	output, err := exec.CommandContext(d.t.Context(), "bash", "-c", script).CombinedOutput()
	return string(output), err
}

func TestClusterDemo_quote(t *testing.T) {
	for want, words := range map[string]string{
		"kubectl get pods":                        "kubectl get pods",
		"kubectl wait --for=condition=Ready":      "kubectl wait --for=condition=Ready",
		`curl --json '{"name":"Ada"}'`:            `curl --json '{"name":"Ada"}'`,
		`echo 'it'\''s'`:                          `echo "it's"`,
		"curl 'http://127.0.0.1/x?id=1&wait=20s'": "curl 'http://127.0.0.1/x?id=1&wait=20s'",
		"echo ''": "echo ''",
	} {
		output, err := newClusterDemo(t, http.StatusOK, "").run("quote " + words)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), output)
		NewWithT(t).Expect(output).To(Equal(want + "\n"))
	}
}

func TestClusterDemo_usesThePortsThatKubectlChose(t *testing.T) {
	d := newClusterDemo(t, http.StatusOK, `echo "Forwarding from $TARGET -> 8080"; await`)
	output, err := d.run(`reach; echo "$api $simulator $api_key"; call GET "$api/api/verify/status?id=x"`)
	d.Expect(err).NotTo(HaveOccurred(), output)
	d.Expect(output).To(ContainSubstring("Forwarding from " + d.target))
	d.Expect(output).To(ContainSubstring(fmt.Sprintf("http://%s http://%s key\n", d.target, d.target)))
	d.Expect(output).To(ContainSubstring("curl --silent 'http://"+d.target+
		`/api/verify/status?id=x' --header "Authorization: Bearer $API_KEY"`), "the commands show the port, and not the key")
}

func TestClusterDemo_failsWithWhatKubectlPrinted(t *testing.T) {
	for name, forward := range map[string]string{
		"before it forwards": `echo "error: unable to listen on any of the requested ports" >&2; exit 1`,
		// Another program holds the port by then, and answers.
		"and the port answers all the same": `echo "Forwarding from $TARGET -> 8080"; echo "error: unable to listen on any of the requested ports"; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newClusterDemo(t, http.StatusOK, forward)
			output, err := d.run(`reach; wait "${!forwards[@]}"; check_forwards`)
			d.Expect(err).To(HaveOccurred())
			d.Expect(output).To(ContainSubstring("demo-cluster: kubectl --namespace phoneproof-demo port-forward "))
			d.Expect(output).To(And(ContainSubstring("ended (exit status 1): "),
				ContainSubstring("error: unable to listen on any of the requested ports")))
		})
	}
}

func TestClusterDemo_failsWithAWrongAnswer(t *testing.T) {
	d := newClusterDemo(t, http.StatusTeapot, `echo "Forwarding from $TARGET -> 8080"; await`)
	output, err := d.run("reach")
	d.Expect(err).To(HaveOccurred())
	d.Expect(output).To(ContainSubstring("demo-cluster: GET http://" + d.target + "/openapi.json: 418: "))
}

func TestClusterDemo_failsWhenAPortForwardEnds(t *testing.T) {
	d := newClusterDemo(t, http.StatusOK, `echo "Forwarding from $TARGET -> 8080"; await; echo "error: lost connection to pod" >&2; exit 1`)
	output, err := d.run(`reach; echo reached; echo now >` + d.release + `; wait -n "${!forwards[@]}"; call GET "$api/openapi.json"`)
	d.Expect(err).To(HaveOccurred())
	_, after, reached := strings.Cut(output, "reached\n")
	d.Expect(reached).To(BeTrue(), output)
	d.Expect(after).To(ContainSubstring("ended (exit status 1): Forwarding from " + d.target + " -> 8080;error: lost connection to pod"))
}

func TestClusterDemo_saysWhatReallyHappensToAnUnreachableAPI(t *testing.T) {
	d := newClusterDemo(t, http.StatusOK, `echo "Forwarding from 127.0.0.1:1 -> 8080"; await`)
	output, err := d.run("reach")
	d.Expect(err).To(HaveOccurred())
	d.Expect(output).To(ContainSubstring("demo-cluster: GET http://127.0.0.1:1/openapi.json: curl: "))
}
