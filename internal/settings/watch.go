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
	// quietPeriod is how long no event may arrive before files are read: editors and shells write in several steps.
	quietPeriod = 50 * time.Millisecond
	// maxDelay limits the wait for a quiet period.
	maxDelay = 300 * time.Millisecond
	// slowPoll is how often files are read without an event: some file systems, such as NFS, send none.
	slowPoll = 5 * time.Second
	// fastPoll replaces slowPoll if the system reported that events will be missing: nodes often run out of inotify
	// instances, and changes must be read within a second.
	fastPoll = 900 * time.Millisecond
)

// watched describes the files to watch.
type watched struct {
	// dirs returns the folders to watch. Folders that do not exist are skipped.
	dirs func() []string
	// reload reads all files again.
	reload func()
}

// watchFolders calls reload soon after an event in a folder, and periodically, until ctx ends.
func watchFolders(ctx context.Context, clk clock.Clock, log logr.Logger, w watched) error {
	events := newNotifications(log)
	defer events.close()
	events.watchDirs(w.dirs())

	timer := clk.NewTimer(0) // for changes before the folders were watched
	defer timer.Stop()
	var since time.Time // of the first event after the last reload
	scheduleReload := func() {
		if since.IsZero() {
			since = clk.Now()
		}
		timer.Reset(min(quietPeriod, max(0, maxDelay-clk.Since(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-events.errors():
			events.reportIncomplete(err) // most likely the event queue overflowed
			scheduleReload()
		case <-events.events():
			scheduleReload()
		case <-timer.C():
			since = time.Time{}
			w.reload()
			if events.watchDirs(w.dirs()) {
				timer.Reset(quietPeriod) // for changes there before it was watched
			} else {
				timer.Reset(events.pollInterval())
			}
		}
	}
}

// notifications receives events of the file system, or none if the system provides none.
type notifications struct {
	watcher    *fsnotify.Watcher
	log        logr.Logger
	incomplete bool // some events are missing, which was logged
}

func newNotifications(log logr.Logger) *notifications {
	n := &notifications{log: log}
	var err error
	if n.watcher, err = fsnotify.NewWatcher(); err != nil {
		n.watcher = nil
		n.reportIncomplete(err)
	}
	return n
}

// pollInterval returns how often to read files without an event.
func (n *notifications) pollInterval() time.Duration {
	if n.incomplete {
		return fastPoll
	}
	return slowPoll
}

// reportIncomplete logs once that some changes are found only by polling.
func (n *notifications) reportIncomplete(err error) {
	if !n.incomplete {
		n.incomplete = true
		n.log.Info("file notifications incomplete, polling for changes", "interval", fastPoll.String(), "reason", err.Error())
	}
}

func (n *notifications) events() <-chan fsnotify.Event {
	if n.watcher == nil {
		return nil
	}
	return n.watcher.Events
}

func (n *notifications) errors() <-chan error {
	if n.watcher == nil {
		return nil
	}
	return n.watcher.Errors
}

// watchDirs watches exactly dirs, with their links resolved, and reports whether it added one.
func (n *notifications) watchDirs(dirs []string) (added bool) {
	if n.watcher == nil {
		return false
	}
	for i := range dirs {
		dirs[i] = resolvePath(dirs[i])
	}
	watching := n.watcher.WatchList()
	for _, dir := range watching {
		if !slices.Contains(dirs, dir) {
			_ = n.watcher.Remove(dir) // a removed folder is no longer watched anyway
		}
	}
	for _, dir := range dirs {
		if slices.Contains(watching, dir) {
			continue
		}
		err := n.watcher.Add(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			n.reportIncomplete(err)
		}
		added = added || err == nil
	}
	return added
}

func (n *notifications) close() {
	if n.watcher != nil {
		_ = n.watcher.Close() // nothing was written
	}
}
