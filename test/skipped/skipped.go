// Package skipped makes a Ginkgo suite print which specs were skipped and why; Ginkgo itself prints only their number. Suites
// that may skip specs import it; hack/skipped.awk collects the lines.
package skipped

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

var _ = ginkgo.ReportAfterSuite("skipped specs", func(report types.Report) { writeSkipped(os.Stdout, report) })

// writeSkipped writes a line for each node that was skipped with a reason. Specs outside of a focus have none.
func writeSkipped(w io.Writer, report types.Report) {
	fmt.Fprintln(w) // ends the line of dots
	for i := range report.SpecReports {
		node := &report.SpecReports[i]
		if reason := reasonOf(node); reason != "" {
			fmt.Fprintf(w, "SKIPPED SPEC %s: %s\n", cmp.Or(node.FullText(), node.LeafNodeType.String()), reason)
		}
	}
}

// reasonOf returns why a node was skipped; empty if it was not, or without a reason of its own.
func reasonOf(node *types.SpecReport) string {
	switch {
	case node.State.Is(types.SpecStatePending):
		return "pending"
	case !node.State.Is(types.SpecStateSkipped):
		return ""
	default:
		return strings.Join(strings.Fields(node.Failure.Message), " ")
	}
}
