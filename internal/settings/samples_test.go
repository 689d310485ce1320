package settings

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// TestSamples_areNoSecrets checks that the public values in config/samples are rejected for their prefix, and API keys and
// webhook secrets for their length as well. The database rejects the placeholder in its URI.
func TestSamples_areNoSecrets(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/*.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	projects := 0
	for _, file := range files {
		project, values := readSample(t, file)
		if project == nil {
			continue
		}
		projects++
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			for _, u := range listUses(&project.Spec) {
				value, found := values[u.ref]
				g.Expect(found).To(BeTrue(), "%s: the sample has no such Secret", u.field)
				if u.kind == kindDatabase {
					g.Expect(string(value)).To(ContainSubstring(":REPLACE@"), u.field)
					continue
				}
				_, reason := u.kind.acceptValue(value)
				g.Expect(reason).To(Equal(ReasonPlaceholder), u.field)
				switch u.kind {
				case kindAPIKey:
					_, reason = acceptAPIKey(value)
					g.Expect(reason).To(Equal(ReasonTooShort), u.field)
				case kindWebhook:
					_, reason = acceptWebhook(value)
					g.Expect(reason).To(Equal(ReasonWebhookSecretTooShort), u.field)
				default: // others have no minimum length
				}
			}
		})
	}
	NewWithT(t).Expect(projects).To(BeNumerically(">=", 5))
}

// readSample returns the project of a file, or nil, and the values of its Secrets.
func readSample(t *testing.T, file string) (*verifyv1.VerificationProject, map[verifyv1.SecretKeyRef][]byte) {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	var project *verifyv1.VerificationProject
	values := map[verifyv1.SecretKeyRef][]byte{}
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		g.Expect(yaml.Unmarshal(document, &kind)).To(Succeed())
		switch kind.Kind {
		case "Secret":
			var secret corev1.Secret
			g.Expect(yaml.UnmarshalStrict(document, &secret)).To(Succeed())
			for key, value := range secret.StringData {
				values[verifyv1.SecretKeyRef{Name: secret.Name, Key: key}] = []byte(value)
			}
		case verifyv1.VerificationProjectKind:
			project = &verifyv1.VerificationProject{}
			g.Expect(yaml.UnmarshalStrict(document, project)).To(Succeed())
			project.Default()
		}
	}
	return project, values
}
