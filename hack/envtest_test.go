package hack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// fakeGo builds Kubernetes by writing files that print "built"; everything else is left to the real go command.
const fakeGo = `#!/bin/sh
case "$*" in
"-C hack/kube build "*) ;;
*) exec %q "$@" ;;
esac
while [ "$1" != -o ]; do shift; done
folder=$2
shift 2
for package; do
	case $package in go.etcd.io/*) package=server ;; esac
	printf '#!/bin/sh\necho built\n' >"$folder/${package##*/}"
	chmod +x "$folder/${package##*/}"
done
`

// checkout is what envtest-assets.sh needs of a checkout, and an index on loopback.
type checkout struct {
	Gomega

	t       *testing.T
	dir     string
	env     []string
	archive []byte
	version string
	// How the index and the archive are answered.
	index, download http.HandlerFunc
	server          *httptest.Server
}

func newCheckout(t *testing.T) *checkout {
	t.Helper()
	c := &checkout{Gomega: NewWithT(t), t: t, version: kubernetesVersion(t)}
	c.archive = packPrograms(t, "etcd", "kube-apiserver", "kubectl")
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/archive" {
			c.download(w, r)
			return
		}
		c.index(w, r)
	}))
	t.Cleanup(c.server.Close)
	c.index = func(w http.ResponseWriter, _ *http.Request) { c.writeIndex(w, c.version, c.archive) }
	c.download = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(c.archive) }
	tools := t.TempDir()
	realGo, err := exec.LookPath("go")
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(os.WriteFile(filepath.Join(tools, "go"), fmt.Appendf(nil, fakeGo, realGo), 0o700)).To(Succeed())
	c.env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "ENVTEST_INDEX="+c.server.URL, "PATH="+tools+":"+os.Getenv("PATH"), "KUBE=")
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // which follow from the variables that the tests change
		value, err := exec.CommandContext(t.Context(), realGo, "env", name).Output()
		c.Expect(err).NotTo(HaveOccurred())
		c.env = append(c.env, name+"="+strings.TrimSpace(string(value)))
	}
	c.makeClone()
	return c
}

// makeClone begins a new checkout, whose checksum is the one of the archive.
func (c *checkout) makeClone() {
	c.t.Helper()
	c.dir = c.t.TempDir()
	for _, file := range []string{"envtest-assets.sh", "lib.sh", "kube/go.mod", "kube/go.sum", "envtest/go.mod", "envtest/go.sum"} {
		content, err := os.ReadFile(file)
		c.Expect(err).NotTo(HaveOccurred())
		c.writeFile(filepath.Join("hack", file), content)
	}
	c.writeFile("hack/envtest/SHA512SUMS", fmt.Appendf(nil, "%x  %s\n", sha512.Sum512(c.archive), archiveName(c.version)))
}

func (c *checkout) writeFile(name string, content []byte) {
	c.t.Helper()
	name = filepath.Join(c.dir, name)
	c.Expect(os.MkdirAll(filepath.Dir(name), 0o700)).To(Succeed())
	c.Expect(os.WriteFile(name, content, 0o700)).To(Succeed())
}

func (c *checkout) writeIndex(w http.ResponseWriter, version string, archive []byte) {
	fmt.Fprintf(w, "releases:\n  %s:\n    %s:\n      hash: %x\n      selfLink: %s/archive\n",
		version, archiveName(version), sha512.Sum512(archive), c.server.URL)
}

// run runs the script with additional variables and returns what it prints.
func (c *checkout) run(arguments string, env ...string) (string, error) {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), "bash", "-c", "exec hack/envtest-assets.sh "+arguments)
	command.Dir, command.Env = c.dir, slices.Concat(c.env, env)
	output, err := command.CombinedOutput()
	return string(output), err
}

// listPrograms returns what each program in bin/kube prints.
func (c *checkout) listPrograms() map[string]string {
	c.t.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "bin/kube/*"))
	c.Expect(err).NotTo(HaveOccurred())
	printed := map[string]string{}
	for _, file := range files {
		output, err := exec.CommandContext(c.t.Context(), file).Output()
		c.Expect(err).NotTo(HaveOccurred())
		printed[filepath.Base(file)] = strings.TrimSpace(string(output))
	}
	return printed
}

var (
	allBuilt      = map[string]string{"etcd": "built", "kube-apiserver": "built", "kubectl": "built"}
	allDownloaded = map[string]string{"etcd": "downloaded", "kube-apiserver": "downloaded", "kubectl": "downloaded"}
)

func archiveName(version string) string {
	return fmt.Sprintf("envtest-%s-%s-%s.tar.gz", version, runtime.GOOS, runtime.GOARCH)
}

func kubernetesVersion(t *testing.T) string {
	t.Helper()
	module, err := os.ReadFile("kube/go.mod")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(regexp.MustCompile(`\tk8s\.io/kubernetes (v\S+)`).FindSubmatch(module)[1])
}

// packPrograms returns an archive like those of the index, of programs that print "downloaded".
func packPrograms(t *testing.T, names ...string) []byte {
	t.Helper()
	g := NewWithT(t)
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(compressed)
	content := []byte("#!/bin/sh\necho downloaded\n")
	for _, name := range names {
		g.Expect(archive.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(content))})).To(Succeed())
		_, err := archive.Write(content)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(archive.Close()).To(Succeed())
	g.Expect(compressed.Close()).To(Succeed())
	return buffer.Bytes()
}

