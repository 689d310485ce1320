package skipped

import (
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
)

func TestWrite_eachSkippedSpecWithItsReason(t *testing.T) {
	spec := func(text string, state types.SpecState, reason string) types.SpecReport {
		return types.SpecReport{
			LeafNodeType: types.NodeTypeIt, LeafNodeText: text, State: state,
			Failure: types.Failure{Message: reason},
		}
	}
	var out strings.Builder
	writeSkipped(&out, types.Report{SpecReports: types.SpecReports{
		spec("passes", types.SpecStatePassed, ""),
		spec("needs a queue", types.SpecStateSkipped, "the store\nhas none"),
		spec("is not chosen", types.SpecStateSkipped, ""),
		spec("waits", types.SpecStatePending, ""),
		{LeafNodeType: types.NodeTypeBeforeSuite, State: types.SpecStateSkipped, Failure: types.Failure{Message: "no server"}},
	}})
	NewWithT(t).Expect(out.String()).To(Equal("\nSKIPPED SPEC needs a queue: the store has none\n" +
		"SKIPPED SPEC waits: pending\nSKIPPED SPEC BeforeSuite: no server\n"))
}
