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

// kubectlScript is the kubectl of a reader of the pages. It is the real one, except that no pods run, and awaited conditions become true.
const kubectlScript = `#!/bin/sh
set -eu
echo "kubectl $*" >>"$DOCS_CALLS"
namespace=$DOCS_NAMESPACE object= condition= previous=
for word; do
	case $previous in -n | --namespace) namespace=$word ;; esac
	case $word in
	vproj/*) object=$word ;;
	--for=condition=*) condition=${word#--for=condition=} ;;
	esac
	previous=$word
done
true_condition() {
	printf '{"type":"%s","status":"True","reason":"%s","message":"","lastTransitionTime":"2026-11-21T04:23:41Z"}' "$1" "$1"
}
case " $* " in *" -n "*) ;; *) set -- --namespace "$namespace" "$@" ;; esac
case " $* " in
*" port-forward "*) exit ;;
*" wait "*--for=condition=*)
	"$DOCS_KUBECTL" --namespace "$namespace" patch "$object" --subresource=status --type=merge --patch \
		'{"status":{"observedGeneration":1,"conditions":['"$(true_condition "$condition"),$(true_condition Available)"']}}' >/dev/null
	;;
esac
exec "$DOCS_KUBECTL" "$@"
`

// curlScript is curl that replaces the forwarded port 8080 by another port.
const curlScript = `#!/bin/sh
exec "$DOCS_CURL" --connect-to "localhost:8080:$DOCS_API" "$@"
`

// recordScript records its calls and does nothing.
const recordScript = `#!/bin/sh
echo "$(basename "$0") $*" >>"$DOCS_CALLS"
`

// reader runs the commands of a page, with its own folder and namespace and the results of earlier commands.
type reader struct {
	t         *testing.T // the test of the page
	dir       string     // with bin/phoneproof
	namespace string
	env       map[string]string
	answer    []byte // output of the last command
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
	r.env["DOCS_CURL"], _ = exec.LookPath("curl") // its users check it
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

// newCommand returns a shell that runs a script as the reader.
func (r *reader) newCommand(ctx context.Context, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-euc", script)
	cmd.Dir = r.dir
	cmd.Env = os.Environ()
	for name, value := range r.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// run runs a script that must succeed and returns its output. Its variable KEY is kept for the next script.
func (r *reader) run(t *testing.T, script string) string {
	t.Helper()
	g := NewWithT(t)
	keyFile := filepath.Join(r.dir, "key")
	cmd := r.newCommand(t.Context(), script+"\nprintf %s \"${KEY:-}\" >'"+keyFile+"'\n")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	g.Expect(cmd.Run()).To(Succeed(), "%s\n%s%s", script, stdout.String(), stderr.String())
	key, err := os.ReadFile(keyFile)
	g.Expect(err).NotTo(HaveOccurred())
	r.env["KEY"] = string(key)
	r.answer = stdout.Bytes()
	return stdout.String()
}

// recordedCalls returns the calls of the recording programs and of kubectl, one per line.
func (r *reader) recordedCalls(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(r.env["DOCS_CALLS"])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// getObject reads an object of a namespace into a value.
func (r *reader) getObject(t *testing.T, namespace, name string, into any) {
	t.Helper()
	output := r.run(t, "kubectl -n "+namespace+" get "+name+" -o json")
	NewWithT(t).Expect(json.Unmarshal([]byte(output), into)).To(Succeed())
}

// serveProject runs dev with a project and its Secret from the cluster, in place of the server's pods. The bot is the
// simulator's.
func (r *reader) serveProject(t *testing.T, namespace, name string) {
	t.Helper()
	g := NewWithT(t)
	var project verifyv1.VerificationProject
	var secret corev1.Secret
	r.getObject(t, namespace, "vproj/"+name, &project)
	r.getObject(t, namespace, "secret/"+name, &secret)
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

// devCommand matches the command that starts dev at the end of a script.
var devCommand = regexp.MustCompile(`(bin/)?phoneproof dev`)

// startDev runs a script that ends with dev, until the end of the page, and records the addresses.
func (r *reader) startDev(t *testing.T, script string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(devCommand.FindAllString(script, -1)).To(HaveLen(1))
	// The shell execs dev, which must not outlive the tests, however they end.
	cmd := r.newCommand(context.WithoutCancel(t.Context()), devCommand.ReplaceAllString(script, "exec $0"))
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+r.dir) // it keeps made-up secrets there
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
		t.Fatalf("dev ended, or printed nothing for %s: %s", patience, stderr.String())
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
