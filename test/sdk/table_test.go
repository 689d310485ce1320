package sdk

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
)

// scenario is a row of the table.
type scenario struct {
	name string
	play func(p *play)
	// mutant is a defect of one library that the play must notice.
	mutant mutant
	// only are the languages that it is played in; none for all.
	only []string
}

// mutant replaces text that occurs once in a packed library.
type mutant struct{ language, old, new string }

// table returns all scenarios.
func table() []scenario {
	return slices.Concat(callScenarios, deliverScenarios, badScenarios, waitScenarios, confirmScenarios, listScenarios, receiveScenarios, handlerScenarios, sessionScenarios)
}

// atOnceEach is how many drivers of a language run: plays mostly wait.
const atOnceEach = 3

// TestScenarios plays each scenario in each language, and then with its mutant.
func TestScenarios(t *testing.T) {
	t.Parallel()
	packed(t)
	w := startWorld(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			folder := installed(t, language)
			drivers := make(chan *driver, atOnceEach)
			for range atOnceEach {
				drivers <- startDriver(t, language, folder)
			}
			for _, s := range table() {
				if len(s.only) > 0 && !slices.Contains(s.only, language) {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					d := <-drivers
					defer func() { drivers <- d }()
					defer failBroken(t)
					s.play(newPlay(t, NewWithT(t), d, w))
				})
			}
		})
	}
	t.Run("mutants", func(t *testing.T) {
		t.Parallel()
		slots := make(chan struct{}, atOnceEach*len(languages))
		for _, s := range table() {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				folder, environment := plant(t, s)
				d := startDriver(t, s.mutant.language, folder, environment...)
				defer d.stop()
				noticed := playUntilNoticed(t, s, d, w)
				if noticed == "" && !t.Skipped() {
					t.Fatalf("nothing notices that %s has %q for %q", s.mutant.language, s.mutant.new, s.mutant.old)
				}
				t.Log(strings.Join(strings.Fields(noticed), " "))
			})
		}
	})
}

// failBroken fails a test whose driver broke.
func failBroken(t *testing.T) {
	t.Helper()
	switch broken := recover().(type) {
	case nil:
	case brokenDriver:
		t.Fatal(string(broken))
	default:
		panic(broken)
	}
}

// playUntilNoticed plays a scenario and returns the first expectation that failed; nothing if none did. A driver that breaks notices nothing.
func playUntilNoticed(t *testing.T, s scenario, d *driver, w *world) (noticed string) {
	t.Helper()
	type result struct {
		noticed string
		broken  any
	}
	ended := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.broken = recover()
			ended <- r
		}()
		var fail types.GomegaFailHandler = func(message string, _ ...int) {
			r.noticed = message
			runtime.Goexit()
		}
		s.play(newPlay(t, NewGomega(fail), d, w))
	}()
	r := <-ended
	if r.broken != nil {
		t.Fatal(fmt.Sprint(r.broken))
	}
	return r.noticed
}
