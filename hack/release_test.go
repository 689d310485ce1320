package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const changelog = `# Changelog

## [Unreleased]

### Added

- Something new.

## [1.2.3] - 2026-11-25

### Added

- The first release.

### Fixed

- Nothing.

## [1.2.2] - 2026-11-01

## [1.2] - 2026-10-01

- Older.

[1.2.3]: https://example.com/
`

// release is release.sh in a repository of its own.
type release struct {
	Gomega

	t   *testing.T
	dir string
}

// newRelease returns a repository with one commit, tagged v1.2.3.
func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{Gomega: NewWithT(t), t: t, dir: t.TempDir()}
	r.write("CHANGELOG.md", changelog)
	r.write("charts/phoneproof/Chart.yaml", "name: phoneproof\nversion: 1.2.3\nappVersion: 1.2.3\n")
	r.write("config/manager/kustomization.yaml", "images:\n- name: phoneproof\n  newTag: 1.2.3\n")
	r.write("sdk/typescript/package.json", "{\n  \"version\": \"1.2.3\",\n}\n")
	r.git("init", "--quiet", "--initial-branch=main")
	r.commit("first")
	r.git("tag", "v1.2.3")
	return r
}

func (r *release) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	r.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	r.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (r *release) git(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	output, err := cmd.CombinedOutput()
	r.Expect(err).NotTo(HaveOccurred(), string(output))
}

func (r *release) commit(message string) {
	r.t.Helper()
	r.git("add", "--all")
	r.git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message", message)
}

// run sources release.sh, runs lines of a shell in the repository, and returns what they print. It releases v1.2.3 unless the
// lines say otherwise.
func (r *release) run(lines string) (string, error) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "bash", "-c", `source ./release.sh; cd "$DIR"; out=$DIR/out work=$DIR/.git; `+
		"VERSION=v1.2.3 number=1.2.3; "+lines)
	cmd.Env = append(os.Environ(), "DIR="+r.dir, "UNTAGGED=", "SIGN_KEY=")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestRelease_version(t *testing.T) {
	r := newRelease(t)
	for version, number := range map[string]string{"v0.1.0": "0.1.0", "v1.20.3-rc.1": "1.20.3-rc.1"} {
		output, err := r.run("VERSION=" + version + "; check_version; echo $number")
		r.Expect(err).NotTo(HaveOccurred(), output)
		r.Expect(output).To(Equal(number + "\n"))
	}
	for _, version := range []string{"", "0.1.0", "v1", "v1.2.3+build", "abc1234", "v1.2.3/../..", "v1.2.3-dirty$"} {
		output, err := r.run("VERSION='" + version + "'; check_version")
		r.Expect(err).To(HaveOccurred(), version)
		r.Expect(output).To(ContainSubstring("release: VERSION is '" + version + "'; it must be like v0.1.0"))
	}
}

func TestRelease_checkout(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *release)
		lines  string
		want   string // of a refusal; none if empty
	}{
		"the tag's commit":          {func(*release) {}, "", ""},
		"an uncommitted change":     {func(r *release) { r.write("CHANGELOG.md", "changed") }, "", "changes that are in no commit:\n M CHANGELOG.md"},
		"a file that git lacks":     {func(r *release) { r.write("new", "") }, "UNTAGGED=1", "changes that are in no commit:\n?? new"},
		"a later commit":            {func(r *release) { r.write("new", ""); r.commit("later") }, "", "the tag v1.2.3 is at "},
		"a later one, and untagged": {func(r *release) { r.write("new", ""); r.commit("later") }, "UNTAGGED=1", "the tag v1.2.3 is at "},
		"no tag":                    {func(*release) {}, "VERSION=v1.2.4", "there is no tag v1.2.4; make it with git tag, or build without one with UNTAGGED=1"},
		"no tag, and untagged":      {func(*release) {}, "VERSION=v1.2.4 UNTAGGED=1", ""},
		"the chart of another version": {func(r *release) {
			r.write("charts/phoneproof/Chart.yaml", "version: 1.2.3\nappVersion: 1.2.2\n")
			r.commit("chart")
			r.git("tag", "--force", "v1.2.3")
		}, "", "Chart.yaml must have version and appVersion 1.2.3"},
		"the image of no release": {func(r *release) {
			r.write("config/manager/kustomization.yaml", "images:\n- name: phoneproof\n  newTag: unreleased\n")
			r.commit("image")
			r.git("tag", "--force", "v1.2.3")
		}, "", "config/manager/kustomization.yaml must have newTag 1.2.3"},
		"libraries of another version": {func(r *release) {
			r.write("sdk/typescript/package.json", "{\n  \"version\": \"1.2.4\",\n}\n")
			r.commit("libraries")
			r.git("tag", "--force", "v1.2.3")
		}, "", "sdk/typescript/package.json must have version 1.2.3"},
		"no repository": {func(r *release) { r.Expect(os.RemoveAll(filepath.Join(r.dir, ".git"))).To(Succeed()) },
			"export GIT_CEILING_DIRECTORIES=$DIR/..", "this is not a git checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t)
			test.change(r)
			output, err := r.run(test.lines + "\ncheck_checkout")
			if test.want == "" {
				r.Expect(err).NotTo(HaveOccurred(), output)
				return
			}
			r.Expect(err).To(HaveOccurred())
			r.Expect(output).To(ContainSubstring(test.want))
		})
	}
}

