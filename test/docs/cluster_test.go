package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

const (
	operationsPage   = "docs/operations.md"
	encryptionBegins = "apiVersion: apiserver.config.k8s.io/v1"
	auditBegins      = "apiVersion: audit.k8s.io/v1"
)

// writeOperationsFiles writes the configuration of the API server that operations.md shows.
func writeOperationsFiles(encryption, audit string) error {
	page, err := os.ReadFile(filepath.Join(root, operationsPage))
	if err != nil {
		return fmt.Errorf("read API server's files: %w", err)
	}
	blocks, err := findBlocks(operationsPage, string(page))
	if err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, b := range blocks {
		var file string
		switch {
		case strings.HasPrefix(b.text, encryptionBegins):
			file = encryption
		case strings.HasPrefix(b.text, auditBegins):
			file = audit
		default:
			continue
		}
		if err := os.WriteFile(file, []byte(strings.Replace(b.text, "BASE64-OF-32-RANDOM-BYTES", key, 1)), 0o600); err != nil {
			return fmt.Errorf("write API server's files: %w", err)
		}
	}
	return nil
}

// kubectlBlock returns a check that runs commands with the control plane, with a value for a placeholder.
func kubectlBlock(placeholder, value string) check {
	return func(t *testing.T, r *reader, b block) {
		t.Helper()
		r.needCluster(t)
		NewWithT(t).Expect(b.text).To(ContainSubstring(placeholder))
		r.run(t, strings.ReplaceAll(b.text, placeholder, value))
	}
}

// applyManifest applies a manifest with strict validation, and with flags such as those of a dry run.
func (r *reader) applyManifest(t *testing.T, manifest string, flags string) {
	t.Helper()
	r.needCluster(t)
	writeFile(t, filepath.Join(r.dir, "manifest.yaml"), manifest)
	r.run(t, "kubectl apply --validate=strict "+flags+" -f manifest.yaml")
}

// manifestBlock returns a check that the API server accepts a manifest. The reader saves it under the name, unless that is empty.
func manifestBlock(name string) check {
	return func(t *testing.T, r *reader, b block) {
		t.Helper()
		r.applyManifest(t, b.text, "--dry-run=server")
		if name != "" {
			writeFile(t, filepath.Join(r.dir, name), b.text)
		}
	}
}

// projectManifest returns a minimal project with more fields in its spec.
func projectManifest(t *testing.T, name string, more map[string]any) string {
	t.Helper()
	spec := map[string]any{
		"apiKeys":  []any{map[string]any{"name": "backend", "secretRef": map[string]any{"name": name, "key": "api-key"}}},
		"telegram": map[string]any{"botUsername": "hello_world_bot", "botTokenSecretRef": map[string]any{"name": name, "key": "bot-token"}},
	}
	maps.Copy(spec, more)
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": verifyv1.GroupVersion.String(), "kind": verifyv1.VerificationProjectKind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// projectFragment returns a check that a part of a project is valid after a prefix.
func projectFragment(prefix string) check {
	return func(t *testing.T, r *reader, b block) {
		t.Helper()
		var fragment struct {
			Spec map[string]any `json:"spec"`
		}
		g := NewWithT(t)
		g.Expect(yaml.UnmarshalStrict([]byte(prefix+b.text), &fragment)).To(Succeed())
		g.Expect(fragment.Spec).NotTo(BeEmpty())
		r.applyManifest(t, projectManifest(t, "fragment", fragment.Spec), "--dry-run=server")
	}
}

// consoleBlock runs the commands of a console and compares the output, without the last column of tables, the age.
func consoleBlock(t *testing.T, r *reader, b block) {
	t.Helper()
	r.needCluster(t)
	var commands []string
	shown := map[int][]string{}
	for line := range strings.Lines(b.text) {
		line = strings.TrimSuffix(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command)
		} else {
			shown[len(commands)-1] = append(shown[len(commands)-1], line)
		}
	}
	for i, command := range commands {
		got := strings.Split(strings.TrimSpace(r.run(t, command)), "\n")
		for n, want := range shown[i] {
			NewWithT(t).Expect(len(got)).To(BeNumerically(">", n), command)
			NewWithT(t).Expect(withoutAge(got[n])).To(Equal(withoutAge(want)), command)
		}
	}
	for _, call := range r.recordedCalls(t) {
		for word := range strings.FieldsSeq(call) {
			if name, ok := strings.CutPrefix(word, "deploy/"); ok {
				NewWithT(t).Expect(name).To(Equal(render.Name("shop")))
			}
		}
	}
}

func withoutAge(line string) []string {
	words := strings.Fields(line)
	return words[:max(len(words)-1, 0)]
}

// consoleOfShop runs a console with a project shop.
func consoleOfShop(t *testing.T, r *reader, b block) {
	t.Helper()
	r.applyManifest(t, projectManifest(t, "shop", nil), "")
	consoleBlock(t, r, b)
}

