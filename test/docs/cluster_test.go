package docs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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

// manifestBlock checks that the API server accepts a manifest.
func manifestBlock(t *testing.T, r *reader, b block) {
	t.Helper()
	r.applyManifest(t, b.text, "--dry-run=server")
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

// createRequest creates a manual request of a number.
func (r *reader) createRequest(t *testing.T, name, number string) {
	t.Helper()
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
