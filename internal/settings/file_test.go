package settings

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/test/repository"
)

const projectYAML = `apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata:
  name: shop
spec:
  apiKeys:
    - name: backend
      secretRef: {name: shop, key: backend}
  telegram:
    botUsername: ada_books_bot
    botTokenSecretRef: {name: shop, key: bot}
`

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// saveFile writes a temporary file and renames it to path, as editors do.
func saveFile(t testing.TB, path, content string) {
	t.Helper()
	writeFile(t, path+".swp", content)
	NewWithT(t).Expect(os.Rename(path+".swp", path)).To(Succeed())
}

func TestNewFile(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "project.yaml")
	writeFile(t, path, "# ours\n---\n"+projectYAML+"---\n")
	layOut(t, filepath.Join(dir, "secrets"), newValues())
	log, logs := newLogger()
	f, err := NewFile(path, filepath.Join(dir, "secrets"), clocktesting.NewFakeClock(start), log)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Current().Project).To(Equal("default/shop"))
	g.Expect(f.Current().TTL).To(Equal(10 * time.Minute))
	g.Expect(f.Problems()).To(BeEmpty())
	g.Expect(f.LastError()).NotTo(HaveOccurred())
	g.Expect(f.NeedLeaderElection()).To(BeFalse())
	g.Expect(string(logs.Contents())).To(And(ContainSubstring("settings loaded"), Not(ContainSubstring(canary))))
}

// TestNewFileWithSpare_takes_what_is_missing, and nothing in place of a secret that is there.
func TestNewFileWithSpare_takes_what_is_missing(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "project.yaml")
	writeFile(t, path, projectYAML)
	for name, value := range map[string]string{
		"first/shop/bot": "not a token", "spare/shop/bot": "sim_ada_books_bot", "spare/shop/backend": strings.Repeat("k", 32),
	} {
		g.Expect(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)).To(Succeed())
		writeFile(t, filepath.Join(dir, name), value)
	}
	log, _ := newLogger()
	f, err := NewFileWithSpare(path, filepath.Join(dir, "first"), filepath.Join(dir, "spare"), clocktesting.NewFakeClock(start), log)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = f.Current().Keys.Find(strings.Repeat("k", 32), start)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Problems()).To(ConsistOf(Problem{Field: "spec.telegram.botTokenSecretRef", Secret: "shop", Key: "bot", Reason: ReasonInvalid}))
}

func TestNewFile_missing_secrets_are_problems(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "project.yaml")
	writeFile(t, path, projectYAML)
	log, _ := newLogger()
	f, err := NewFile(path, filepath.Join(t.TempDir(), "nothing"), clocktesting.NewFakeClock(start), log)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Problems()).To(Equal([]Problem{
		problem(fieldAPIKey("backend"), "backend", ReasonMissing), problem(fieldBotToken, "bot", ReasonMissing),
	}))
}

func TestNewFile_refused(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"empty":               {"", "no YAML document"},
		"comment alone":       {"# nothing\n", "no YAML document"},
		"no YAML":             {"apiVersion: [", "yaml"},
		"a list":              {"- a\n", "must be a map"},
		"two documents":       {projectYAML + "---\n" + projectYAML, "more than one VerificationProject"},
		"another kind":        {strings.Replace(projectYAML, "VerificationProject", "Secret", 1), "apiVersion and kind must be"},
		"another version":     {strings.Replace(projectYAML, "v1alpha1", "v1", 1), "apiVersion and kind must be"},
		"unknown field":       {projectYAML + "  ttl: 5m\n", `unknown field "spec.ttl"`},
		"field in wrong case": {strings.Replace(projectYAML, "botUsername", "botusername", 1), `unknown field "spec.telegram.botusername"`},
		"repeated field":      {projectYAML + "  telegram: {}\n", `key "telegram" already set`},
		"number for text":     {strings.Replace(projectYAML, "ada_books_bot", "12345", 1), "botUsername"},
		"no name":             {strings.Replace(projectYAML, "  name: shop\n", "  labels: {}\n", 1), "metadata.name"},
		"namespace of a path": {strings.Replace(projectYAML, "name: shop\n", "name: shop\n  namespace: a/b\n", 1), "metadata.namespace"},
		"no messenger":        {strings.Split(projectYAML, "  telegram")[0], "whatsapp or telegram must be set"},
		"session unasked":     {projectYAML + "  assurance: {level: Session}\n  replies: {send: Never}\n", "assurance.level: Session needs replies"},
		"two of one purpose":  {projectYAML + "  purposes: [{name: a, title: A}, {name: a, title: B}]\n", "Duplicate value"},
		"cool-down too long":  {projectYAML + "  assurance: {declineCooldown: 2h}\n", "assurance.declineCooldown must not be longer"},
		"two mistakes":        {projectYAML + "  request: {ttl: 5d}\n  rateLimit: {perKey: {requests: 0, period: 1m}}\n", "spec.rateLimit.perKey.requests"},
		"too large":           {projectYAML + "#" + strings.Repeat("x", maxProjectFile), "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "project.yaml")
			writeFile(t, path, tc.content)
			log, _ := newLogger()
			f, err := NewFile(path, t.TempDir(), clocktesting.NewFakeClock(start), log)
			g.Expect(err).To(MatchError(And(ContainSubstring(tc.want), ContainSubstring("project.yaml"))))
			g.Expect(f).To(BeNil())
		})
	}
}

