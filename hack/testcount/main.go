// Command testcount turns `go test -json` on standard input into a short report that ends in the number of tests.
//
// One line per package; everything that a failing test or package printed; at the end, alone on a line, `N passed,
// N failed, N skipped`. A Go test counts once, unless it has subtests, which then count in its place, or runs a Ginkgo
// suite, whose specs then count in its place. The exit code is 1 when anything failed and also when nothing ran: a
// green run without a test proves nothing.
package main

import (
	"io"
	"log/slog"
	"os"
)

func main() {
	os.Exit(run(os.Stdin, os.Stdout))
}

func run(in io.Reader, out io.Writer) int {
	report := newReport(out)
	if err := report.readAll(in); err != nil {
		slog.Error("read test events", "error", err)
		return 1
	}
	if !report.finish() {
		return 1
	}
	return 0
}
