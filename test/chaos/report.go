package main

import (
	"fmt"
	"io"
	"sync"
)

// report prints the output of the runs of all stores and sums up their verdicts.
type report struct {
	// turn is held by the run that has load: two at once would starve each other's processes.
	turn   sync.Mutex
	mu     sync.Mutex
	out    io.Writer
	counts tally
}

// Write prints the output of one Fprintf in one piece.
func (r *report) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(text)
}

// add adds counts and prints their verdicts in one piece.
func (r *report) add(counts tally, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.passed += counts.passed
	r.counts.failed += counts.failed
	r.counts.skipped += counts.skipped
	fmt.Fprint(r.out, text)
}
