package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestUnavailableError_namesTheStepsAndNoRow(t *testing.T) {
	for name, test := range map[string]struct {
		state, text string
		is          error
	}{
		"a refused value":   {"23514", "the database refuses a value (SQLSTATE 23514)", verification.ErrContent},
		"a stopping server": {"57P01", "the database is not available: terminating (SQLSTATE 57P01)", verification.Unavailable(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cause := wrapStep("lock keys", fmt.Errorf("scan +4915112345678: %w", &pgconn.PgError{Code: test.state, Message: "terminating"}))
			err := unavailableError(wrapStep("read windows", fmt.Errorf("batch of +4915112345678: %w", cause)))
			g.Expect(err).To(MatchError(test.is))
			problem, found := errors.AsType[*DatabaseError](err)
			g.Expect(found).To(BeTrue())
			g.Expect(problem.Message).To(Equal(test.text))
			g.Expect(err.Error()).To(HaveSuffix("read windows: lock keys: " + test.text))
		})
	}
}

func TestWrapStep_ofNoError(t *testing.T) {
	NewWithT(t).Expect(wrapStep("read windows", nil)).To(Succeed())
}
