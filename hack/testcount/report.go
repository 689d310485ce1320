package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// report is what is known so far, and where it is told.
type report struct {
	out      io.Writer
	packages map[string]*testedPackage
	builds   map[string]*strings.Builder // compiler output by import path
	total    counts
	broken   []string // packages that failed, in the order in which they ended
}

// testedPackage is a package whose tests run.
type testedPackage struct {
	output strings.Builder // what no single test printed
	tests  map[string]*test
	order  []string
	failed bool
}

// test is one Go test or subtest; its action is empty while it runs, and for good when the process died under it.
type test struct {
	action string
	output strings.Builder
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*testedPackage{}, builds: map[string]*strings.Builder{}}
}

// readAll reports each package as soon as it ends.
func (r *report) readAll(in io.Reader) error {
	return readEvents(in, r.handle, func(line string) { fmt.Fprint(r.out, line) })
}

func (r *report) handle(e event) {
	switch {
	case e.Action == "build-output":
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
	case e.Action == "build-fail":
		if build := r.builds[e.ImportPath]; build != nil {
			fmt.Fprint(r.out, build.String())
		}
	case e.Package == "":
	case e.Test != "":
		r.pkg(e.Package).handleTest(e)
	case e.Action == "output":
		r.pkg(e.Package).output.WriteString(e.Output)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.endPackage(e)
	}
}

func (r *report) pkg(name string) *testedPackage {
	if r.packages[name] == nil {
		r.packages[name] = &testedPackage{tests: map[string]*test{}}
	}
	return r.packages[name]
}

func (p *testedPackage) handleTest(e event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &test{}
		p.tests[e.Test] = t
		p.order = append(p.order, e.Test)
	}
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		t.action = e.Action
	}
}

// endPackage prints the package's line, after all output of what failed in it.
func (r *report) endPackage(e event) {
	p := r.pkg(e.Package)
	p.failed = e.Action == "fail"
	result := p.count()
	r.total.add(result)
	delete(r.packages, e.Package)

	switch {
	case p.failed:
		r.broken = append(r.broken, e.Package)
		p.printFailure(r.out)
		fmt.Fprintf(r.out, "FAIL  %6.1fs  %s  (%s)\n", e.Elapsed, e.Package, &result)
	case result.total() > 0:
		fmt.Fprintf(r.out, "ok    %6.1fs  %s  (%s)%s\n", e.Elapsed, e.Package, &result, p.cached())
	}
}

func (p *testedPackage) cached() string {
	if strings.Contains(p.output.String(), "\t(cached)") {
		return " (cached)"
	}
	return ""
}

func (p *testedPackage) printFailure(out io.Writer) {
	for _, name := range p.order {
		if t := p.tests[name]; t.action != "pass" && t.action != "skip" {
			fmt.Fprint(out, t.output.String())
		}
	}
	fmt.Fprint(out, p.output.String())
}

// count adds up the package's tests. Something must be to blame for a failed package: where no test is (a build
// failure, a panic, an exit in TestMain), the package itself counts as one failure.
func (p *testedPackage) count() counts {
	var sum counts
	for name := range p.tests {
		sum.add(p.countTest(name))
	}
	if p.failed && sum.failed == 0 {
		sum.failed = 1
	}
	return sum
}

// countTest counts a test that stands for itself. A parent counts only when it failed and none of its subtests did,
// and so does a test that ran Ginkgo specs: then a hook failed, or a check after the specs.
func (p *testedPackage) countTest(name string) counts {
	t := p.tests[name]
	specs, isSuite := ginkgoCounts(t.output.String())
	children, failedChild := p.children(name)
	if isSuite || children {
		if t.action == "fail" && specs.failed == 0 && !failedChild {
			specs.failed++
		}
		return specs
	}
	switch t.action {
	case "pass":
		return counts{passed: 1}
	case "skip":
		return counts{skipped: 1}
	default:
		return counts{failed: 1}
	}
}

// children says whether a test has subtests, and whether one of them failed.
func (p *testedPackage) children(name string) (found, failed bool) {
	prefix := name + "/"
	for other, t := range p.tests {
		if strings.HasPrefix(other, prefix) {
			found = true
			failed = failed || t.action == "fail"
		}
	}
	return found, failed
}

// finish prints the sum and says whether the run was a success.
func (r *report) finish() bool {
	// A package that never ended: the go command itself was stopped.
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.packages[name].failed = true
		r.endPackage(event{Package: name, Action: "fail"})
	}
	if len(r.broken) > 0 {
		fmt.Fprintf(r.out, "\nfailed packages:\n  %s\n", strings.Join(r.broken, "\n  "))
	}
	if r.total.total() == 0 {
		fmt.Fprintln(r.out, "\nno test ran")
	}
	fmt.Fprintf(r.out, "\n%s\n", &r.total)
	return len(r.broken) == 0 && r.total.failed == 0 && r.total.passed > 0
}
