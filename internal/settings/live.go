package settings

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Live keeps the settings of one project current: whoever knows the project gives it to SetProject, and Start follows
// the secret files. It is safe for concurrent use.
type Live struct {
	dir   string
	files *SecretFiles
	clock clock.Clock
	log   logr.Logger

	current atomic.Pointer[Settings]
	changes verification.Notifier

	mu      sync.Mutex // of what follows
	project *verifyv1.VerificationProject
	secrets Secrets
	err     error
}

// NewLive returns live settings with the secrets in a folder. They have no project yet.
func NewLive(secretsDir string, clk clock.Clock, log logr.Logger) *Live {
	return &Live{dir: secretsDir, files: NewSecretFiles(secretsDir), clock: clk, log: log}
}

// Current returns the settings of this moment; nil until SetProject succeeded once.
func (l *Live) Current() *Settings { return l.current.Load() }

// Problems returns the secrets that cannot be used.
func (l *Live) Problems() []Problem {
	if s := l.Current(); s != nil {
		return s.Problems
	}
	return nil
}

// LastError returns why the project that was given last was refused; nil if it was not.
func (l *Live) LastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Subscribe returns a channel that gets a value, coalesced, after each change, and a function that ends the
// subscription. A former value whose time is over is no change: whoever asks with the time of the moment sees it.
func (l *Live) Subscribe() (changes <-chan struct{}, cancel func()) { return l.changes.Subscribe("") }

// SetProject makes a project the one to go by. One that the API server would refuse changes nothing but LastError. The
// same one again does nothing, so that it may be called for every event of a watch.
func (l *Live) SetProject(project *verifyv1.VerificationProject) error {
	next := project.DeepCopy()
	next.Default()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := valid(next, l.project); err != nil {
		l.refuse(err)
		return err
	}
	if l.err != nil {
		l.err = nil
		l.log.Info("the project is valid again", "project", next.Namespace+"/"+next.Name)
	}
	l.update(next)
	return nil
}

// Start follows the secret files until ctx ends.
func (l *Live) Start(ctx context.Context) error {
	return watch(ctx, l.clock, l.log, watched{dirs: l.dirs, reload: l.reload})
}

// NeedLeaderElection says that every replica has settings.
func (l *Live) NeedLeaderElection() bool { return false }

// keep refuses a project that could not even be read, and looks after the secrets all the same.
func (l *Live) keep(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse(err)
	if l.project != nil {
		l.update(l.project)
	}
}

// reload reads the secrets again.
func (l *Live) reload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.project != nil {
		l.update(l.project)
	}
}

// refuse keeps the settings and tells why, once.
func (l *Live) refuse(err error) {
	if l.project != nil && (l.err == nil || l.err.Error() != err.Error()) {
		l.log.Error(err, "the new project is refused; the settings stay as they were")
	}
	l.err = err
}

// update makes the settings that a valid project has now the current ones.
func (l *Live) update(project *verifyv1.VerificationProject) {
	secrets := l.files.Read(project, l.secrets, l.clock.Now())
	change := compare(l.project, project, l.secrets, secrets)
	// A new generation may say what the old one left to a default: it is the same, and has to be known as judged.
	if change.none() && l.project != nil && l.project.Generation == project.Generation {
		if !secrets.equal(l.secrets) { // a former value is over, so it leaves the memory
			l.secrets = secrets
			l.current.Store(FromProject(l.project, secrets))
		}
		return
	}
	l.project, l.secrets = project, secrets
	l.current.Store(FromProject(project, secrets))
	change.log(l.log)
	l.changes.Notify("")
}

// dirs returns the folders whose changes may change a secret: also the ones that links lead to.
func (l *Live) dirs() []string {
	dirs := []string{filepath.Dir(l.dir), l.dir}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.secrets.held {
		if localName(h.ref.Name) && localName(h.ref.Key) {
			dir := filepath.Join(l.dir, h.ref.Name)
			dirs = append(dirs, dir, filepath.Dir(resolved(filepath.Join(dir, h.ref.Key))))
		}
	}
	return dirs
}

// resolved returns where a path leads to; the path itself if it leads nowhere.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// valid returns what the API server would refuse when next replaces old, which may be nil.
func valid(next, old *verifyv1.VerificationProject) error {
	if old == nil {
		return joined(next.Validate())
	}
	if next.Namespace != old.Namespace || next.Name != old.Name {
		// Codes and stores go by the name: a server of two projects one after the other would be neither's.
		return fmt.Errorf("the project is now %s/%s and was %s/%s: another project needs another server",
			next.Namespace, next.Name, old.Namespace, old.Name)
	}
	return joined(next.ValidateUpdate(old))
}