func TestNewFile_no_file(t *testing.T) {
	g := NewWithT(t)
	log, _ := newLogger()
	_, err := NewFile(filepath.Join(t.TempDir(), "project.yaml"), t.TempDir(), clocktesting.NewFakeClock(start), log)
	g.Expect(err).To(MatchError(os.ErrNotExist))
	_, err = NewFile(t.TempDir(), t.TempDir(), clocktesting.NewFakeClock(start), log)
	g.Expect(err).To(MatchError(ContainSubstring("not a regular file")))
}

// polledFile is a File that reads its files when a test says so.
type polledFile struct {
	*File
	path, secrets string
	logs          *gbytes.Buffer
}

func newPolledFile(t *testing.T, path, secrets string) *polledFile {
	t.Helper()
	log, logs := newLogger()
	f, err := NewFile(path, secrets, clocktesting.NewFakeClock(start), log)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if strings.Contains(string(logs.Contents()), canary) {
			t.Error("a secret was logged")
		}
	})
	return &polledFile{File: f, path: path, secrets: secrets, logs: logs}
}

func (r *polledFile) accepts(value string) bool {
	return findKeyName(r.Current(), apiKey(value), start) == "backend"
}

// startPolling runs a loop until the test ends, and returns what waits for a change that the next poll finds.
func startPolling(t *testing.T, run func(context.Context) error, clk *clocktesting.FakeClock, changes <-chan struct{}) (awaitChange func()) {
	t.Helper()
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		g.Eventually(ended).WithTimeout(30 * time.Second).Should(Receive(BeNil()))
	})
	return func() {
		t.Helper()
		g.Eventually(clk.HasWaiters).WithTimeout(30 * time.Second).Should(BeTrue())
		clk.Step(pollInterval)
		g.Eventually(changes).WithTimeout(30 * time.Second).Should(Receive())
	}
}

func TestFile_polls(t *testing.T) {
	g := NewWithT(t)
	g.Expect(pollInterval).To(BeNumerically("<", time.Second), "documented")
	path, secrets := filepath.Join(t.TempDir(), "project.yaml"), filepath.Join(t.TempDir(), "secrets")
	writeFile(t, path, projectYAML)
	clk := clocktesting.NewFakeClock(start)
	f, err := NewFile(path, secrets, clk, logr.Discard())
	g.Expect(err).NotTo(HaveOccurred())
	changes, cancel := f.Subscribe()
	defer cancel()
	awaitChange := startPolling(t, f.Start, clk, changes)
	layOut(t, secrets, newValues())
	awaitChange()
	g.Expect(f.Problems()).To(BeEmpty())
	saveFile(t, path, projectYAML+"  request: {ttl: 5m}\n")
	awaitChange()
	g.Expect(f.Current().TTL).To(Equal(5 * time.Minute))
}

