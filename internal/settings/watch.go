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
	// slowPoll is how often files are read without a sign: some file systems, such as NFS, give none.
	slowPoll = 5 * time.Second
	// fastPoll takes its place where the system said that there will be no signs: nodes run out of inotify instances
	// all the time, and a second is a promise.
	fastPoll = 900 * time.Millisecond
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

	timer := clk.NewTimer(0) // for what happened before the folders were watched
	defer timer.Stop()
	var since time.Time // of the first sign that was not answered
	soon := func() {
		if since.IsZero() {
			since = clk.Now()
		}
		timer.Reset(min(quiet, max(0, patience-clk.Since(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-signs.errors():
			signs.incomplete(err) // most likely there were too many to keep
			soon()
		case <-signs.events():
			soon()
		case <-timer.C():
			since = time.Time{}
			w.reload()
			if signs.follow(w.dirs()) {
				timer.Reset(quiet) // for what happened there before it was watched
			} else {
				timer.Reset(signs.poll())
			}
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

// poll returns how often to look without a sign.
func (s *signs) poll() time.Duration {
	if s.told {
		return fastPoll
	}
	return slowPoll
}

// incomplete tells once that some changes are found by polling only.
func (s *signs) incomplete(err error) {
	if !s.told {
		s.told = true
		s.log.Info("not every file change is notified, the rest is found by polling", "interval", fastPoll.String(), "reason", err.Error())
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

// follow makes dirs, where links lead to now, the watched folders, and tells whether one is new.
func (s *signs) follow(dirs []string) (added bool) {
	if s.watcher == nil {
		return false
	}
	for i := range dirs {
		dirs[i] = resolved(dirs[i])
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
		err := s.watcher.Add(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.incomplete(err)
		}
		added = added || err == nil
	}
	return added
}

func (s *signs) close() {
	if s.watcher != nil {
		_ = s.watcher.Close() // nothing was written
	}
}
