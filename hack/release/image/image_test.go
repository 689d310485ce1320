package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	. "github.com/onsi/gomega"
)

const created = "2026-11-25T12:00:00Z"

// runImage packs programs and returns the archive's path and what was printed.
func runImage(t *testing.T, programs map[string]string, more ...string) (archive, printed string, err error) {
	t.Helper()
	dir := t.TempDir()
	archive = filepath.Join(dir, "out", "image.tar")
	args := append([]string{"-out", archive, "-name", "example.com:5000/phoneproof:1", "-created", created, "-label", "a.b=c=d"}, more...)
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		if content, found := programs[platform]; found {
			file := filepath.Join(dir, strings.ReplaceAll(platform, "/", "-"))
			NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
			args = append(args, platform+"="+file)
		}
	}
	var out bytes.Buffer
	err = run(args, &out)
	return archive, out.String(), err
}

// openLayout unpacks an archive into a folder and opens it.
func openLayout(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	file, err := os.Open(archive)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(file.Close()).To(Succeed()) }()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		content, err := io.ReadAll(r)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	}
	path, err := layout.FromPath(dir)
	g.Expect(err).NotTo(HaveOccurred())
	index, err := path.ImageIndex()
	g.Expect(err).NotTo(HaveOccurred())
	return index
}

// expectProgram checks an image: its platform, user, labels and the only file in it.
func expectProgram(t *testing.T, image v1.Image, arch, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(validate.Image(image)).To(Succeed())
	config, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.OS + "/" + config.Architecture).To(Equal("linux/" + arch))
	g.Expect(config.Config.User).To(Equal("65532:65532"), "without a name, as runAsNonRoot needs it")
	g.Expect(config.Config.Entrypoint).To(Equal([]string{"/phoneproof"}))
	g.Expect(config.Config.Labels).To(Equal(map[string]string{"a.b": "c=d"}))
	g.Expect(config.Created.UTC().Format("2006-01-02T15:04:05Z")).To(Equal(created))
	files := tar.NewReader(mutate.Extract(image))
	header, err := files.Next()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(*header).To(And(HaveField("Name", "phoneproof"), HaveField("Mode", BeEquivalentTo(0o555)), HaveField("Uid", 0)))
	g.Expect(header.ModTime.UTC().Format("2006-01-02T15:04:05Z")).To(Equal(created))
	g.Expect(io.ReadAll(files)).To(BeEquivalentTo(content))
	_, err = files.Next()
	g.Expect(err).To(MatchError(io.EOF))
}

func TestImage_ofOnePlatform(t *testing.T) {
	g := NewWithT(t)
	archive, printed, err := runImage(t, map[string]string{"linux/arm64": "program"})
	g.Expect(err).NotTo(HaveOccurred())
	index := openLayout(t, archive)
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(1))
	only := manifest.Manifests[0]
	g.Expect(only.MediaType).To(Equal(types.OCIManifestSchema1))
	g.Expect(only.Annotations).To(Equal(map[string]string{
		"io.containerd.image.name": "example.com:5000/phoneproof:1", "org.opencontainers.image.ref.name": "1",
	}))
	image, err := index.Image(only.Digest)
	g.Expect(err).NotTo(HaveOccurred())
	expectProgram(t, image, "arm64", "program")
	g.Expect(os.ReadFile(archive + ".digest")).To(BeEquivalentTo(only.Digest.String() + "\n"))
	g.Expect(printed).To(ContainSubstring("linux/arm64, " + only.Digest.String()))
}

func TestImage_ofSeveralPlatforms(t *testing.T) {
	g := NewWithT(t)
	archive, _, err := runImage(t, map[string]string{"linux/amd64": "one", "linux/arm64": "two"})
	g.Expect(err).NotTo(HaveOccurred())
	outer := openLayout(t, archive)
	manifest, err := outer.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manifest.Manifests).To(HaveLen(1))
	g.Expect(os.ReadFile(archive + ".digest")).To(BeEquivalentTo(manifest.Manifests[0].Digest.String() + "\n"))
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(validate.Index(index)).To(Succeed())
	images, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(images.MediaType).To(Equal(types.OCIImageIndex))
	g.Expect(images.Annotations).To(Equal(map[string]string{"a.b": "c=d"}))
	g.Expect(images.Manifests).To(HaveLen(2))
	for i, want := range []struct{ arch, content string }{{"amd64", "one"}, {"arm64", "two"}} {
		g.Expect(images.Manifests[i].Platform).To(Equal(&v1.Platform{OS: "linux", Architecture: want.arch}))
		image, err := index.Image(images.Manifests[i].Digest)
		g.Expect(err).NotTo(HaveOccurred())
		expectProgram(t, image, want.arch, want.content)
	}
}

func TestImage_sameBytesEachTime(t *testing.T) {
	g := NewWithT(t)
	programs := map[string]string{"linux/amd64": "one", "linux/arm64": "two"}
	first, _, err := runImage(t, programs)
	g.Expect(err).NotTo(HaveOccurred())
	second, _, err := runImage(t, programs)
	g.Expect(err).NotTo(HaveOccurred())
	one, err := os.ReadFile(first)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(second)).To(Equal(one))
}

func TestImage_refuses(t *testing.T) {
	for want, test := range map[string]struct {
		programs map[string]string
		more     []string
	}{
		"at least one OS/ARCH=BINARY":              {},
		`"example.com:5000/phoneproof" has no tag`: {map[string]string{"linux/amd64": "x"}, []string{"-name", "example.com:5000/phoneproof"}},
		"want KEY=VALUE":                           {map[string]string{"linux/amd64": "x"}, []string{"-label", "novalue"}},
		`not "windows"`:                            {nil, []string{"windows"}},
	} {
		_, _, err := runImage(t, test.programs, test.more...)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
	_, _, err := runImage(t, map[string]string{"linux/amd64": strings.Repeat("x", 1_000_001)}, "-max-mb", "1")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("2 MB, more than the 1 MB it may be")))
}

// Who builds from the Dockerfile gets the image that is released: its user, its entry point and its labels.
func TestDockerfile_buildsTheSameImage(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../../Dockerfile")
	g.Expect(err).NotTo(HaveOccurred())
	dockerfile := string(content)
	g.Expect(dockerfile).To(ContainSubstring("\nUSER " + user + "\n"))

	archive, _, err := runImage(t, map[string]string{"linux/amd64": "a program"})
	g.Expect(err).NotTo(HaveOccurred())
	index := openLayout(t, archive)
	manifest, err := index.IndexManifest()
	g.Expect(err).NotTo(HaveOccurred())
	image, err := index.Image(manifest.Manifests[0].Digest)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := image.ConfigFile()
	g.Expect(err).NotTo(HaveOccurred())
	entrypoint, err := json.Marshal(config.Config.Entrypoint)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dockerfile).To(ContainSubstring("\nENTRYPOINT " + string(entrypoint) + "\n"))

	script, err := os.ReadFile("../../image.sh")
	g.Expect(err).NotTo(HaveOccurred())
	ours, theirs := labelsOf(string(script), `(?m)^\t"(\w+)=`), labelsOf(dockerfile, `org\.opencontainers\.image\.(\w+)=`)
	g.Expect(ours).NotTo(BeEmpty())
	g.Expect(theirs).To(ConsistOf(ours))
}

func labelsOf(content, pattern string) []string {
	var names []string
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(content, -1) {
		names = append(names, found[1])
	}
	return names
}
