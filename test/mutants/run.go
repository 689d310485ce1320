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
	// buildLimit is how much longer than its own limit a suite may take: the first one on a machine compiles everything.
	buildLimit = 15 * time.Minute
	// mostDetails is how many bytes of a suite's output are shown.
	mostDetails = 4 << 10
)

// The verdicts on a run of a suite. Only noticed is good for a mutant, and only green for a suite without one.
const (
	noticed      = "noticed"
	green        = "green"         // the suite passed
	notBuilt     = "not built"     // the mutant does not compile
	notApplied   = "not applied"   // the edit does not fit the product
	timedOut     = "timed out"     // which may be the machine
	noTests      = "no tests"      // no test ran that could notice
	suiteIsRed   = "suite is red"  // it also fails without the mutant
	otherProblem = "could not run" // such as a full disk
)

// run is one run of a suite, with a mutant or, if that is nil, without one.
type run struct {
	root   string
	suite  Suite
	test   string
	mutant *Mutant
	// file has the changed content of path; both are empty without a mutant.
	path string
	file []byte

	verdict string
	by      string // the test, spec or invariant that failed
	details string
	took    time.Duration
}

// execute compiles and runs the suite and sets the verdict. The mutant is in an overlay of the go command, which also applies to
// what the suite itself compiles; the checkout is not changed.
func (r *run) execute(ctx context.Context) {
	start := time.Now()
	out, err := r.runSuite(ctx)
	r.verdict, r.by = r.judgeOutput(out, err)
	r.details, r.took = string(out[max(0, len(out)-mostDetails):]), time.Since(start)
	switch {
	case r.verdict == otherProblem && err != nil:
		r.details += err.Error()
	case r.verdict == noticed && r.mutant == nil: // nothing was planted to notice
		r.verdict = suiteIsRed
	}
}

// runSuite runs the suite in its own process group and folder, and leaves nothing of either.
func (r *run) runSuite(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit()+buildLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "phoneproof-mutant-")
	if err != nil {
		return nil, fmt.Errorf("create folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay := struct {
		Replace map[string]string `json:"Replace"`
	}{map[string]string{}}
	if r.path != "" {
		overlay.Replace[r.path] = filepath.Join(dir, "changed.go")
	}
	list, err := json.Marshal(overlay)
	if err = errors.Join(err,
		os.Chmod(dir, 0o755), // a database runs as another user
		os.WriteFile(filepath.Join(dir, "changed.go"), r.file, 0o600),
		os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600)); err != nil {
		return nil, fmt.Errorf("write mutant: %w", err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", r.arguments(dir)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, &out, &out
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+filepath.Join(dir, "overlay.json"),
		"GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=15s", "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err = errors.Join(cmd.Run(), ctx.Err())
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the rest of the group, if any
	}
	return out.Bytes(), err
}

func (r *run) limit() time.Duration {
	if r.suite.Limit > 0 {
		return r.suite.Limit
	}
	return time.Minute
}

// arguments returns those of the go command.
func (r *run) arguments(dir string) []string {
	if r.suite.Program != nil {
		args := []string{"run", r.suite.Package}
		for _, arg := range r.suite.Program {
			args = append(args, strings.ReplaceAll(arg, "{dir}", dir))
		}
		return args
	}
	args := []string{"test", "-v", "-vet=off", "-count=1", "-failfast", "-timeout=" + r.limit().String()}
	if r.suite.Specs == "" {
		return append(args, "-run="+r.test, r.suite.Package)
	}
	return append(args, "-run=^"+r.suite.Specs+"$", r.suite.Package,
		"-ginkgo.v", "-ginkgo.fail-fast", "-ginkgo.no-color", "-ginkgo.focus="+r.test)
}

var (
	outOfTime  = regexp.MustCompile(`(?m)^panic: test timed out after|A suite timeout occurred`)
	noBuild    = regexp.MustCompile(`(?m)^FAIL\s.*\[(?:build|setup) failed\]`)
	noneRan    = regexp.MustCompile(`no tests to run|(?m)^Ran 0 of \d+ Specs`)
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	failedSpec = regexp.MustCompile(`\[(?:FAIL|PANICKED!|TIMEDOUT)\] (.+)`)
	suiteNode  = regexp.MustCompile(`\[(?:Synchronized)?(?:Before|After)Suite\]|\(Suite\)\]`)
	panicked   = regexp.MustCompile(`(?m)^(?:panic|fatal error): .+`)
	begunTest  = regexp.MustCompile(`(?m)^=== RUN `)
	begunSpec  = regexp.MustCompile(`(?m)^-{30}\n[^\[\n]`) // nodes of the suite are in brackets
	violated   = regexp.MustCompile(`(?m)^.*\b(?:FAILED|VIOLATED)\b.*$`)
)

// judgeOutput returns the verdict by a suite's output and error, and what noticed. A suite that cannot start, or is killed from
// outside, has noticed nothing.
func (r *run) judgeOutput(out []byte, err error) (verdict, by string) {
	_, ended := errors.AsType[*exec.ExitError](err)
	switch by = r.findFailure(out); {
	case outOfTime.Match(out), errors.Is(err, context.DeadlineExceeded):
		return timedOut, ""
	case noBuild.Match(out):
		return notBuilt, ""
	case noneRan.Match(out) && by == "":
		return noTests, ""
	case err == nil:
		return green, ""
	case !ended || by == "":
		return otherProblem, ""
	default:
		return noticed, by
	}
}

// findFailure returns what failed of the tests, specs or invariants that the mutant names; empty if nothing did. A panic in a
// goroutine of the product ends the process and is none of a test's: once one has begun it counts, because the suite passes without the
// mutant.
func (r *run) findFailure(out []byte) string {
	failed, begun := failedTest, begunTest
	if r.suite.Program != nil {
		failed = violated
	} else if r.suite.Specs != "" {
		failed, begun = failedSpec, begunSpec
	}
	found := ""
	for _, match := range failed.FindAllSubmatch(out, -1) {
		line := string(bytes.TrimSpace(match[len(match)-1]))
		if !suiteNode.MatchString(line) && (r.suite.Program == nil || regexp.MustCompile(r.test).MatchString(line)) {
			found = line // the last one is the deepest subtest
		}
	}
	if found == "" && r.suite.Program == nil && begun.Match(out) {
		found = string(panicked.Find(out))
	}
	return found
}
