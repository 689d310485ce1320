package postgres

import (
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// placeDemand is the number of admissions that a batch asks for in placeWindows. Its slices have one entry per name.
type placeDemand struct {
	// names are sorted, so that two batches cannot deadlock.
	names []string
	rates []verification.Rate
	// requests are the limits of the rates; calls are the creations of the batch that count for each name.
	requests, calls []int64
}

// newPlaceDemand returns the demand of calls, a number of creations by name. rateOf returns the rate of a name.
func newPlaceDemand(calls map[string]int64, rateOf func(name string) verification.Rate) placeDemand {
	var d placeDemand
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		rate := rateOf(name)
		d.names, d.rates = append(d.names, name), append(d.rates, rate)
		d.requests, d.calls = append(d.requests, int64(rate.Requests)), append(d.calls, calls[name])
	}
	return d
}

// demandOfNumbers returns the demand for phone numbers; none if they are not limited.
func demandOfNumbers(calls []*call[creation, verification.Created], limits verification.Limits) placeDemand {
	if !limits.PerPhoneNumber.Limited() {
		return placeDemand{}
	}
	numbers := map[string]int64{}
	for _, c := range calls {
		numbers[lineOf(c.in.Phone)]++
	}
	return newPlaceDemand(numbers, func(string) verification.Rate { return limits.PerPhoneNumber })
}

// demandOfGroups returns the demand for the windows of groupsOf; none if no creation counts in any.
func demandOfGroups(calls []*call[creation, verification.Created], limits verification.Limits) placeDemand {
	counts, rates := map[string]int64{}, map[string]verification.Rate{}
	for _, c := range calls {
		for _, g := range groupsOf(c.in.New, limits, &verification.Waits{}) {
			counts[g.name]++
			rates[g.name] = g.rate
		}
	}
	return newPlaceDemand(counts, func(name string) verification.Rate { return rates[name] })
}

// queueRead queues the query that reads the admissions that decide on the demand into windows.
func (d placeDemand) queueRead(batch *pgx.Batch, statement, project string, windows map[string]*placeWindow) {
	if len(d.names) == 0 {
		return
	}
	batch.Queue(statement, project, d.names, d.requests, d.calls, slices.Max(d.calls)).Query(readPlaces(windows))
}

// readPlaces returns a function that reads admissions into their windows.
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
		return wrapStep("read admissions of numbers and groups", err)
	}
}

// queueWrite queues the insert of the admissions of the windows, each at its own place.
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
			at, until = append(at, notBefore(window.lastAt, now)), append(until, notBefore(window.lastAt, now).Add(d.rates[i].Period))
		}
	}
	if len(names) > 0 {
		batch.Queue(statement, project, names, places, at, until)
	}
}
