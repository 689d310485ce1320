// Package logging makes the loggers of a process, and writes their lines: frequent lines that matter little one by one may
// wait for a moment, so that one system call writes many of them.
//
// Invariant: lines leave in the order in which they were written, each whole. What may wait waits for at most Hold, and not
// at all once anything else is written, so whatever went wrong is there at once with all that led to it. A process that is
// killed loses what waits; one that ends in order calls Flush.
package logging

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// Hold is how long a line may wait.
	Hold = 100 * time.Millisecond
	// mostHeld bounds what waits, in bytes: about a hundred lines, half of what a pipe takes.
	mostHeld = 32 << 10
)

// Writer writes lines, each with one Write, as log handlers do. It is safe for concurrent use.
type Writer struct {
	out   io.Writer
	clock clock.WithDelayedExecution

	mu   sync.Mutex
	held []byte
	// timer ends the wait of what is held; nil while nothing is.
	timer clock.Timer
}

// NewWriter returns a writer to out.
func NewWriter(out io.Writer, c clock.WithDelayedExecution) *Writer {
	return &Writer{out: out, clock: c, held: make([]byte, 0, mostHeld)}
}

// Write writes a line at once, after those that wait.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.held) == 0 {
		return w.out.Write(line)
	}
	w.held = append(w.held, line...)
	return len(line), w.flush()
}

// Flush writes what waits.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *Writer) flush() error {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.out.Write(w.held)
	w.held = w.held[:0]
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// expire ends the wait.
func (w *Writer) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	w.flush() //nolint:errcheck // a log that cannot be written has nowhere to say so
}

// Later returns a writer of lines that may wait.
func (w *Writer) Later() io.Writer { return later{w} }

type later struct{ writer *Writer }

// Write keeps a line for a moment.
func (l later) Write(line []byte) (int, error) {
	w := l.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if len(w.held)+len(line) > mostHeld {
		err = w.flush()
	}
	w.held = append(w.held, line...)
	if w.timer == nil {
		w.timer = w.clock.AfterFunc(Hold, w.expire)
	}
	return len(line), err
}
