package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const modified = "2026-11-25T12:00:00Z"

func writeFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), mode)).To(Succeed())
	// Neither the time of a file nor its other bits may reach an archive.
	g.Expect(os.Chtimes(path, time.Now(), time.Now().Add(-time.Duration(len(path))*time.Hour))).To(Succeed())
	return path
}

func TestPack_tarball(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	program := writeFile(t, filepath.Join(dir, "program-linux"), "program", 0o700)
	notes := writeFile(t, filepath.Join(dir, "LICENSE"), "licence", 0o600)
	out := filepath.Join(dir, "a.tar.gz")
	g.Expect(run(t.Context(), []string{"pack", "-out", out, "-time", modified, "program=" + program, notes})).To(Succeed())
	content, err := os.ReadFile(out)
	g.Expect(err).NotTo(HaveOccurred())
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	g.Expect(err).NotTo(HaveOccurred())
	archive := tar.NewReader(unpacked)
	for _, want := range []struct {
		name    string
		mode    int64
		content string
	}{{"program", 0o755, "program"}, {"LICENSE", 0o644, "licence"}} {
		header, err := archive.Next()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(header.Name).To(Equal(want.name))
		g.Expect(header.Mode).To(Equal(want.mode))
		g.Expect(header.ModTime.UTC().Format(time.RFC3339)).To(Equal(modified))
		g.Expect(io.ReadAll(archive)).To(BeEquivalentTo(want.content))
	}
	_, err = archive.Next()
	g.Expect(err).To(MatchError(io.EOF))
}

func TestPack_zip(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	program := writeFile(t, filepath.Join(dir, "program"), "program", 0o755)
	out := filepath.Join(dir, "a.zip")
	g.Expect(run(t.Context(), []string{"pack", "-out", out, "-time", modified, "program.exe=" + program})).To(Succeed())
	archive, err := zip.OpenReader(out)
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(archive.Close()).To(Succeed()) }()
	g.Expect(archive.File).To(HaveLen(1))
	g.Expect(archive.File[0].Name).To(Equal("program.exe"))
	g.Expect(archive.File[0].Modified.UTC().Format(time.RFC3339)).To(Equal(modified))
}

func TestPack_sameBytesFromAnotherFolder(t *testing.T) {
	for _, format := range []string{"tar.gz", "zip"} {
		g := NewWithT(t)
		var archives [][]byte
		for _, mode := range []os.FileMode{0o600, 0o644} {
			dir := t.TempDir()
			notes := writeFile(t, filepath.Join(dir, "deeper", "LICENSE"), "licence", mode)
			out := filepath.Join(dir, "a."+format)
			g.Expect(run(t.Context(), []string{"pack", "-out", out, "-time", modified, notes})).To(Succeed())
			content, err := os.ReadFile(out)
			g.Expect(err).NotTo(HaveOccurred())
			archives = append(archives, content)
		}
		g.Expect(archives[1]).To(Equal(archives[0]), format)
	}
}

type component struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

func TestSBOM_ofThisProgram(t *testing.T) {
	g := NewWithT(t)
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	out := filepath.Join(t.TempDir(), "sbom.json")
	g.Expect(run(t.Context(), []string{"sbom", "-out", out, "-version", "v1.2.3", program})).To(Succeed())
	content, err := os.ReadFile(out)
	g.Expect(err).NotTo(HaveOccurred())
	var bom struct {
		Format       string `json:"bomFormat"`
		SpecVersion  string `json:"specVersion"`
		SerialNumber string `json:"serialNumber"`
		Metadata     struct {
			Timestamp string    `json:"timestamp"`
			Component component `json:"component"`
		} `json:"metadata"`
		Components []component `json:"components"`
	}
	g.Expect(json.Unmarshal(content, &bom)).To(Succeed())
	g.Expect(bom.Format + " " + bom.SpecVersion).To(Equal("CycloneDX 1.6"))
	g.Expect(bom.SerialNumber+bom.Metadata.Timestamp).To(BeEmpty(), "they would differ each time")
	g.Expect(bom.Metadata.Component.Name + "@" + bom.Metadata.Component.Version).To(Equal("github.com/phoneproof/phoneproof/hack/release@v1.2.3"))
	g.Expect(bom.Components).To(ContainElements(HaveField("Name", "github.com/CycloneDX/cyclonedx-gomod"), HaveField("Name", "std")))
	g.Expect(bom.Components).To(HaveEach(HaveField("PURL", HavePrefix("pkg:golang/"))))
}

func TestLicenses_ofThisProgram(t *testing.T) {
	g := NewWithT(t)
	program, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	out := filepath.Join(t.TempDir(), "licenses")
	g.Expect(run(t.Context(), []string{"licenses", "-out", out, program})).To(Succeed())
	content, err := os.ReadFile(out)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(And(ContainSubstring("\n==== Go: LICENSE\n\nCopyright 2009 The Go Authors."),
		MatchRegexp(`\n==== github.com/CycloneDX/cyclonedx-go@v[0-9.]+: NOTICE\n`)))
}

func TestLicenses_failWithoutOne(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "licenses.go"), "package licenses", 0o600)
	g.Expect(appendLicenses(new(bytes.Buffer), "example.com/a@v1", dir)).To(MatchError(ContainSubstring("example.com/a@v1 has no licence")))
	for _, name := range []string{"LICENSE", "LICENCE.md", "COPYING", "license-mit", "Notice.txt"} {
		var all bytes.Buffer
		g.Expect(appendLicenses(&all, "a", filepath.Dir(writeFile(t, filepath.Join(t.TempDir(), name), "text", 0o600)))).To(Succeed())
		g.Expect(all.String()).To(Equal("\n==== a: " + name + "\n\ntext\n"))
	}
}
