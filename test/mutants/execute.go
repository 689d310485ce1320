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
	// buildLimit bounds a compilation; the first one on a machine compiles everything.
	buildLimit = 15 * time.Minute
	// endLimit is how much longer than its own limit a suite may take to stop its processes.
	endLimit = 30 * time.Second
	// mostDetails is how many bytes of a suite's output are kept.
	mostDetails = 4 << 10
)

// execution is one run of a suite, with or without a mutant.
type execution struct {
	root string
	// dir is the worker's own folder.
	dir   string
	suite Suite
	test  string
	// changed has the content of the files that differ from the checkout, by path.
	changed map[string][]byte
}

// run compiles and runs the suite. The mutant is in an overlay of the go command, which also applies to what the suite
// itself compiles; the checkout is not changed.
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
	out, err := e.runCommand(ctx, buildLimit, e.root, overlay, build...)
	if ctx.Err() != nil {
		return result{Verdict: interrupted}
	}
	if err != nil {
		return result{Verdict: notBuilt, Took: time.Since(start), Details: lastOutput(out)}
	}
	dir, args := filepath.Join(e.root, e.suite.Package), append([]string{binary}, e.testArguments()...)
	if e.suite.Command != nil {
		dir, args = e.root, e.commandLine()
	}
	out, err = e.runCommand(ctx, e.suite.limit()+endLimit, dir, overlay, args...)
	r := e.judgeOutput(out, err)
	if ctx.Err() != nil {
		r = result{Verdict: interrupted}
	}
	r.Took = time.Since(start)
	return r
}

// commandLine returns the suite's command with the worker's folder, so that concurrent runs share nothing.
func (e execution) commandLine() []string {
	var args []string
	for _, arg := range e.suite.Command {
		args = append(args, strings.ReplaceAll(arg, workerDir, e.dir))
	}
	return args
}

// testArguments returns the arguments of the test binary. It ends itself at the limit and prints where it was.
func (e execution) testArguments() []string {
	args := []string{"-test.failfast", "-test.timeout=" + e.suite.limit().String()}
	if e.suite.Specs == "" {
		return append(args, "-test.v", "-test.run="+e.test)
	}
	return append(args, "-test.run=^"+e.suite.Specs+"$", "-ginkgo.fail-fast", "-ginkgo.no-color",
		"-ginkgo.v", "-ginkgo.focus="+e.test)
}

// writeOverlay writes the changed files and returns the path of the overlay's JSON file for the go command.
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
		return "", fmt.Errorf("encode overlay: %w", err)
	}
	name := filepath.Join(e.dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return name, nil
}

// errLimit is the cause of a command that was stopped at its limit.
var errLimit = errors.New("time limit exceeded")

// runCommand runs a command in its own process group, and kills the group before it returns.
func (e execution) runCommand(ctx context.Context, limit time.Duration, dir, overlay string, args ...string) ([]byte, error) {
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
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the rest of the group, if any
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

// judgeOutput returns the result of a suite by its output and error. The mutant is noticed only if a test that the
// mutant names failed: a suite that cannot start, or is killed from outside, has shown nothing.
func (e execution) judgeOutput(out []byte, err error) result {
	switch {
	case errors.Is(err, errLimit), panicTimeout.Match(out), specTimeout.Match(out):
		return result{Verdict: timedOut, Details: lastOutput(out)}
	case noneRan.Match(out):
		return result{Verdict: noTests}
	case err == nil:
		return result{Verdict: green, Details: listSkipped(out)}
	}
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return result{Verdict: otherProblem, Details: err.Error()}
	}
	by := e.findFailure(out)
	if by == "" {
		return result{Verdict: otherProblem, Details: lastOutput(out)}
	}
	return result{Verdict: noticed, By: by, Details: lastOutput(out)}
}

// findFailure returns the name of the test, spec or invariant that failed, of those that the mutant names; empty if
// there is none.
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

// findViolation returns the first line of a judging program about a violation of the invariant.
func findViolation(out []byte, invariant string) string {
	wanted := regexp.MustCompile(invariant)
	for _, line := range violated.FindAll(out, -1) {
		if wanted.Match(line) {
			return string(bytes.TrimSpace(line))
		}
	}
	return ""
}

// findFailedSpec returns the first spec that failed. A panic in a goroutine of the product also ends the process: it
// counts as a failed spec if the suite was ready.
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

// findFailedTest returns the first test that failed, with its deepest subtest, or the test during which the process
// panicked.
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

// listSkipped lists the skipped tests, which could not notice anything.
func listSkipped(out []byte) string {
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`).FindAllSubmatch(out, -1) {
		names = append(names, string(match[1]))
	}
	if len(names) == 0 {
		return ""
	}
	return "skipped: " + strings.Join(names, ", ")
}

func lastOutput(out []byte) string {
	return string(out[max(0, len(out)-mostDetails):])
}
