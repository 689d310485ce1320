package docs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// kubectlScript is the kubectl that a reader of the pages has. It is the real one, but that nothing is deleted, that no pods
// run, and that the conditions which are waited for become true.
const kubectlScript = `#!/bin/sh
set -eu
echo "kubectl $*" >>"$DOCS_CALLS"
namespace=$DOCS_NAMESPACE object= condition= previous=
for word; do
	case $previous in -n | --namespace) namespace=$word ;; esac
	case $word in
	vproj/* | vreq/*) object=$word ;;
	--for=condition=*) condition=${word#--for=condition=} ;;
	esac
	previous=$word
done
true_condition() {
	printf '{"type":"%s","status":"True","reason":"%s","message":"","lastTransitionTime":"2026-11-21T04:23:41Z"}' "$1" "$1"
}
case " $* " in *" -n "* | *" -A "* | *" -k "*) ;; *) set -- --namespace "$namespace" "$@" ;; esac
case " $* " in
*" port-forward "* | *" logs "*) exit ;;
*" delete "*) set -- "$@" --dry-run=server ;;
*" wait "*--for=condition=*)
	"$DOCS_KUBECTL" --namespace "$namespace" patch "$object" --subresource=status --type=merge --patch \
		'{"status":{"observedGeneration":1,"conditions":['"$(true_condition "$condition"),$(true_condition Available)"']}}' >/dev/null
	;;
esac
exec "$DOCS_KUBECTL" "$@"
`

// curlScript is curl with what is forwarded to port 8080 behind another port.
const curlScript = `#!/bin/sh
exec "$DOCS_CURL" --connect-to "localhost:8080:$DOCS_API" "$@"
`

// recordScript notes how it is called and does nothing.
const recordScript = `#!/bin/sh
echo "$(basename "$0") $*" >>"$DOCS_CALLS"
`

// reader follows a page: a folder of its own to work in, a namespace, and what the commands before gave.
type reader struct {
	t         *testing.T // the test of the page
	dir       string     // with bin/phoneproof
	namespace string
	env       map[string]string
	answer    []byte // what the last command printed
	samples   []sample
}

func newReader(t *testing.T, page string) *reader {
	t.Helper()
	g := NewWithT(t)
	r := &reader{t: t, dir: t.TempDir(), env: map[string]string{}}
	r.namespace = strings.ToLower(strings.NewReplacer("/", "-", ".", "-").Replace(page))
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(r.dir, "path")
	for _, dir := range []string{path, filepath.Join(r.dir, "bin")} {
		g.Expect(os.MkdirAll(dir, 0o700)).To(Succeed())
		g.Expect(os.Symlink(program, filepath.Join(dir, programName))).To(Succeed())
	}
	scripts := map[string]string{"kubectl": kubectlScript, "curl": curlScript}
	for _, name := range []string{"make", "helm", "skopeo"} {
		scripts[name] = recordScript
	}
	for name, script := range scripts {
		g.Expect(os.WriteFile(filepath.Join(path, name), []byte(script), 0o700)).To(Succeed())
	}
	r.env["PATH"] = path + ":" + os.Getenv("PATH")
	r.env["DOCS_CALLS"] = filepath.Join(r.dir, "calls")
	r.env["DOCS_CURL"], _ = exec.LookPath("curl") // checked by who uses it
	return r
}

// needCluster gives the reader a namespace of the control plane.
func (r *reader) needCluster(t *testing.T) {
	t.Helper()
	if r.env["KUBECONFIG"] != "" {
		return
	}
	g := NewWithT(t)
	plane, err := theControlPlane()
	g.Expect(err).NotTo(HaveOccurred())
	r.env["DOCS_KUBECTL"], r.env["KUBECONFIG"], r.env["DOCS_NAMESPACE"] = plane.Kubectl, plane.kubeconfig, "default"
	r.run(t, "kubectl create namespace "+r.namespace)
	r.env["DOCS_NAMESPACE"] = r.namespace
}

