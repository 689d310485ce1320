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
		dir, args = e.root, e.suite.Command
	}
	out, err = e.command(ctx, e.suite.limit()+endLimit, dir, overlay, args...)
	r := judge(out, err)
	if e.suite.Command != nil && r.Verdict == noticed && r.By == "" { // it ended for another reason
		r.Verdict = otherProblem
	}
	if ctx.Err() != nil {
		r = result{Verdict: interrupted}
	}
	r.Took = time.Since(start)
	return r
}

// arguments are those of the test binary. It ends itself at the limit, and says where it was.
func (e execution) arguments() []string {
	args := []string{"-test.failfast", "-test.timeout=" + e.suite.limit().String()}
	if e.suite.Specs == "" {
		return append(args, "-test.v", "-test.run="+e.test)
	}
	return append(args, "-test.run=^"+e.suite.Specs+"$", "-ginkgo.fail-fast", "-ginkgo.no-color",
		"-ginkgo.fail-on-empty", "-ginkgo.focus="+e.test)
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
	failedTest   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|\[(?:FAIL|PANICKED|TIMEDOUT)\]\]? (.+)|^panic: (.+)`)
	failedJudge  = regexp.MustCompile(`(?m)^.*\b(?:FAILED|VIOLATED)\b.*$`)
)

// judge tells from a suite's output and end what it showed.
func judge(out []byte, err error) result {
	switch {
	case errors.Is(err, errLimit), panicTimeout.Match(out), specTimeout.Match(out):
		return result{Verdict: timedOut, Details: tail(out)}
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return result{Verdict: noTests}
	case err == nil:
		return result{Verdict: green, Details: skipped(out)}
	}
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return result{Verdict: otherProblem, Details: err.Error()}
	}
	return result{Verdict: noticed, By: firstFailure(out), Details: tail(out)}
}

// firstFailure names the test that failed first, as deep as it is named.
func firstFailure(out []byte) string {
	name := ""
	for _, match := range failedTest.FindAllSubmatch(out, -1) {
		for _, group := range match[1:] {
			if text := strings.TrimSpace(string(group)); len(text) > len(name) && (name == "" || strings.HasPrefix(text, name+"/")) {
				name = text
			}
		}
	}
	if name == "" {
		name = strings.TrimSpace(string(failedJudge.Find(out)))
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
