package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// lines builds the events of one package from "action test" or "action test output".
func lines(t *testing.T, events ...string) string {
	t.Helper()
	var stream strings.Builder
	for _, words := range events {
		part := strings.SplitN(words, " ", 3)
		e := event{Action: part[0], Package: "example.com/p"}
		if len(part) > 1 && part[1] != "-" {
			e.Test = part[1]
		}
		if len(part) > 2 {
			e.Output = part[2] + "\n"
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&stream, "%s\n", line)
	}
	return stream.String()
}

const (
	green = "\x1b[38;5;10m\x1b[1m"
	reset = "\x1b[0m"
)

func TestRun_counts(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		last   string
		code   int
	}{
		"a test counts once": {
			events: []string{"run TestA", "pass TestA", "run TestB", "skip TestB", "pass -"},
			last:   "1 passed, 0 failed, 1 skipped",
		},
		"subtests count in place of their parents": {
			events: []string{"pass TestA/x/1", "pass TestA/x/2", "pass TestA/x", "pass TestA/y", "pass TestA", "pass -"},
			last:   "3 passed, 0 failed, 0 skipped",
		},
		"a name that only begins alike is no subtest": {
			events: []string{"pass TestA", "pass TestAB", "pass -"},
			last:   "2 passed, 0 failed, 0 skipped",
		},
		"a failed subtest is one failure, not two": {
			events: []string{"fail TestA/x", "pass TestA/y", "fail TestA", "fail -"},
			last:   "1 passed, 1 failed, 0 skipped",
			code:   1,
		},
		"a parent that fails by itself is a failure": {
			events: []string{"pass TestA/x", "fail TestA", "fail -"},
			last:   "1 passed, 1 failed, 0 skipped",
			code:   1,
		},
		"specs count in place of the test that runs them": {
			events: []string{
				"output TestSuite Ran 8 of 10 Specs in 0.1 seconds",
				"output TestSuite SUCCESS! -- 8 Passed | 0 Failed | 1 Pending | 1 Skipped",
				"pass TestSuite", "pass TestA", "pass -",
			},
			last: "9 passed, 0 failed, 2 skipped",
		},
		"colours and flakes do not hide specs": {
			events: []string{
				"output TestSuite " + green + "SUCCESS!" + reset + " -- " + green + "8 Passed" + reset + " | " + green + "0 Failed" +
					reset + " | " + green + "2 Flaked" + reset + " | " + green + "0 Pending" + reset + " | " + green + "0 Skipped" + reset,
				"pass TestSuite", "pass -",
			},
			last: "8 passed, 0 failed, 0 skipped",
		},
		"a failed spec is one failure": {
			events: []string{
				"output TestSuite FAIL! -- 2 Passed | 1 Failed | 0 Pending | 4 Skipped",
				"fail TestSuite", "fail -",
			},
			last: "2 passed, 1 failed, 4 skipped",
			code: 1,
		},
		"a suite without a failed spec can still fail": {
			events: []string{
				"output TestSuite FAIL! - A BeforeSuite node failed so all tests were skipped. -- 0 Passed | 0 Failed | 0 Pending | 5 Skipped",
				"fail TestSuite", "fail -",
			},
			last: "0 passed, 1 failed, 5 skipped",
			code: 1,
		},
		"a test that never ended is a failure": {
			events: []string{"pass TestA", "run TestB", "fail -"},
			last:   "1 passed, 1 failed, 0 skipped",
			code:   1,
		},
		"a package that fails outside its tests is a failure": {
			events: []string{"pass TestA", "fail -"},
			last:   "1 passed, 1 failed, 0 skipped",
			code:   1,
		},
		"a run that was cut off is a failure": {
			events: []string{"pass TestA"},
			last:   "1 passed, 1 failed, 0 skipped",
			code:   1,
		},
		"a package without tests is neither": {
			events: []string{"output - ?   	example.com/p	[no test files]", "skip -"},
			last:   "0 passed, 0 failed, 0 skipped",
			code:   1,
		},
		"nothing but skipped tests is no success": {
			events: []string{"skip TestA", "pass -"},
			last:   "0 passed, 0 failed, 1 skipped",
			code:   1,
		},
		"no event at all is no success": {
			last: "0 passed, 0 failed, 0 skipped",
			code: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var out strings.Builder
			g.Expect(run(strings.NewReader(lines(t, c.events...)), &out)).To(Equal(c.code))
			printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			g.Expect(printed[len(printed)-1]).To(Equal(c.last))
		})
	}
}

func TestRun_shows_what_failed_and_nothing_else(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	code := run(strings.NewReader(lines(t,
		"output TestGood noise", "pass TestGood",
		"output TestBad     got 1, want 2", "fail TestBad",
		"output - exit status 1", "fail -",
	)), &out)
	g.Expect(code).To(Equal(1))
	g.Expect(out.String()).To(And(
		ContainSubstring("    got 1, want 2\n"),
		ContainSubstring("exit status 1\n"),
		ContainSubstring("failed packages:\n  example.com/p\n"),
		Not(ContainSubstring("noise")),
	))
}

func TestRun_shows_build_errors(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	code := run(strings.NewReader(`
{"ImportPath":"example.com/p","Action":"build-output","Output":"p.go:3:1: syntax error\n"}
{"ImportPath":"example.com/p","Action":"build-fail"}
{"Action":"fail","Package":"example.com/p","Elapsed":0,"FailedBuild":"example.com/p"}
`), &out)
	g.Expect(code).To(Equal(1))
	g.Expect(out.String()).To(ContainSubstring("p.go:3:1: syntax error\n"))
	g.Expect(out.String()).To(HaveSuffix("\n0 passed, 1 failed, 0 skipped\n"))
}

func TestRun_keeps_lines_that_are_no_events(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	run(strings.NewReader("go: something is wrong\n{\"other\": \"json\"}\n"), &out)
	g.Expect(out.String()).To(HavePrefix("go: something is wrong\n{\"other\": \"json\"}\n"))
}
