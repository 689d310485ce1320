// Package skipped has a suite of Ginkgo's, which tells nothing of the specs that were skipped but their number, say which they
// were and why. A suite that may skip specs imports it for that; hack/skipped.awk collects the lines.
package skipped

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// slow is the label of specs that make test leaves to make test-slow.
const slow = "slow"

var _ = ginkgo.ReportAfterSuite("skipped specs", func(report types.Report) { write(os.Stdout, report) })

// write writes a line for each node that was skipped with a reason, or for its label. A spec that is not chosen by a focus has
// none.
func write(w io.Writer, report types.Report) {
	fmt.Fprintln(w) // ends the line of dots
	for i := range report.SpecReports {
		node := &report.SpecReports[i]
		if reason := reasonOf(node); reason != "" {
			fmt.Fprintf(w, "SKIPPED SPEC %s: %s\n", cmp.Or(node.FullText(), node.LeafNodeType.String()), reason)
		}
	}
}

// reasonOf returns why a node was skipped; empty if it was not, or for no reason of its own.
func reasonOf(node *types.SpecReport) string {
	switch {
	case node.State.Is(types.SpecStatePending):
		return "pending"
	case !node.State.Is(types.SpecStateSkipped):
		return ""
	case node.Failure.Message != "":
		return strings.Join(strings.Fields(node.Failure.Message), " ")
	case slices.Contains(node.Labels(), slow):
		return "left to make test-slow"
	default:
		return ""
	}
}