func TestLive_polls(t *testing.T) {
	g := NewWithT(t)
	dir, clk := t.TempDir(), clocktesting.NewFakeClock(start)
	l := NewLive(dir, clk, logr.Discard())
	g.Expect(l.SetProject(newProject())).To(Succeed())
	changes, cancel := l.Subscribe()
	defer cancel()
	awaitChange := startPolling(t, l.Start, clk, changes)
	for _, key := range []string{"first", "second"} {
		layOut(t, dir, map[string]string{"backend": apiKey(key)})
		awaitChange()
		g.Expect(findKeyName(l.Current(), apiKey(key), start)).To(Equal("backend"))
	}
}

func TestFile_created_manually(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "project.yaml"), projectYAML)
	r := newPolledFile(t, filepath.Join(dir, "project.yaml"), filepath.Join(dir, "secrets"))
	g.Expect(r.Problems()).To(HaveLen(2))

	layOut(t, r.secrets, newValues()) // the folder itself did not exist
	r.reloadFiles()
	g.Expect(len(r.Problems()) == 0 && r.accepts("backend")).To(BeTrue())

	// In one step: a key that is read while empty counts as removed.
	saveFile(t, filepath.Join(r.secrets, "shop", "backend"), apiKey("second"))
	r.reloadFiles()
	g.Expect(r.accepts("second") && r.accepts("backend")).To(BeTrue())

	g.Expect(os.Remove(filepath.Join(r.secrets, "shop", "backend"))).To(Succeed())
	r.reloadFiles()
	g.Expect(!r.accepts("second") && !r.accepts("backend")).To(BeTrue())

	saveFile(t, r.path, strings.Replace(projectYAML, "key: backend", "key: monitor", 1)+"  request: {ttl: 5m}\n")
	r.reloadFiles()
	g.Expect(r.Current().TTL == 5*time.Minute && r.accepts("monitor")).To(BeTrue())

	g.Expect(os.RemoveAll(r.secrets)).To(Succeed())
	r.reloadFiles()
	g.Expect(r.Problems()).To(HaveLen(2))
	layOut(t, r.secrets, newValues())
	r.reloadFiles()
	g.Expect(r.Problems()).To(BeEmpty())
}

func TestFile_folder_that_is_referenced_later(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "project.yaml"), projectYAML)
	r := newPolledFile(t, filepath.Join(dir, "project.yaml"), filepath.Join(dir, "secrets"))
	layOut(t, r.secrets, newValues())
	g.Expect(os.Mkdir(filepath.Join(r.secrets, "later"), 0o750)).To(Succeed())
	r.reloadFiles()
	g.Expect(r.Problems()).To(BeEmpty())
	writeFile(t, r.path, strings.Replace(projectYAML, "{name: shop, key: backend}", "{name: later, key: backend}", 1))
	r.reloadFiles()
	g.Expect(r.Problems()).To(HaveLen(1))
	writeFile(t, filepath.Join(r.secrets, "later", "backend"), apiKey("later"))
	r.reloadFiles()
	g.Expect(r.accepts("later")).To(BeTrue())
}

func TestFile_on_kubelet_volumes(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	config, secrets := filepath.Join(dir, "config"), filepath.Join(dir, "secrets")
	projectVolume(t, config, "1", map[string]string{"project.yaml": projectYAML})
	projectVolume(t, secrets, "1", prefixShop(newValues()))
	r := newPolledFile(t, filepath.Join(config, "project.yaml"), secrets)
	g.Expect(r.Problems()).To(BeEmpty())

	values := newValues()
	for _, generation := range []string{"2", "3", "4"} {
		values["backend"] = apiKey(generation)
		projectVolume(t, secrets, generation, prefixShop(values))
		r.reloadFiles()
		g.Expect(r.accepts(generation)).To(BeTrue())
		projectVolume(t, config, generation, map[string]string{"project.yaml": projectYAML + "  request: {ttl: " + generation + "m}\n"})
		r.reloadFiles()
		g.Expect(r.Current().TTL.Minutes()).To(Equal(float64(generation[0] - '0')))
	}
	projectVolume(t, secrets, "5", map[string]string{"shop/bot": goodBotToken}) // the key was removed from the Secret
	r.reloadFiles()
	g.Expect(!r.accepts("4") && len(r.Problems()) == 1).To(BeTrue())
	projectVolume(t, secrets, "6", nil) // the Secret was removed
	r.reloadFiles()
	g.Expect(r.Problems()).To(HaveLen(2))
	projectVolume(t, secrets, "7", prefixShop(values))
	r.reloadFiles()
	g.Expect(r.accepts("4") && len(r.Problems()) == 0).To(BeTrue())
}

