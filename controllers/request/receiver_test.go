package request

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestReceiver_tellsEachChangeOnce(t *testing.T) {
	g := NewWithT(t)
	var r Receiver
	failed, taken := verification.Attempt{}, verification.Attempt{Delivered: true}
	for _, step := range []struct {
		attempt verification.Attempt
		want    Change
	}{
		{taken, Unchanged},
		{failed, Unchanged}, {failed, Unchanged}, {taken, Unchanged},
		{failed, Unchanged}, {failed, Unchanged}, {failed, StartsFailing}, {failed, Unchanged}, {failed, Unchanged},
		{taken, Recovers}, {taken, Unchanged},
		{failed, Unchanged},
	} {
		g.Expect(r.Note(step.attempt)).To(Equal(step.want))
	}
}
