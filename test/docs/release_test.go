package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// imageDigest is that of the image of makeReleaseFiles.
const imageDigest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"

// makeReleaseFiles makes install.yaml as hack/release.sh does, in the reader's folder. There is no operator before the test and after
// it, because that of another page's installation has another selector.
func (r *reader) makeReleaseFiles(t *testing.T) {
	t.Helper()
	skipWithoutHelm(t)
	remove := func() {
		command := `"$DOCS_KUBECTL" -n phoneproof-system delete --ignore-not-found deployment phoneproof-operator`
		output, err := r.newCommand(context.WithoutCancel(t.Context()), command).CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(output))
	}
	remove()
	t.Cleanup(remove)
	if _, err := os.Stat(filepath.Join(r.dir, "install.yaml")); err == nil {
		return
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c",
		`source hack/release.sh; number=0.1.0 epoch=0 out=$OUT work=$OUT/work; mkdir $work; echo `+imageDigest+` >$out/phoneproof_0.1.0_image.tar.digest
		build_chart; write_manifest`)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "OUT="+r.dir)
	output, err := cmd.CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(output))
}

// checksSignature signs the checksums of a file as a release does, and runs the reader's commands on them.
func checksSignature(t *testing.T, r *reader, b block) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	g := NewWithT(t)
	makes := r.newCommand(t.Context(), `echo image >image.tar; sha256sum image.tar >SHA256SUMS
		ssh-keygen -q -t ed25519 -N '' -f key; echo "release@phoneproof $(cat key.pub)" >allowed_signers`)
	output, err := makes.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	dir, err := filepath.Abs(r.dir)
	g.Expect(err).NotTo(HaveOccurred())
	sign := exec.CommandContext(t.Context(), "bash", "-c", `source hack/release.sh; out=$OUT work=$OUT; SIGN_KEY=$OUT/key; sign`)
	sign.Dir = root
	sign.Env = append(os.Environ(), "OUT="+dir)
	output, err = sign.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(r.run(t, b.text)).To(And(ContainSubstring("image.tar: OK"), ContainSubstring("Good ")))
	writeFile(t, filepath.Join(r.dir, "image.tar"), "another image")
	g.Expect(r.newCommand(t.Context(), b.text).Run()).NotTo(Succeed())
}

// releaseFile matches the files of a release that commands name.
var releaseFile = regexp.MustCompile(`phoneproof_[0-9.]+_image\.tar|phoneproof-[0-9.]+\.tgz`)

// runRecorded runs commands with recording scripts in the place of helm and skopeo, and checks the values that they set.
func runRecorded(t *testing.T, r *reader, text string) (calls []string) {
	t.Helper()
	g := NewWithT(t)
	var values map[string]any
	content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof/values.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(content, &values)).To(Succeed())
	writeFile(t, r.env["DOCS_CALLS"], "") // without those of the blocks before
	r.run(t, text)
	calls = r.recordedCalls(t)
	for _, call := range calls {
		g.Expect(releaseFile.MatchString(call)).To(BeTrue(), call)
		words := strings.Fields(call)
		for i, word := range words {
			if word == "--set" {
				checkValue(t, values, words[i+1])
			}
		}
	}
	return calls
}

func installsRelease(t *testing.T, r *reader, b block) {
	t.Helper()
	NewWithT(t).Expect(runRecorded(t, r, b.text)).To(HaveLen(2))
}

// unpacksImage checks that the image's archive becomes the layout that crane pushes.
func unpacksImage(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	program := filepath.Join(r.dir, "program")
	writeFile(t, program, "program")
	pack := exec.CommandContext(t.Context(), "hack/image.sh", "example.com/phoneproof:0.1.0",
		filepath.Join(r.dir, "phoneproof_0.1.0_image.tar"), "v0.1.0", "linux/amd64="+program, "linux/arm64="+program)
	pack.Dir = root
	output, err := pack.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	r.run(t, b.text)
	g.Expect(r.recordedCalls(t)).To(HaveExactElements(
		"crane push image REGISTRY/phoneproof:0.1.0", HavePrefix("helm install phoneproof phoneproof-0.1.0.tgz ")))
	g.Expect(filepath.Join(r.dir, "image", "index.json")).To(BeARegularFile())
}

func upgradesRelease(t *testing.T, r *reader, b block) {
	t.Helper()
	lines := commandLines(b)
	g := NewWithT(t)
	g.Expect(lines).To(HaveLen(2))
	g.Expect(runRecorded(t, r, lines[0])).To(ConsistOf(HavePrefix("helm upgrade phoneproof phoneproof-")))
	r.needCluster(t)
	r.makeReleaseFiles(t)
	r.run(t, lines[1])
}

// operatorImages is what a reader asks for the operator's image, and the one that it gives its servers.
const operatorImages = `kubectl -n phoneproof-system get deployment phoneproof-operator -o yaml`

// installsFromRegistry checks that the whole installation takes its image from the registry.
func installsFromRegistry(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	r.needCluster(t)
	r.makeReleaseFiles(t)
	r.run(t, strings.ReplaceAll(b.text, "REGISTRY", "registry.example.com"))
	deployment := r.run(t, operatorImages)
	g.Expect(strings.Count(deployment, "registry.example.com/phoneproof:0.1.0@"+imageDigest+"\n")).To(Equal(2), "of the operator, and of the servers")
	g.Expect(deployment).NotTo(ContainSubstring("ghcr.io/"))
}

// installsManifest checks that the API server accepts the whole installation in one command, whose CRDs come first.
func installsManifest(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	r.needCluster(t)
	r.makeReleaseFiles(t)
	apply, status, found := strings.Cut(b.text, "\n")
	g.Expect(found).To(BeTrue())
	g.Expect(status).To(ContainSubstring("rollout status deployment/phoneproof-operator"), "no pods run here")
	r.run(t, apply)
	g.Expect(strings.Count(r.run(t, operatorImages), "ghcr.io/phoneproof/phoneproof:0.1.0\n")).To(Equal(2), "without a digest, which nodes do not know")
	r.run(t, "kubectl get vproj,vreq")
	manifest, err := os.ReadFile(filepath.Join(r.dir, "install.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(manifest)).NotTo(Or(ContainSubstring("managed-by: Helm"), ContainSubstring("helm.sh/chart")))
	var kinds []string
	for _, kind := range regexp.MustCompile(`(?m)^kind: (\w+)$`).FindAllStringSubmatch(string(manifest), 3) {
		kinds = append(kinds, kind[1])
	}
	g.Expect(kinds).To(Equal([]string{"Namespace", "CustomResourceDefinition", "CustomResourceDefinition"}))
}