// command returns a shell that runs a script as the reader.
func (r *reader) command(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", script)
	cmd.Dir = r.dir
	cmd.Env = os.Environ()
	for name, value := range r.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// run runs a script that has to succeed and returns what it printed. Its variable KEY stays for the next one.
func (r *reader) run(t *testing.T, script string) string {
	t.Helper()
	g := NewWithT(t)
	keyFile := filepath.Join(r.dir, "key")
	cmd := r.command(t.Context(), script+"\nprintf %s \"${KEY:-}\" >'"+keyFile+"'\n")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	g.Expect(cmd.Run()).To(Succeed(), "%s\n%s%s", script, stdout.String(), stderr.String())
	key, err := os.ReadFile(keyFile)
	g.Expect(err).NotTo(HaveOccurred())
	r.env["KEY"] = string(key)
	r.answer = stdout.Bytes()
	return stdout.String()
}

// calls returns how the programs that only note it were called, and kubectl, each as a line.
func (r *reader) calls(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(r.env["DOCS_CALLS"])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// get reads an object of the reader's, or of another namespace, into one.
func (r *reader) get(t *testing.T, namespace, name string, into any) {
	t.Helper()
	output := r.run(t, "kubectl -n "+namespace+" get "+name+" -o json")
	NewWithT(t).Expect(json.Unmarshal([]byte(output), into)).To(Succeed())
}

// serve runs dev with a project and its Secret as they are in the cluster, where the server's pods would be. The bot is the
// simulator's.
func (r *reader) serve(t *testing.T, namespace, name string) {
	t.Helper()
	g := NewWithT(t)
	var project verifyv1.VerificationProject
	var secret corev1.Secret
	r.get(t, namespace, "vproj/"+name, &project)
	r.get(t, namespace, "secret/"+name, &secret)
	file, err := yaml.Marshal(map[string]any{
		"apiVersion": verifyv1.GroupVersion.String(), "kind": verifyv1.VerificationProjectKind,
		"metadata": map[string]string{"name": name}, "spec": project.Spec,
	})
	g.Expect(err).NotTo(HaveOccurred())
	writeFile(t, filepath.Join(r.dir, "served.yaml"), string(file))
	secret.Data["bot-token"] = []byte("sim_" + project.Spec.Telegram.BotUsername)
	for key, value := range secret.Data {
		writeFile(t, filepath.Join(r.dir, "secrets", name, key), string(value))
	}
	r.startDev(t, "phoneproof dev --project-file served.yaml --secrets-dir secrets")
}

// devCommand is how a script ends as dev.
var devCommand = regexp.MustCompile(`(bin/)?phoneproof dev`)

// startDev runs a script that ends as dev, until the page has been read, and notes where everything is.
func (r *reader) startDev(t *testing.T, script string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(devCommand.FindAllString(script, -1)).To(HaveLen(1))
	// The shell becomes dev, which must not outlive the tests, however they end.
	cmd := r.command(context.WithoutCancel(t.Context()), devCommand.ReplaceAllString(script, "exec $0"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	g.Expect(cmd.Start()).To(Succeed())
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	stop := func() {
		kill()
		_ = cmd.Wait()
	}
	silent := time.AfterFunc(patience, kill)
	defer silent.Stop()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Try it:") {
		words := append(strings.Fields(lines.Text()), "", "", "")
		switch words[0] {
		case "Page":
			r.env["SIM"] = strings.TrimSuffix(words[1], "/")
		case "API":
			if words[1] == "key" {
				r.env["KEY"] = words[2]
			} else {
				r.env["API"], r.env["DOCS_API"] = words[1], strings.TrimPrefix(words[1], "http://")
			}
		}
	}
	if !strings.HasPrefix(lines.Text(), "Try it:") {
		stop()
		t.Fatalf("dev ended, or said nothing for %s: %s", patience, stderr.String())
	}
	r.t.Cleanup(stop)
	var dialer net.Dialer
	g.Eventually(func() error {
		conn, err := dialer.DialContext(t.Context(), "tcp", r.env["DOCS_API"])
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(patience).Should(Succeed())
}
