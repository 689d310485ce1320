package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The events that hack/test.sh adds after the output of the ginkgo command.
const (
	ginkgoPassed = `{"Action":"pass"}` + "\n"
	ginkgoFailed = `{"Action":"fail"}` + "\n"
)

func TestTestcount(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		want  string
		code  int
	}{
		"subtests count in place of their parents": {
			input: recorded(t, "subtests.json"),
			want:  "3 passed, 0 failed, 1 skipped",
		},
		"a failed subtest is one failure, and a parent that fails by itself is another": {
			input: recorded(t, "parent.json"),
			want:  "2 passed, 2 failed, 0 skipped",
			code:  1,
		},
		"specs count in place of the test that runs them": {
			input: recorded(t, "suite-passed.json"),
			want:  "2 passed, 0 failed, 2 skipped",
		},
		"a failed spec is one failure": {
			input: recorded(t, "suite-failed.json"),
			want:  "2 passed, 1 failed, 2 skipped",
			code:  1,
		},
		"a suite whose BeforeSuite fails is one failure": {
			input: recorded(t, "before-suite.json"),
			want:  "0 passed, 1 failed, 0 skipped",
			code:  1,
		},
		"a focused suite fails although its specs pass": {
			input: recorded(t, "focus.json"),
			want:  "1 passed, 1 failed, 1 skipped",
			code:  1,
		},
		"a package that does not compile is a failure": {
			input: recorded(t, "build.json"),
			want:  "0 passed, 1 failed, 0 skipped",
			code:  1,
		},
		"a test that ends its process is a failure": {
			input: recorded(t, "exit.json"),
			want:  "1 passed, 1 failed, 0 skipped",
			code:  1,
		},
		"a panic is one failure": {
			input: recorded(t, "panic.json"),
			want:  "0 passed, 1 failed, 0 skipped",
			code:  1,
		},
		"a package that fails after its tests is a failure": {
			input: recorded(t, "after-tests.json"),
			want:  "1 passed, 1 failed, 0 skipped",
			code:  1,
		},
		"a failure in a package does not explain that of the package above it": {
			input: recorded(t, "after-tests.json") + recorded(t, "parent.json"),
			want:  "3 passed, 3 failed, 0 skipped",
			code:  1,
		},
		"a run that was cut off is a failure": {
			input: withoutLastLine(recorded(t, "subtests.json")),
			want:  "3 passed, 1 failed, 1 skipped",
			code:  1,
		},
		"the ginkgo command's specs are added": {
			input: recorded(t, "subtests.json") + recorded(t, "ginkgo-passed.txt") + ginkgoPassed,
			want:  "5 passed, 0 failed, 3 skipped",
		},
		"a failed spec of the ginkgo command is one failure": {
			input: recorded(t, "subtests.json") + recorded(t, "ginkgo-failed.txt") + ginkgoFailed,
			want:  "5 passed, 1 failed, 3 skipped",
			code:  1,
		},
		"a failed BeforeSuite of the ginkgo command is one failure": {
			input: recorded(t, "subtests.json") + recorded(t, "ginkgo-before-suite.txt") + ginkgoFailed,
			want:  "3 passed, 1 failed, 1 skipped",
			code:  1,
		},
		"a suite that the ginkgo command cannot compile is one failure": {
			input: recorded(t, "subtests.json") + recorded(t, "ginkgo-build.txt") + ginkgoFailed,
			want:  "3 passed, 1 failed, 1 skipped",
			code:  1,
		},
		"a package without tests is no success": {
			input: recorded(t, "no-tests.json"),
			want:  "0 passed, 0 failed, 0 skipped",
			code:  1,
		},
		"no event at all is no success": {
			want: "0 passed, 0 failed, 0 skipped",
			code: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			command := exec.Command("awk", "-f", "events.awk", "-f", "testcount.awk")
			command.Stdin = strings.NewReader(c.input)
			output, err := command.CombinedOutput()
			g.Expect(command.ProcessState).NotTo(BeNil(), "run awk: %v", err)
			g.Expect(string(output)).To(Equal(c.want + "\n"))
			g.Expect(command.ProcessState.ExitCode()).To(Equal(c.code))
		})
	}
}

func TestSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		want  string
		code  int
	}{
		"a Go test's reason is what it printed last": {
			input: recorded(t, "subtests.json"),
			want:  "skipped: good TestSkips: a_test.go:4: no such program\n",
		},
		"a suite tells of its specs": {
			input: `{"Action":"output","Package":"a","Test":"TestA","Output":"SKIPPED SPEC A store queues: it has no \"queue\"\n"}` + "\n",
			want:  "skipped: spec: A store queues: it has no \"queue\"\n",
		},
		"so does one of the ginkgo command": {
			input: recorded(t, "ginkgo-passed.txt") + "  SKIPPED SPEC It queues: the store has none\n",
			want:  "skipped: spec: It queues: the store has none\n",
		},
		"a skip without a reason is a failure": {
			input: `{"Action":"skip","Package":"m/a","Test":"TestA"}` + "\n",
			want:  "skipped: a TestA: NO REASON GIVEN\n",
			code:  1,
		},
		"a package without tests skips nothing": {input: recorded(t, "no-tests.json")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			command := exec.Command("awk", "-f", "events.awk", "-f", "skipped.awk")
			command.Stdin = strings.NewReader(c.input)
			output, err := command.CombinedOutput()
			g.Expect(command.ProcessState).NotTo(BeNil(), "run awk: %v", err)
			g.Expect(string(output)).To(Equal(c.want))
			g.Expect(command.ProcessState.ExitCode()).To(Equal(c.code))
		})
	}
}

func TestFailed(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"a test is named with what it printed, and its parents are not": {
			input: recorded(t, "parent.json"),
			want: "failed: deep TestParent/fails: a_test.go:4: got 1, want 2\n" +
				"failed: deep TestOnlyParentFails: a_test.go:9: afterwards\n",
		},
		"a spec is named in place of the test that runs it": {
			input: recorded(t, "suite-failed.json"),
			want:  "failed: spec: specs [It] fails\n",
		},
		"so is one of the ginkgo command": {
			input: recorded(t, "ginkgo-failed.txt") + ginkgoFailed,
			want:  "failed: spec: specs [It] fails\n",
		},
		"a package that does not compile is named with the compiler's words": {
			input: recorded(t, "build.json"),
			want: "failed: broken: # example.com/rec/broken [example.com/rec/broken.test] " +
				"broken/a_test.go:3:35: too many return values have (number) want ()\n",
		},
		"what passes is not named": {input: recorded(t, "subtests.json") + recorded(t, "ginkgo-passed.txt") + ginkgoPassed},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			command := exec.Command("awk", "-f", "events.awk", "-f", "failed.awk")
			command.Stdin = strings.NewReader(c.input)
			output, err := command.CombinedOutput()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(output)).To(Equal(c.want))
		})
	}
}

// recorded returns what `go test -json` or `ginkgo -procs=2` printed about a small package.
func recorded(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "testcount", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func withoutLastLine(text string) string {
	return text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1]
}