// linksRequest creates a manual request with its link, which a server of its project would write.
func linksRequest(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	r.applyManifest(t, projectManifest(t, "hello", nil), "")
	const link = "https://t.me/hello_world_bot?start=..."
	g.Expect(b.text).To(ContainSubstring("\n" + link + "\n"))
	r.run(t, `kubectl apply -f request.yaml
kubectl patch vreq my-number --subresource=status --type=merge --patch '{"status":{"link":"`+link+`"}}'`)
	consoleBlock(t, r, b)
	output := r.run(t, commandLines(b)[1])
	g.Expect(output).To(Equal(link))
}

// warnsOfRequest creates a manual request for a project that does not exist, in the default namespace.
func warnsOfRequest(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	r.needCluster(t)
	r.copyConfig(t)
	request, err := os.ReadFile(filepath.Join(r.dir, "request.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	writeFile(t, filepath.Join(r.dir, "request.yaml"), strings.Replace(string(request), "{name: hello}", "{name: helo}", 1))
	r.run(t, "kubectl apply --server-side -k config/admission --force-conflicts")
	command, shown, _ := strings.Cut(strings.TrimPrefix(b.text, "$ "), "\n")
	r.env["DOCS_NAMESPACE"] = "default"
	g.Eventually(func() string { // the API server applies a new policy a moment later
		return r.run(t, command+" --dry-run=server 2>&1")
	}).WithTimeout(patience).Should(ContainSubstring("Warning"))
	g.Expect(strings.Fields(r.run(t, command+" 2>&1"))).To(Equal(strings.Fields(shown)))
}

// copyConfig copies the folder config, and what it refers to, into the reader's folder.
func (r *reader) copyConfig(t *testing.T) {
	t.Helper()
	config := filepath.Join(r.dir, "config")
	if _, err := os.Stat(config); err != nil {
		for _, folder := range []string{"config", "charts/phoneproof/files"} {
			NewWithT(t).Expect(os.CopyFS(filepath.Join(r.dir, folder), os.DirFS(filepath.Join(root, folder)))).To(Succeed())
		}
	}
}

// installsWithoutHelm checks that the API server accepts the whole installation.
func installsWithoutHelm(t *testing.T, r *reader, b block) {
	t.Helper()
	r.needCluster(t)
	r.copyConfig(t)
	r.run(t, b.text)
	NewWithT(t).Expect(r.run(t, "kubectl -n phoneproof-system get deployments -o name")).To(Equal("deployment.apps/phoneproof-operator\n"))
}

// choosesImage sets another image, which the operator passes on to the servers.
func choosesImage(t *testing.T, r *reader, b block) {
	t.Helper()
	skipWithoutHelm(t)
	g := NewWithT(t)
	tool := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/helm/go.mod", "-n", "kustomize")
	tool.Dir = root
	path, err := tool.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(strings.TrimSpace(string(path)), filepath.Join(r.dir, "path", "kustomize"))).To(Succeed())
	r.run(t, b.text)
	deployment := r.run(t, "kubectl kustomize config/manager")
	g.Expect(strings.Count(deployment, "registry.example.com/phoneproof:1.2.3")).To(Equal(2), "of the operator, and of the servers")
}

// createRequest creates a manual request of a number.
func (r *reader) createRequest(t *testing.T, name, number string) {
	t.Helper()
	r.applyManifest(t, projectManifest(t, "hello", nil), "")
	r.applyManifest(t, fmt.Sprintf(`{"apiVersion": %q, "kind": "VerificationRequest", "metadata": {"name": %q},
		"spec": {"projectRef": {"name": "hello"}, "phoneNumber": %q, "method": "Telegram"}}`, verifyv1.GroupVersion, name, number), "")
}

// encryptsRequests checks that the API server, which runs with the block's configuration, encrypts requests.
func encryptsRequests(t *testing.T, r *reader, _ block) {
	t.Helper()
	g := NewWithT(t)
	r.createRequest(t, "encrypted", "+4915112345678")
	plane, err := theControlPlane()
	g.Expect(err).NotTo(HaveOccurred())
	key := "/registry/" + verifyv1.GroupVersion.Group + "/verificationrequests/" + r.namespace + "/encrypted"
	question, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	g.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, plane.EtcdURL()+"/v3/kv/range", bytes.NewReader(question))
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	g.Expect(json.Unmarshal(content, &answer)).To(Succeed())
	g.Expect(answer.Kvs).To(HaveLen(1))
	g.Expect(string(answer.Kvs[0].Value)).To(HavePrefix("k8s:enc:secretbox:v1:key1:"))
}

// auditsRequests checks that the API server, which runs with the block's policy, logs requests without their numbers.
func auditsRequests(t *testing.T, r *reader, _ block) {
	t.Helper()
	g := NewWithT(t)
	r.createRequest(t, "audited", "+4915112345679")
	plane, err := theControlPlane()
	g.Expect(err).NotTo(HaveOccurred())
	log, err := os.ReadFile(plane.auditLog)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(log)).To(And(ContainSubstring(`"name":"audited"`), Not(ContainSubstring("4915112345679"))))
}

