package messenger

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestOutcomeOf: every outcome of the domain has a label of its own.
func TestOutcomeOf(t *testing.T) {
	g := NewWithT(t)
	seen := map[Outcome]bool{}
	for o := verification.OutcomeNothing; o <= verification.OutcomeProven; o++ {
		label, err := OutcomeOf(verification.Receipt{Outcome: o}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(label).NotTo(BeEmpty())
		g.Expect(seen[label]).To(BeFalse(), string(label))
		seen[label] = true
	}
	g.Expect(OutcomeOf(verification.Receipt{Outcome: verification.OutcomeWrongMethod}, nil)).To(Equal(OutcomeWrongMethod))
	g.Expect(OutcomeOf(verification.Receipt{}, fmt.Errorf("update: %w", verification.ErrContent))).To(Equal(OutcomeContentRefused))
	away := errors.New("away")
	label, err := OutcomeOf(verification.Receipt{}, away)
	g.Expect(label).To(Equal(OutcomeFailed))
	g.Expect(err).To(MatchError(away))
}
