package request

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
)

func TestOutage_logsItsBeginItsEndAndNowAndThenThatItLasts(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	var o outage
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	down := errors.New("connection refused")

	o.logResult(log, start, "claim due requests", nil)
	g.Expect(lines).To(BeEmpty(), "a working store logs nothing")
	for second := range 125 {
		o.logResult(log, start.Add(time.Duration(second)*time.Second), "claim due requests", down)
	}
	g.Expect(lines).To(HaveExactElements(
		And(ContainSubstring("connection refused"), ContainSubstring(`"failures"=1`)),
		ContainSubstring(`"failures"=61`), ContainSubstring(`"failures"=121`)))
	o.logResult(log, start.Add(125*time.Second), "claim due requests", nil)
	o.logResult(log, start.Add(126*time.Second), "claim due requests", nil)
	g.Expect(lines).To(HaveLen(4))
	g.Expect(lines[3]).To(And(ContainSubstring("answers again"), ContainSubstring(`"after"="2m5s"`), ContainSubstring(`"failures"=125`)))
	o.logResult(log, start.Add(130*time.Second), "claim due requests", down)
	g.Expect(lines).To(HaveLen(5), "the next failure is logged again")
}