// skipWithoutHelm skips what needs Helm or kustomize.
func skipWithoutHelm(t *testing.T) {
	t.Helper()
	if os.Getenv("PHONEPROOF_TEST_HELM") == "" {
		t.Skip("it needs Helm or kustomize, which take minutes to compile: make test PHONEPROOF_TEST_HELM=1 runs it")
	}
}

// checkUninstall deletes the remains of an installation in a dry run, which fails for objects that do not exist.
func checkUninstall(t *testing.T, r *reader, b block) {
	t.Helper()
	skipWithoutHelm(t)
	r.needCluster(t)
	r.copyConfig(t)
	r.run(t, "kubectl apply --server-side -k config/default")
	r.run(t, strings.Join(commandLines(b), "\n"))
	g := NewWithT(t)
	g.Expect(r.recordedCalls(t)).To(ContainElement("helm uninstall phoneproof -n phoneproof-system"))
	var deleted []string
	for _, call := range r.recordedCalls(t) {
		arguments, ok := strings.CutPrefix(call, "kubectl delete ")
		if words := strings.Fields(arguments); ok && words[0] != "vproj" {
			for kind := range strings.SplitSeq(strings.Replace(words[0], "crd", "customresourcedefinition", 1), ",") {
				for _, name := range words[1:] {
					deleted = append(deleted, kind+"/"+name)
				}
			}
		}
	}
	g.Expect(deleted).To(ConsistOf(keptObjects(t)))
}

// keptObjects returns the objects of the chart that Helm keeps, as kind/name.
func keptObjects(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	template := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/helm/go.mod", "helm.sh/helm/v4/cmd/helm",
		"template", "phoneproof", "charts/phoneproof", "--kube-version", "1.32.0")
	template.Dir = root
	rendered, err := template.Output()
	g.Expect(err).NotTo(HaveOccurred())
	var kept []string
	for document := range strings.SplitSeq(string(rendered), "\n---\n") {
		var object metav1.PartialObjectMetadata
		g.Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
		if object.Annotations["helm.sh/resource-policy"] == "keep" {
			kept = append(kept, strings.ToLower(object.Kind)+"/"+object.Name)
		}
	}
	return kept
}

// removesRate runs the command that removes a rate from a project.
func removesRate(t *testing.T, r *reader, b block) {
	t.Helper()
	rate := map[string]any{"perKey": map[string]any{"requests": 600, "period": "1m"}}
	r.applyManifest(t, projectManifest(t, "shop", map[string]any{"rateLimit": rate}), "")
	kubectlBlock("NAME", "shop")(t, r, b)
	NewWithT(t).Expect(r.run(t, "kubectl get vproj shop -o jsonpath='{.spec.rateLimit.perKey}'")).To(BeEmpty())
}

// replacesKey replaces the first API key of a project, and leaves all else of its entry.
func replacesKey(t *testing.T, r *reader, b block) {
	t.Helper()
	keys := []map[string]any{{"name": "backend", "secretRef": map[string]string{"name": "shop", "key": "api-key"}, "scopes": []string{"Read"}}}
	r.applyManifest(t, projectManifest(t, "shop", map[string]any{"apiKeys": keys}), "")
	kubectlBlock("NAME", "shop")(t, r, b)
	NewWithT(t).Expect(r.run(t, "kubectl get vproj shop -o jsonpath='{.spec.apiKeys}'")).To(MatchJSON(
		`[{"name": "backend-2", "secretRef": {"name": "shop-backend-2", "key": "api-key"}, "scopes": ["Read"]}]`))
}

// movesDatabase runs the commands of a move between two databases; the old one has a table of ours and another table.
func movesDatabase(t *testing.T, r *reader, b block) {
	t.Helper()
	lookPathOrSkip(t, "pg_dump")
	lookPathOrSkip(t, "psql")
	g := NewWithT(t)
	server, err := pgserver.Start(t.Context(), pgserver.Options{})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(server.Stop()).To(Succeed()) }()
	for _, statement := range []string{"CREATE DATABASE former", "CREATE DATABASE new"} {
		g.Expect(server.Exec(t.Context(), "postgres", statement)).To(Succeed())
	}
	g.Expect(server.Exec(t.Context(), "former", "CREATE TABLE phoneproof_requests (id text); CREATE TABLE another (id text)")).To(Succeed())
	r.env["FORMER_URI"], r.env["NEW_URI"] = server.URI("former"), server.URI("new")

	r.applyManifest(t, projectManifest(t, "shop", nil), "")
	r.run(t, `kubectl create secret generic shop-db-app --from-literal=uri="$FORMER_URI"`)
	r.run(t, strings.Join(commandLines(b), "\n"))
	g.Expect(r.run(t, "kubectl get secret shop-db-app -o jsonpath='{.data.uri}' | base64 -d")).To(Equal(server.URI("new")))
	g.Expect(r.run(t, "kubectl get vproj shop -o jsonpath='{.spec.suspend}'")).To(Equal("false"))
	g.Expect(server.Exec(t.Context(), "new", "SELECT id FROM phoneproof_requests")).To(Succeed())
	g.Expect(server.Exec(t.Context(), "new", "SELECT id FROM another")).NotTo(Succeed())
}