func TestRelease_notes(t *testing.T) {
	r := newRelease(t)
	for lines, want := range map[string]string{
		"print_notes":                          "### Added\n\n- The first release.\n\n### Fixed\n\n- Nothing.\n",
		"UNTAGGED=1; print_notes":              "### Added\n\n- The first release.\n\n### Fixed\n\n- Nothing.\n",
		"UNTAGGED=1; number=9.9.9 print_notes": "### Added\n\n- Something new.\n",
		"number=1.2; print_notes":              "- Older.\n",
	} {
		output, err := r.run(lines)
		r.Expect(err).NotTo(HaveOccurred(), output)
		r.Expect(output).To(Equal(want), lines)
	}
	for _, number := range []string{"9.9.9", "1.2.2", "1.2.", "1x2.3"} {
		output, err := r.run("number=" + number + "; print_notes")
		r.Expect(err).To(HaveOccurred())
		r.Expect(output).To(ContainSubstring("CHANGELOG.md has no section ## [" + number + "] with text"))
	}
}

func TestRelease_manifestBeginsWithTheCRDs(t *testing.T) {
	r := newRelease(t)
	r.write("rendered.yaml", `---
# Source: phoneproof/templates/serviceaccount.yaml
kind: ServiceAccount
metadata:
  labels:
    helm.sh/chart: phoneproof-1.2.3
    app.kubernetes.io/name: phoneproof
    app.kubernetes.io/managed-by: Helm
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: |
  kind: ServiceAccount
---
kind: ConfigMap
data:
  kind: CustomResourceDefinition
`)
	output, err := r.run("order_manifest <rendered.yaml")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(Equal(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: |
  kind: ServiceAccount
---
# Source: phoneproof/templates/serviceaccount.yaml
kind: ServiceAccount
metadata:
  labels:
    app.kubernetes.io/name: phoneproof
---
kind: ConfigMap
data:
  kind: CustomResourceDefinition
`))
}

func TestRelease_krew(t *testing.T) {
	r := newRelease(t)
	output, err := r.run("mkdir -p out; fill_krew; ls out")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(BeEmpty(), "without the plugin there is no manifest")

	r.write("cmd/kubectl-phoneproof/main.go", "package main")
	r.write("out/kubectl-phoneproof_1.2.3_linux_amd64.tar.gz", "archive")
	r.write("hack/krew/phoneproof.yaml.tmpl", "version: @VERSION@\nuri: v@NUMBER@\nsha256: @SHA256_linux_amd64@\n")
	output, err = r.run("fill_krew; cat out/phoneproof.krew.yaml")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(Equal("version: v1.2.3\nuri: v1.2.3\nsha256: 0eb3e36bfb24dcd9bb1d1bece1531216b59539a8fde17ee80224af0653c92aa3\n"))

	r.write("hack/krew/phoneproof.yaml.tmpl", "    uri: https://example.com/@VERSION@/kubectl-phoneproof_@NUMBER@_linux_amd64.tar.gz\n")
	output, err = r.run("fill_krew")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.write("hack/krew/phoneproof.yaml.tmpl", "    uri: https://example.com/@VERSION@/kubectl-phoneproof-linux-amd64.tar.gz\n")
	output, err = r.run("fill_krew")
	r.Expect(err).To(HaveOccurred())
	r.Expect(output).To(ContainSubstring("leads to kubectl-phoneproof-linux-amd64.tar.gz"))
	output, err = r.run("RELEASE_PLATFORMS=linux/amd64 fill_krew")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(ContainSubstring("no manifest for krew"))

	r.write("hack/krew/phoneproof.yaml.tmpl", "sha256: @SHA256_windows_arm64@\n")
	output, err = r.run("fill_krew")
	r.Expect(err).To(HaveOccurred())
	r.Expect(output).To(ContainSubstring("1:sha256: @SHA256_windows_arm64@"))
}

func TestRelease_signature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	r := newRelease(t)
	r.write("out/SHA256SUMS", "sums\n")
	output, err := r.run("sign; ls out")
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(Equal("release: not signed, because SIGN_KEY names no key\nSHA256SUMS\n"))

	const verify = `ssh-keygen -Y verify -n phoneproof-release -I release@phoneproof -f allowed_signers -s out/SHA256SUMS.sig <out/SHA256SUMS`
	output, err = r.run(`ssh-keygen -q -t ed25519 -N '' -f key; echo "release@phoneproof $(cat key.pub)" >allowed_signers
SIGN_KEY=key; sign; cp out/SHA256SUMS.sig first; sign; cmp first out/SHA256SUMS.sig; ` + verify)
	r.Expect(err).NotTo(HaveOccurred(), output)
	r.Expect(output).To(ContainSubstring(`Good "phoneproof-release" signature for release@phoneproof`))
	r.write("out/SHA256SUMS", "other sums\n")
	output, err = r.run(verify)
	r.Expect(err).To(HaveOccurred(), output)

	output, err = r.run("SIGN_KEY=missing; sign")
	r.Expect(err).To(HaveOccurred())
	r.Expect(strings.ToLower(output)).To(ContainSubstring("sign with missing: "))
}
