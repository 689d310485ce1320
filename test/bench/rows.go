package main

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// series holds the figures of the rounds, in their order.
type series []float64

// median returns the middle value, the mean of the two middle values for an even count, and NaN for an empty series.
func (s series) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// dividedBy divides round by round.
func (s series) dividedBy(limit series) series {
	ratios := make(series, min(len(s), len(limit)))
	for i := range ratios {
		ratios[i] = s[i] / limit[i]
	}
	return ratios
}

// minus subtracts round by round.
func (s series) minus(other series) series {
	left := make(series, min(len(s), len(other)))
	for i := range left {
		left[i] = s[i] - other[i]
	}
	return left
}

// aim is the target of a figure: of the ratio if there is a limit, else of the figure itself.
type aim struct {
	value float64
	most  bool
}

// atLeast and atMost return aims for ratios, and for figures without a limit.
func atLeast(value float64) *aim { return &aim{value, false} }
func atMost(value float64) *aim  { return &aim{value, true} }

// isMet reports whether a figure meets the aim.
func (a aim) isMet(value float64) bool {
	if a.most {
		return value <= a.value
	}
	return value >= a.value
}

// String returns the aim with its direction.
func (a aim) String() string {
	if a.most {
		return fmt.Sprintf("≤ %v", a.value)
	}
	return fmt.Sprintf("≥ %v", a.value)
}

// row is one figure of the table.
type row struct {
	figure string
	unit   string
	// limitIs names the limit; empty if there is none.
	limitIs     string
	ours, limit series
	aim         *aim
}

// ratio returns the figure divided by the limit, for each round.
func (r row) ratio() series { return r.ours.dividedBy(r.limit) }

// judgedValue returns the value that the aim applies to.
func (r row) judgedValue() float64 {
	if r.limitIs == "" {
		return r.ours.median()
	}
	return r.ratio().median()
}

// sample holds the results of one measurement, by the figures' keys.
type sample map[string]float64

// side is one of the things that are measured by turns.
type side func(ctx context.Context, round int) (sample, error)

// samples are those of one side, in the order of rounds.
type samples []sample

func (s samples) valuesOf(key string) series {
	values := make(series, len(s))
	for i := range s {
		values[i] = s[i][key]
	}
	return values
}

// measureByTurns measures each side once per round. Every second round goes backwards, so that changes of the machine
// over time favour none.
func (b *bench) measureByTurns(ctx context.Context, sides ...side) ([]samples, error) {
	found := make([]samples, len(sides))
	for round := range b.rounds {
		order := make([]int, len(sides))
		for i := range order {
			order[i] = i
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			got, err := b.measureOnce(ctx, sides[i], round)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", round+1, err)
			}
			found[i] = append(found[i], got)
		}
	}
	return found, nil
}

// mostRepeats is how often a failed measurement is repeated.
const mostRepeats = 3

// measureOnce measures one side. A busy machine may stall for longer than a call waits for its answer, so a round with
// a refused call is repeated; the report gives the number of repetitions.
func (b *bench) measureOnce(ctx context.Context, measure side, round int) (sample, error) {
	for failures := 0; ; failures++ {
		got, err := measure(ctx, round)
		if err == nil || failures == mostRepeats || ctx.Err() != nil {
			return got, err
		}
		b.repeated++
		b.logf("  measurement failed, will retry: %v", err)
	}
}

// addRow adds a row to the report and prints it at once.
func (b *bench) addRow(r row) {
	b.rows = append(b.rows, r)
	b.logf("  %s", formatRow(r))
}
