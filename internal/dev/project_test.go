package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// TestFindFiles_takesWhatIsGivenLater in place of what was made up, as the server does, and shows no value of it.
func TestFindFiles_takesWhatIsGivenLater(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	o := Options{ProjectFile: filepath.Join(dir, "project.yaml"), SecretsDir: filepath.Join(dir, "given")}
	g.Expect(os.WriteFile(o.ProjectFile, fmt.Appendf(nil, madeUpProject, "http://127.0.0.1:1", "http://127.0.0.1:2"), 0o600)).To(Succeed())
	g.Expect(os.MkdirAll(filepath.Join(o.SecretsDir, "dev"), 0o700)).To(Succeed())
	files, err := o.findFiles()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files.readPageKey()).To(HavePrefix("pp_"))
	g.Expect(files.showSecret(files.keys[0].SecretRef)).To(Equal(files.readPageKey()))
	g.Expect(os.WriteFile(filepath.Join(o.SecretsDir, "dev", "api-key"), []byte("given\n"), 0o600)).To(Succeed())
	g.Expect(files.readPageKey()).To(Equal("given"))
	g.Expect(files.showSecret(files.keys[0].SecretRef)).To(Equal("$(cat '" + filepath.Join(o.SecretsDir, "dev", "api-key") + "')"))
}