func TestEnvtestAssets_downloadsOnceForEveryCheckout(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	output, err := c.run("")
	c.Expect(err).NotTo(HaveOccurred(), output)
	c.Expect(c.listPrograms()).To(Equal(allDownloaded))

	c.server.Close()
	c.makeClone()
	c.Expect(c.run("")).To(BeEmpty())
	c.Expect(c.listPrograms()).To(Equal(allDownloaded))

	output, err = c.run("controllers")
	c.Expect(err).NotTo(HaveOccurred(), output)
	c.Expect(c.listPrograms()).To(HaveLen(4))
	c.Expect(c.listPrograms()).To(HaveKeyWithValue("kube-controller-manager", "built"))
	c.Expect(c.listPrograms()).To(HaveKeyWithValue("etcd", "downloaded"))
	output, err = c.run("cluster")
	c.Expect(err).NotTo(HaveOccurred(), output)
	c.Expect(c.listPrograms()).To(HaveLen(7))
	c.Expect(c.run("")).To(BeEmpty())
	c.Expect(c.listPrograms()).To(HaveLen(7))

	output, err = c.run("", "KUBE=source")
	c.Expect(err).NotTo(HaveOccurred(), output)
	c.Expect(c.listPrograms()).To(HaveKeyWithValue("kube-apiserver", "built"))
}

func TestEnvtestAssets_buildsWithoutTheIndex(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.index = func(http.ResponseWriter, *http.Request) { t.Error("the index was read") }
	output, err := c.run("", "KUBE=source")
	c.Expect(err).NotTo(HaveOccurred(), output)
	c.Expect(c.listPrograms()).To(Equal(allBuilt))
	c.makeClone()
	c.Expect(c.run("")).To(BeEmpty(), "built before, for another checkout")
	c.Expect(c.listPrograms()).To(Equal(allBuilt))
}

// Each is built instead, unless it has to be a download, which then leaves nothing behind.
func TestEnvtestAssets_cannotDownload(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil  func(*checkout)
		reason string
	}{
		"the index hangs": {func(c *checkout) {
			c.index = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		}, "the index did not answer within 5 s"},
		"the index is absent":    {func(c *checkout) { c.server.Close() }, "connection refused"},
		"the index is an error":  {func(c *checkout) { c.index = http.NotFound }, "404 Not Found"},
		"the version is missing": {func(c *checkout) { c.version = "v1.2.3" }, "the index has no Kubernetes"},
		"the archive is not what the index says": {func(c *checkout) {
			c.download = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packPrograms(c.t, "etcd")) }
		}, "checksum mismatch"},
		"archive and index were changed": {func(c *checkout) {
			c.archive = packPrograms(c.t, "etcd", "kube-apiserver", "kubectl", "more")
		}, "has another checksum than in hack/envtest/SHA512SUMS"},
		"the archive is cut short": {func(c *checkout) {
			c.download = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(c.archive)))
				_, _ = w.Write(c.archive[:len(c.archive)/2])
			}
		}, "unexpected EOF"},
		"the archive lacks a program": {func(c *checkout) {
			c.archive = packPrograms(c.t, "etcd", "kube-apiserver")
			c.makeClone()
		}, "lacks a program"},
		"no checksum is kept": {func(c *checkout) {
			c.writeFile("hack/envtest/SHA512SUMS", nil)
		}, "SHA512SUMS has no envtest-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCheckout(t)
			test.spoil(c)
			output, err := c.run("", "KUBE=download")
			c.Expect(err).To(HaveOccurred())
			c.Expect(output).To(And(ContainSubstring(test.reason), HaveSuffix("KUBE=download failed\n")))
			c.Expect(filepath.Glob(filepath.Join(c.dir, "bin/kube/*"))).To(BeEmpty())

			output, err = c.run("")
			c.Expect(err).NotTo(HaveOccurred(), output)
			c.Expect(output).To(ContainSubstring(test.reason))
			c.Expect(c.listPrograms()).To(Equal(allBuilt))
		})
	}
}

func TestEnvtestAssets_keepsThemInTheCheckoutIfNowhereElse(t *testing.T) {
	t.Parallel()
	c := newCheckout(t)
	c.writeFile("file", nil)
	for _, env := range [][]string{{"XDG_CACHE_HOME=", "HOME="}, {"XDG_CACHE_HOME=" + filepath.Join(c.dir, "file")}} {
		c.makeClone()
		output, err := c.run("", append(env, "KUBE=source")...)
		c.Expect(err).NotTo(HaveOccurred(), output)
		c.Expect(filepath.Glob(filepath.Join(c.dir, "bin/kube/built-*/kubectl"))).To(HaveLen(1))
		printed, err := exec.CommandContext(t.Context(), filepath.Join(c.dir, "bin/kube/kubectl")).Output()
		c.Expect(err).NotTo(HaveOccurred())
		c.Expect(string(printed)).To(Equal("built\n"))
	}
}

func TestEnvtestAssets_keepsChecksumsOfTheVersionInUse(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile("envtest/SHA512SUMS")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, arch := range []string{"amd64", "arm64"} {
		NewWithT(t).Expect(string(sums)).To(MatchRegexp(`(?m)^[0-9a-f]{128}  envtest-%s-linux-%s\.tar\.gz$`,
			regexp.QuoteMeta(kubernetesVersion(t)), arch))
	}
}