func TestFile_broken_edit_changes_nothing(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "project.yaml"), projectYAML)
	layOut(t, filepath.Join(dir, "secrets"), newValues())
	r := newPolledFile(t, filepath.Join(dir, "project.yaml"), filepath.Join(dir, "secrets"))

	for name, breakFile := range map[string]func(){
		"syntax":  func() { saveFile(t, r.path, projectYAML+"  request: {ttl: [\n") },
		"invalid": func() { saveFile(t, r.path, projectYAML+"  request: {ttl: 5d}\n") },
		"empty":   func() { saveFile(t, r.path, "") },
		"removed": func() { g.Expect(os.Remove(r.path)).To(Succeed()) },
		"renamed": func() { saveFile(t, r.path, strings.Replace(projectYAML, "name: shop\n", "name: other\n", 1)) },
	} {
		breakFile()
		r.reloadFiles()
		g.Expect(r.LastError()).To(HaveOccurred())
		g.Expect(r.Current().Project).To(Equal("default/shop"), name)
		g.Expect(r.accepts("backend")).To(BeTrue(), name)

		// Secrets are still reloaded.
		layOut(t, r.secrets, map[string]string{"bot": ""})
		r.reloadFiles()
		g.Expect(r.Problems()).To(HaveLen(1))
		layOut(t, r.secrets, map[string]string{"bot": goodBotToken})
		r.reloadFiles()
		g.Expect(r.Problems()).To(BeEmpty())

		saveFile(t, r.path, projectYAML)
		r.reloadFiles()
		g.Expect(r.LastError()).NotTo(HaveOccurred())
	}
	g.Expect(strings.Count(string(r.logs.Contents()), "new project rejected")).To(Equal(5), "each error once")
}

func TestFile_readers_never_wait_or_see_half(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "project.yaml"), projectYAML)
	layOut(t, filepath.Join(dir, "secrets"), newValues())
	r := newPolledFile(t, filepath.Join(dir, "project.yaml"), filepath.Join(dir, "secrets"))
	changes, cancel := r.Subscribe()
	defer cancel()
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				s := r.Current()
				runtime.Gosched()
				if s == nil || (findKeyName(s, apiKey("backend"), start) == "") != (len(s.Problems) > 0) {
					t.Error("keys and problems are from different states")
					return
				}
			}
		})
	}
	for range 5 {
		for _, value := range []string{"", apiKey("backend")} {
			layOut(t, r.secrets, map[string]string{"backend": value})
			r.reloadFiles()
			NewWithT(t).Expect(changes).To(Receive())
		}
	}
	stop()
	readers.Wait()
}

func TestNewFile_errors_hold_no_value_of_the_file(t *testing.T) {
	for name, spec := range map[string]string{
		"no time":          "spec: {apiKeys: [{name: a, expiresAt: hunter2}]}",
		"unknown anchor":   "spec: {displayName: *hunter2}",
		"a text for a map": "spec: {webhook: hunter2}",
		"too long":         "spec: {displayName: " + strings.Repeat("hunter2", 50) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "project.yaml")
			content := "apiVersion: phoneproof.dev/v1alpha1\nkind: VerificationProject\nmetadata: {name: shop}\n" + spec + "\n"
			g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			_, err := NewFile(path, t.TempDir(), clock.RealClock{}, logr.Discard())
			g.Expect(err).To(HaveOccurred())
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		})
	}
}

func TestNewFile_takes_the_project_among_its_secrets(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	samples, err := filepath.Glob(filepath.Join(root, "config", "samples", "whatsapp.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(samples).NotTo(BeEmpty())
	for _, sample := range samples {
		_, err := NewFile(sample, t.TempDir(), clock.RealClock{}, logr.Discard())
		g.Expect(err).NotTo(HaveOccurred(), sample)
	}
}
