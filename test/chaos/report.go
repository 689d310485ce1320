package main

import (
	"fmt"
	"io"
	"sync"
)

// report is what the runs of all stores print, and the sum of their verdicts.
type report struct {
	mu     sync.Mutex
	out    io.Writer
	counts tally
}

// Write prints what one call of Fprintf prints, without a part of another's in it.
func (r *report) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(text)
}

// add counts verdicts and prints them together.
func (r *report) add(counts tally, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.passed += counts.passed
	r.counts.failed += counts.failed
	r.counts.skipped += counts.skipped
	fmt.Fprint(r.out, text)
}
