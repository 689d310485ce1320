package server

import (
	"math"
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLimitDecides(t *testing.T) {
	for name, test := range map[string]struct {
		gogc  string
		limit int64
		want  bool
	}{
		"a pod":                      {"", 115 << 20, true},
		"a machine":                  {"", math.MaxInt64, false},
		"a pod with GOGC set":        {"50", 115 << 20, false},
		"a machine with GOGC off":    {"off", math.MaxInt64, false},
		"a pod with GOGC off":        {"off", 115 << 20, false},
		"a pod with the default set": {"100", 115 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(limitDecides(test.gogc, test.limit)).To(Equal(test.want))
		})
	}
}

func TestTuneGarbageCollector(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GOGC", "")
	limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	debug.SetMemoryLimit(math.MaxInt64)
	TuneGarbageCollector()
	g.Expect(debug.SetGCPercent(100)).To(Equal(100))

	debug.SetMemoryLimit(5 << 30)
	TuneGarbageCollector()
	g.Expect(debug.SetGCPercent(100)).To(Equal(garbagePercent))
	g.Expect(debug.SetMemoryLimit(-1)).To(BeEquivalentTo(3 << 30))
}
