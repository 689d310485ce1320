package settings

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// quiet is how long nothing may happen before files are read: editors and shells write in several steps.
	quiet = 50 * time.Millisecond
	// patience is how long quiet is waited for.
	patience = 300 * time.Millisecond
	// poll is how often files are read without a sign. It alone keeps the promise of a second where there are no signs:
	// on network file systems, and on nodes that ran out of inotify instances. It reads a few small files.
	poll = 900 * time.Millisecond
)

// watched is what watch looks after.
type watched struct {
	// dirs returns the folders in which something may happen. Those that do not exist are left out.
	dirs func() []string
	// reload reads everything again.
	reload func()
}

// watch reloads soon after something happened in a folder, and from time to time, until ctx ends.
func watch(ctx context.Context, clk clock.Clock, log logr.Logger, w watched) error {
	signs := newSigns(log)
	defer signs.close()
	signs.follow(w.dirs())
	w.reload() // what happened before the folders were watched

	timer := clk.NewTimer(poll)
	defer timer.Stop()
	var since time.Time // of the first sign that was not answered
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-signs.errors():
			// Most likely too many events to keep: what they were is found by polling.
			signs.incomplete(err)
		case <-signs.events():
			if since.IsZero() {
				since = clk.Now()
			}
			timer.Stop()
			timer.Reset(min(quiet, max(0, patience-clk.Since(since))))
		case <-timer.C():
			since = time.Time{}
			signs.follow(w.dirs())
			w.reload()
			timer.Reset(poll)
		}
	}
}

// signs are the file system's notifications, or none where it gives none.
type signs struct {
	watcher *fsnotify.Watcher
	log     logr.Logger
	told    bool // that notifications are not complete
}

func newSigns(log logr.Logger) *signs {
	s := &signs{log: log}
	var err error
	if s.watcher, err = fsnotify.NewWatcher(); err != nil {
		s.watcher = nil
		s.incomplete(err)
	}
	return s
}

// incomplete tells once that changes may be found by polling only. Nodes run out of inotify instances all the time.
func (s *signs) incomplete(err error) {
	if !s.told {
		s.told = true
		s.log.Info("not every file change is notified, the rest is found by polling", "interval", poll.String(), "reason", err.Error())
	}
}

func (s *signs) events() <-chan fsnotify.Event {
	if s.watcher == nil {
		return nil
	}
	return s.watcher.Events
}

func (s *signs) errors() <-chan error {
	if s.watcher == nil {
		return nil
	}
	return s.watcher.Errors
}

// follow makes dirs, where links lead to now, the watched folders.
func (s *signs) follow(dirs []string) {
	if s.watcher == nil {
		return
	}
	for i := range dirs {
		dirs[i] = real(dirs[i])
	}
	watching := s.watcher.WatchList()
	for _, dir := range watching {
		if !slices.Contains(dirs, dir) {
			_ = s.watcher.Remove(dir) // gone is as good
		}
	}
	for _, dir := range dirs {
		if slices.Contains(watching, dir) {
			continue
		}
		if err := s.watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.incomplete(err)
		}
	}
}

func (s *signs) close() {
	if s.watcher != nil {
		_ = s.watcher.Close() // nothing was written
	}
}
