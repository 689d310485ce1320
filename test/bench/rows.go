package main

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// series are the figures of the rounds, in their order.
type series []float64

// median is the middle one; the mean of the two middle ones where there is no middle.
func (s series) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// over divides round by round.
func (s series) over(limit series) series {
	ratios := make(series, min(len(s), len(limit)))
	for i := range ratios {
		ratios[i] = s[i] / limit[i]
	}
	return ratios
}

// aim is what a figure should be: the ratio where there is a limit, else the figure itself.
type aim struct {
	value float64
	most  bool
}

// The aims of ratios and of figures without a limit.
func atLeast(value float64) *aim { return &aim{value, false} }
func atMost(value float64) *aim  { return &aim{value, true} }

// met tells whether a figure is what it should be.
func (a aim) met(value float64) bool {
	if a.most {
		return value <= a.value
	}
	return value >= a.value
}

// String is the aim with its direction.
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
	// limitIs says what the limit is; empty where there is none.
	limitIs     string
	ours, limit series
	aim         *aim
}

// ratio is ours over the limit.
func (r row) ratio() series { return r.ours.over(r.limit) }

// judged is what the aim is for.
func (r row) judged() float64 {
	if r.limitIs == "" {
		return r.ours.median()
	}
	return r.ratio().median()
}

// sample is what one measurement found, by the figures' keys.
type sample map[string]float64

// side is one of two things that are measured by turns.
type side func(ctx context.Context, round int) (sample, error)

// samples are those of one side, in the order of rounds.
type samples []sample

func (s samples) of(key string) series {
	values := make(series, len(s))
	for i := range s {
		values[i] = s[i][key]
	}
	return values
}

// turns measures sides by turns, each as often as there are rounds. Every second round goes backwards, so that whatever
// changes with time favours neither.
func (b *bench) turns(ctx context.Context, sides ...side) ([]samples, error) {
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
			got, err := b.once(ctx, sides[i], round)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", round+1, err)
			}
			found[i] = append(found[i], got)
		}
	}
	return found, nil
}

// mostRepeats is how often a measurement is begun anew that met a failure.
const mostRepeats = 3

// once measures one side. A machine that is busy with other things may stand still for longer than calls wait for an
// answer: a round with a refused call has no figure, and is measured again. The report tells how many were.
func (b *bench) once(ctx context.Context, measure side, round int) (sample, error) {
	for failures := 0; ; failures++ {
		got, err := measure(ctx, round)
		if err == nil || failures == mostRepeats || ctx.Err() != nil {
			return got, err
		}
		b.repeated++
		b.sayf("  once more: %v", err)
	}
}

// add makes a row of a figure, and tells it at once.
func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	b.sayf("  %s", plain(r))
}
