package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/system"
)

func TestParseOptions(t *testing.T) {
	g := NewWithT(t)
	o, err := parseOptions(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.stores).To(ConsistOf(system.PostgreSQL, system.Kubernetes))
	g.Expect(o.seed).NotTo(BeZero(), "one is drawn")
	g.Expect(o.duration).To(Equal(3 * time.Minute))

	o, err = parseOptions([]string{"-store=kubernetes", "-seed=7", "-duration=4m"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.stores).To(HaveExactElements(system.Kubernetes))
	g.Expect(o.seed).To(BeEquivalentTo(7))
	g.Expect(o.duration).To(Equal(4 * time.Minute))

	o, err = parseOptions([]string{"-standby=synchronous"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.stores).To(HaveExactElements(system.PostgreSQL))
	_, err = parseOptions([]string{"-standby=both"})
	g.Expect(err).To(MatchError(ContainSubstring(`-standby is "both"`)))

	_, err = parseOptions([]string{"-store=memory"})
	g.Expect(err).To(MatchError(ContainSubstring(`-store is "memory"`)))
}

func TestTally(t *testing.T) {
	NewWithT(t).Expect(tally{12, 1, 2}.String()).To(Equal("12 passed, 1 failed, 2 skipped"), "the format that .ci/run parses")
}
