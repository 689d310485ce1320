package postgres

import (
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// placeDemand is what a batch counts for in windows of places. Its slices have one entry for each name.
type placeDemand struct {
	// names are in order, so that two batches do not wait for each other crosswise.
	names []string
	rates []verification.Rate
	// requests are those of the rates, and calls how many creations of the batch count for each name.
	requests, calls []int64
}

// newPlaceDemand returns the demand of so many calls for each name, whose rate rateOf returns.
func newPlaceDemand(calls map[string]int64, rateOf func(name string) verification.Rate) placeDemand {
	var d placeDemand
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		rate := rateOf(name)
		d.names, d.rates = append(d.names, name), append(d.rates, rate)
		d.requests, d.calls = append(d.requests, int64(rate.Requests)), append(d.calls, calls[name])
	}
	return d
}

// demandOfNumbers returns the demand for phone numbers; none where they are not limited.
func demandOfNumbers(calls []*call[creation, verification.Created], limits verification.Limits) placeDemand {
	if !limits.PerPhoneNumber.Limited() {
		return placeDemand{}
	}
	numbers := map[string]int64{}
	for _, c := range calls {
		numbers[lineOf(c.in.New)]++
	}
	return newPlaceDemand(numbers, func(string) verification.Rate { return limits.PerPhoneNumber })
}

// demandOfGroups returns the demand for prefixes and subjects; none where neither is limited.
func demandOfGroups(calls []*call[creation, verification.Created], limits verification.Limits) placeDemand {
	groups := map[string]int64{}
	for _, c := range calls {
		for _, name := range [...]string{prefixOf(c.in.New, limits), subjectOf(c.in.New, limits)} {
			if name != "" {
				groups[name]++
			}
		}
	}
	return newPlaceDemand(groups, func(name string) verification.Rate { return groupRate(name, limits) })
}

// queueRead has the batch read what decides on the demand into windows.
func (d placeDemand) queueRead(batch *pgx.Batch, statement, project string, windows map[string]*placeWindow) {
	if len(d.names) == 0 {
		return
	}
	batch.Queue(statement, project, d.names, d.requests, d.calls, slices.Max(d.calls)).Query(readPlaces(windows))
}

// readPlaces returns the function that reads admissions into the windows that they belong to.
func readPlaces(windows map[string]*placeWindow) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		var (
			name   string
			last   int64
			lastAt time.Time
			place  *int64
			at     *time.Time
		)
		_, err := pgx.ForEachRow(rows, []any{&name, &last, &lastAt, &place, &at}, func() error {
			window := windows[name]
			if window == nil {
				window = &placeWindow{last: last, lastAt: lastAt.UTC(), times: make(map[int64]time.Time)}
				windows[name] = window
			}
			if place != nil {
				window.times[*place] = at.UTC()
			}
			return nil
		})
		return err
	}
}

// queueWrite has the batch store what the windows admitted, each under a place of its own.
func (d placeDemand) queueWrite(batch *pgx.Batch, statement, project string, windows map[string]*placeWindow, now time.Time) {
	var (
		names     []string
		places    []int64
		at, until []time.Time
	)
	for i, name := range d.names {
		window := windows[name]
		if window == nil {
			continue
		}
		for place := range window.admitted {
			names, places = append(names, name), append(places, window.last+1+place)
			at, until = append(at, window.at(now)), append(until, window.at(now).Add(d.rates[i].Period))
		}
	}
	if len(names) > 0 {
		batch.Queue(statement, project, names, places, at, until)
	}
}
