package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Writer appends to one ledger. Concurrent appends share one sync of the disk.
type Writer struct {
	file *os.File
	wake chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	lines  bytes.Buffer
	round  *round
	closed bool
}

// round is a group of records that are written and synced together.
type round struct {
	synced chan struct{}
	err    error // valid after synced is closed
}

// errClosed is returned by a closed ledger.
var errClosed = errors.New("ledger is closed")

// Create creates an empty ledger. The caller must Close it.
func Create(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	w := &Writer{file: file, wake: make(chan struct{}, 1), round: &round{synced: make(chan struct{})}}
	w.done.Go(w.sync)
	return w, nil
}

// Append writes a record and returns when it is on disk.
func (w *Writer) Append(record any) error {
	written, err := w.add(record)
	if err != nil {
		return err
	}
	<-written.synced
	return written.err
}

// Note writes a record without waiting for the disk; Close waits for it.
func (w *Writer) Note(record any) error {
	_, err := w.add(record)
	return err
}

func (w *Writer) add(record any) (*round, error) {
	line, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	w.lines.Write(line)
	w.lines.WriteByte('\n')
	select {
	case w.wake <- struct{}{}:
	default: // it is already awake
	}
	return w.round, nil
}

// sync writes one round after the other until Close.
func (w *Writer) sync() {
	for range w.wake {
		w.mu.Lock()
		lines, current := bytes.Clone(w.lines.Bytes()), w.round
		w.lines.Reset()
		w.round = &round{synced: make(chan struct{})}
		w.mu.Unlock()
		_, err := w.file.Write(lines)
		current.err = errors.Join(err, w.file.Sync())
		close(current.synced)
	}
}

// Close returns when all records are on disk.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	last := w.round
	pending := w.lines.Len() > 0
	close(w.wake)
	w.mu.Unlock()
	w.done.Wait()
	if !pending {
		return w.file.Close()
	}
	return errors.Join(last.err, w.file.Close())
}
