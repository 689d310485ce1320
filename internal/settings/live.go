package settings

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// Live keeps the settings of one project up to date: SetProject sets the project, and Start polls the secret files. It is
// safe for concurrent use.
type Live struct {
	files *SecretFiles
	clock clock.Clock
	log   logr.Logger

	current atomic.Pointer[Settings]
	changes verification.Notifier

	mu      sync.Mutex // guards the fields below
	project *verifyv1.VerificationProject
	secrets Secrets
	former  []FormerTexts
	err     error
}

// NewLive returns settings with the secrets in a folder and without a project.
func NewLive(secretsDir string, clk clock.Clock, log logr.Logger) *Live {
	return &Live{files: NewSecretFiles(secretsDir), clock: clk, log: log}
}

// Current returns the current settings; nil until SetProject has succeeded once.
func (l *Live) Current() *Settings { return l.current.Load() }

// Problems returns the secrets that cannot be used.
func (l *Live) Problems() []Problem {
	if s := l.Current(); s != nil {
		return s.Problems
	}
	return nil
}

// LastError returns why the last project was rejected; nil if it was accepted.
func (l *Live) LastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Subscribe returns a channel that receives a coalesced value after each change, and a function that ends the
// subscription. The end of a former value is no change: callers pass the current time and see it.
func (l *Live) Subscribe() (changes <-chan struct{}, cancel func()) { return l.changes.Subscribe("") }

// SetProject applies a project. A project that the API server would reject changes only LastError and is returned as an error.
// An unchanged project has no effect, so it may be called for every watch event.
func (l *Live) SetProject(project *verifyv1.VerificationProject) error {
	next := project.DeepCopy()
	next.Default()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := validateChange(next, l.project); err != nil {
		l.rejectProject(err)
		return err
	}
	if l.err != nil {
		l.err = nil
		l.log.Info("project is valid again")
	}
	l.updateSettings(next)
	return nil
}

// SetMounted sets which secrets this pod mounts; others are not reported as missing. It is called before SetProject.
func (l *Live) SetMounted(mounted Mounted) { l.files.mounted = mounted }

// ForgetProject makes SetProject accept a project that was created in place of the last one: its immutable fields may differ.
func (l *Live) ForgetProject() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.project = nil
}

// Start polls the secret files until ctx ends.
func (l *Live) Start(ctx context.Context) error { return pollFiles(ctx, l.clock, l.reloadSecrets) }

// NeedLeaderElection returns false: every replica has settings.
func (l *Live) NeedLeaderElection() bool { return false }

// rejectUnreadable records the error of a project that could not be read, and reloads the secrets.
func (l *Live) rejectUnreadable(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rejectProject(err)
	if l.project != nil {
		l.updateSettings(l.project)
	}
}

// reloadSecrets reads the secrets again.
func (l *Live) reloadSecrets() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.project != nil {
		l.updateSettings(l.project)
	}
}

// rejectProject keeps the settings and logs each new error once.
func (l *Live) rejectProject(err error) {
	if l.project != nil && (l.err == nil || l.err.Error() != err.Error()) {
		l.log.Error(err, "new project rejected, the last settings stay in use")
	}
	l.err = err
}

// updateSettings applies a valid project and the present values of its secrets.
func (l *Live) updateSettings(project *verifyv1.VerificationProject) {
	secrets := l.files.Read(project, l.secrets, l.clock.Now())
	change := findChanges(l.project, project, l.secrets, secrets)
	// A new generation may only spell out a default. It still counts as a change, because conditions report the generation.
	if change.isEmpty() && l.project != nil && l.project.Generation == project.Generation && !l.Current().Webhook.hasRecovered(project) {
		if !secrets.equal(l.secrets) { // a former value has expired and must leave the memory
			l.secrets = secrets
			l.storeSettings()
		}
		return
	}
	l.project, l.secrets = project, secrets
	l.storeSettings()
	change.logTo(l.log)
	l.changes.Notify("")
}

// maxFormerTexts bounds how many former texts are kept; a project that changes them more often loses the oldest.
const maxFormerTexts = 8

// storeSettings stores the settings of the project and its secrets, with the texts that it had before for as long as a request
// may live that was made with them.
func (l *Live) storeSettings() {
	next, now, last := FromProject(l.project, l.secrets), l.clock.Now(), l.Current()
	if next.Webhook != nil {
		var before *Webhook
		if last != nil {
			before = last.Webhook
		}
		next.Webhook.noteRepair(before, l.project, now)
	}
	l.former = slices.DeleteFunc(slices.Clone(l.former), func(f FormerTexts) bool { return !now.Before(f.Until) })
	if last != nil && !last.hasEqualAnswers(next) {
		l.former = append([]FormerTexts{{Texts: last.textSet(), Until: now.Add(last.TTL)}}, l.former...)
		l.former = l.former[:min(len(l.former), maxFormerTexts)]
	}
	next.FormerTexts = l.former
	l.current.Store(next)
}

// hasEqualAnswers reports whether users are to send the same texts.
func (s *Settings) hasEqualAnswers(other *Settings) bool {
	mine, others := s.textSet(), other.textSet()
	return slices.Equal(mine.Prepared(), others.Prepared()) && slices.Equal(mine.NotMeLabels(), others.NotMeLabels())
}

// pollInterval is how often files are read, so that a change takes effect within a second. Notifications would not do: nodes run out
// of inotify instances, and some file systems, such as NFS, send none.
const pollInterval = 900 * time.Millisecond

// pollFiles calls reload now and after each interval, until ctx ends.
func pollFiles(ctx context.Context, clk clock.Clock, reload func()) error {
	timer := clk.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C():
			reload()
			timer.Reset(pollInterval)
		}
	}
}

// validateChange returns the errors that the API server would return if next replaced old, which may be nil.
func validateChange(next, old *verifyv1.VerificationProject) error {
	if old == nil {
		return joinErrors(next.Validate())
	}
	if next.Namespace != old.Namespace || next.Name != old.Name {
		// Codes and stores depend on the name, so a server cannot switch projects.
		return fmt.Errorf("the project is now %s/%s and was %s/%s: another project needs another server",
			next.Namespace, next.Name, old.Namespace, old.Name)
	}
	return joinErrors(next.ValidateUpdate(old))
}
