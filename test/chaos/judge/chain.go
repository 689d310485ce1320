package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// maxChain is how many ledger lines are shown of one request, besides the faults.
const maxChain = 40

// evidenceLines returns the ledger lines of a request around a time, in order of time, with the faults near them.
func (e *Evidence) evidenceLines(id string, around time.Time) []string {
	var lines []line
	for _, a := range e.Acks {
		if a.ID == id {
			lines = append(lines, line{a.At, ledger.ClientFile, a})
		}
	}
	for _, in := range e.Inbound {
		mine := slices.DeleteFunc(slices.Clone(in.Messages), func(m ledger.Message) bool { return m.Request != id })
		if len(mine) > 0 {
			in.Messages = mine
			lines = append(lines, line{in.At, ledger.PlatformFile, in})
		}
	}
	for _, f := range e.Confirms {
		if f.ID == id {
			lines = append(lines, line{f.At, ledger.ConfirmFile, f})
		}
	}
	for _, c := range e.codes[id] {
		lines = append(lines, line{c.At, ledger.CodeFile, c})
	}
	for _, t := range e.triesOf(id) {
		lines = append(lines, line{t.At, ledger.TryFile, t})
	}
	for _, s := range e.Statuses {
		if s.ID == id {
			lines = append(lines, line{s.At, ledger.StatusFile, s})
		}
	}
	for _, d := range e.deliveries[id] {
		lines = append(lines, line{d.At, ledger.SinkFile, d})
	}
	for _, c := range e.histories[id] {
		lines = append(lines, line{c.At, ledger.StoreFile, c})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at.Sub(around).Abs(), b.at.Sub(around).Abs()) })
	more := max(0, len(lines)-maxChain)
	lines = append(lines[:len(lines)-more:len(lines)-more], e.faultsNear(id, lines, around)...)
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	shown := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		shown = append(shown, l.String())
	}
	if more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more, further away in time", more))
	}
	return shown
}

// faultsNear returns the faults that could have affected what happened to a request around a time, or any of the events, if their
// kind and victim fit.
func (e *Evidence) faultsNear(id string, lines []line, around time.Time) []line {
	var near []line
	reach := e.Times.Attempt + e.Times.Record + attemptTail(e.Times)
	times := []time.Time{around}
	for _, l := range lines {
		if l.file == ledger.SinkFile {
			times = append(times, l.at)
		}
	}
	for _, f := range e.Faults {
		if f.Request != "" && f.Request != id {
			continue
		}
		if slices.ContainsFunc(times, func(t time.Time) bool { return f.From.Before(t.Add(reach)) && f.Until.Add(reach).After(t) }) {
			near = append(near, line{f.From, ledger.FaultFile, f})
		}
	}
	return near
}

// line is one line of a ledger.
type line struct {
	at     time.Time
	file   string
	record any
}

// String returns the line with the name of its ledger.
func (l line) String() string {
	text, err := json.Marshal(l.record)
	if err != nil {
		return fmt.Sprintf("%s: %v", l.file, err)
	}
	return fmt.Sprintf("%s %-15s %s", formatTime(l.at), l.file, text)
}
