package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	// buildLimit bounds a compilation: the first one of a machine compiles everything.
	buildLimit = 15 * time.Minute
	// endLimit is how much longer than its own limit a suite may take to end what it started.
	endLimit = 30 * time.Second
	// mostDetails bounds what is kept of a suite's output.
	mostDetails = 4 << 10
)

// execution is one run of a suite, with or without a mutant.
type execution struct {
	root string
	// dir is the worker's own folder.
	dir   string
	suite Suite
	test  string
	// changed are the files that are not as they are in the checkout, by path.
	changed map[string][]byte
}

// run compiles and runs the suite. The mutant lives in an overlay of the go command, which this suite sees with all that it
// compiles itself; the checkout is not touched.
func (e execution) run(ctx context.Context) result {
	start := time.Now()
	overlay, err := e.writeOverlay()
	if err != nil {
		return result{Verdict: otherProblem, Details: err.Error()}
	}
	binary := filepath.Join(e.dir, "suite.test")
	build := []string{"go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary, e.suite.Package}
	if e.suite.Command != nil {
		build = []string{"go", "build", "-o", os.DevNull, e.suite.Package}
	}
	out, err := e.command(ctx, buildLimit, e.root, overlay, build...)
	if ctx.Err() != nil {
		return result{Verdict: interrupted}
	}
	if err != nil {
		return result{Verdict: notBuilt, Took: time.Since(start), Details: tail(out)}
	}
	dir, args := filepath.Join(e.root, e.suite.Package), append([]string{binary}, e.arguments()...)
	if e.suite.Command != nil {
		dir, args = e.root, e.commandLine()
	}
	out, err = e.command(ctx, e.suite.limit()+endLimit, dir, overlay, args...)
	r := e.judge(out, err)
	if ctx.Err() != nil {
		r = result{Verdict: interrupted}
	}
	r.Took = time.Since(start)
	return r
}

// commandLine is the suite's, with the worker's own folder: what runs at the same time shares nothing.
func (e execution) commandLine() []string {
	var args []string
	for _, arg := range e.suite.Command {
		args = append(args, strings.ReplaceAll(arg, workerDir, e.dir))
	}
	return args
}

// arguments are those of the test binary. It ends itself at the limit, and says where it was.
func (e execution) arguments() []string {
	args := []string{"-test.failfast", "-test.timeout=" + e.suite.limit().String()}
	if e.suite.Specs == "" {
		return append(args, "-test.v", "-test.run="+e.test)
	}
	return append(args, "-test.run=^"+e.suite.Specs+"$", "-ginkgo.fail-fast", "-ginkgo.no-color",
		"-ginkgo.v", "-ginkgo.focus="+e.test)
}

// writeOverlay writes the changed files and returns the path of what tells the go command of them.
func (e execution) writeOverlay() (string, error) {
	overlay := struct {
		Replace map[string]string `json:"Replace"`
	}{map[string]string{}}
	n := 0
	for path, text := range e.changed {
		n++
		replacement := filepath.Join(e.dir, fmt.Sprintf("changed%d.go", n))
		if err := os.WriteFile(replacement, text, 0o600); err != nil {
			return "", fmt.Errorf("write overlay: %w", err)
		}
		overlay.Replace[path] = replacement
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	name := filepath.Join(e.dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return name, nil
}

// errLimit says that a command was ended at its limit.
var errLimit = errors.New("the time limit was hit")

// command runs a command as a process group of its own, of which nothing is left when it returns.
func (e execution) command(ctx context.Context, limit time.Duration, dir, overlay string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(),
		"GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay, "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=15s", "TMPDIR="+e.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of the group, if anything
	}
	if err != nil && errors.Is(context.Cause(ctx), errLimit) {
		err = errLimit
	}
	return out.Bytes(), err
}

var (
	panicTimeout = regexp.MustCompile(`(?m)^panic: test timed out after`)
	specTimeout  = regexp.MustCompile(`A suite timeout occurred`)
	noneRan      = regexp.MustCompile(`no tests to run|(?m)^Ran 0 of \d+ Specs`)
	failedTest   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	begunTest    = regexp.MustCompile(`(?m)^\s*=== (?:RUN|CONT|NAME) +(\S+)`)
	failedSpec   = regexp.MustCompile(`\[(?:FAIL|PANICKED!|TIMEDOUT)\] (.+)`)
	suiteNode    = regexp.MustCompile(`\[(?:Synchronized)?(?:Before|After)Suite\]|\(Suite\)\]`)
	suiteReady   = regexp.MustCompile(`(?m)^\[(?:Synchronized)?BeforeSuite\] PASSED`)
	suiteBegins  = regexp.MustCompile(`(?m)^\[(?:Synchronized)?BeforeSuite\]`)
	panics       = regexp.MustCompile(`(?m)^(?:panic|fatal error): .+`)
	violated     = regexp.MustCompile(`(?m)^.*\b(?:FAILED|VIOLATED)\b.*$`)
)

// judge tells from the output and the end of the suite what it showed. It noticed the mutant only if a test that was asked
// for failed: a suite that cannot begin, or is ended from outside, has shown nothing.
func (e execution) judge(out []byte, err error) result {
	switch {
	case errors.Is(err, errLimit), panicTimeout.Match(out), specTimeout.Match(out):
		return result{Verdict: timedOut, Details: tail(out)}
	case noneRan.Match(out):
		return result{Verdict: noTests}
	case err == nil:
		return result{Verdict: green, Details: skipped(out)}
	}
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return result{Verdict: otherProblem, Details: err.Error()}
	}
	by := e.findFailure(out)
	if by == "" {
		return result{Verdict: otherProblem, Details: tail(out)}
	}
	return result{Verdict: noticed, By: by, Details: tail(out)}
}

// findFailure names the test, spec or invariant that failed, of those that were asked for; empty if there is none.
func (e execution) findFailure(out []byte) string {
	switch {
	case e.suite.Command != nil:
		return findViolation(out, e.test)
	case e.suite.Specs != "":
		return findFailedSpec(out)
	default:
		return findFailedTest(out)
	}
}

// findViolation returns the first line of a program that judges that tells of a violation of what was asked for.
func findViolation(out []byte, invariant string) string {
	wanted := regexp.MustCompile(invariant)
	for _, line := range violated.FindAll(out, -1) {
		if wanted.Match(line) {
			return string(bytes.TrimSpace(line))
		}
	}
	return ""
}

// findFailedSpec returns the first spec that failed. The process ends by a panic of a goroutine of the product, too: that is
// the failure of a spec if the suite had begun.
func findFailedSpec(out []byte) string {
	for _, match := range failedSpec.FindAllSubmatch(out, -1) {
		if !suiteNode.Match(match[1]) {
			return string(bytes.TrimSpace(match[1]))
		}
	}
	if suiteBegins.Match(out) && !suiteReady.Match(out) {
		return ""
	}
	return string(panics.Find(out))
}

// findFailedTest returns the test that failed first, as deep as it is named, or the one during which the process ended by a
// panic.
func findFailedTest(out []byte) string {
	name := ""
	for _, match := range failedTest.FindAllSubmatch(out, -1) {
		if text := string(match[1]); name == "" || strings.HasPrefix(text, name+"/") {
			name = text
		}
	}
	if died := panics.FindIndex(out); name == "" && died != nil {
		if begun := begunTest.FindAllSubmatch(out[:died[0]], -1); len(begun) > 0 {
			name = fmt.Sprintf("%s: %s", begun[len(begun)-1][1], out[died[0]:died[1]])
		}
	}
	return name
}

// skipped says which tests were skipped: they could not notice anything.
func skipped(out []byte) string {
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`).FindAllSubmatch(out, -1) {
		names = append(names, string(match[1]))
	}
	if len(names) == 0 {
		return ""
	}
	return "skipped: " + strings.Join(names, ", ")
}

func tail(out []byte) string {
	return string(out[max(0, len(out)-mostDetails):])
}
