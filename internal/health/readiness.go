package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

var (
	errNotChecked  = errors.New("no check has finished yet")
	errOldResult   = errors.New("last check is too old")
	errInterrupted = errors.New("check timed out")
	errPanicked    = errors.New("check panicked")
)

// ReadinessOptions configures Readiness.
type ReadinessOptions struct {
	// Check returns an error while a dependency of the process is unavailable. It is called in the background, with a timeout of
	// one second. Required.
	Check func(context.Context) error
	// Serving returns an error while the process should get no traffic, for example while it drains. It is called for each probe
	// and must not block; nil for none.
	Serving func() error
	// Note returns what /readyz says after "ok", each line after a newline; nil for nothing.
	Note func() string
	Log  logr.Logger
}

// Readiness is a Runnable that checks periodically and answers probes with the last result. If each probe waited for a check,
// its connection would stay open, and looping clients could lock out the kubelet.
type Readiness struct {
	options ReadinessOptions

	mu     sync.Mutex
	result error     // of the last finished check
	began  time.Time // when that check started; zero before the first one
}

// NewReadiness returns a Readiness that is not ready until a check has succeeded.
func NewReadiness(o ReadinessOptions) *Readiness { return &Readiness{options: o} }

// NeedLeaderElection returns false: a manager starts it on every replica.
func (r *Readiness) NeedLeaderElection() bool { return false }

// Start runs checks until ctx ends.
func (r *Readiness) Start(ctx context.Context) error {
	for pause := firstPause; ; pause *= 2 {
		longest := readyPause
		if r.runCheck(ctx) != nil {
			longest = failedPause
		}
		pause = min(pause, longest)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (r *Readiness) runCheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	began := time.Now()
	result := r.callCheck(ctx)
	if result == nil && ctx.Err() != nil {
		result = errInterrupted
	}
	if result != nil {
		r.options.Log.V(1).Info("readiness check failed", "reason", result.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result, r.began = result, began
	return result
}

// callCheck calls Check. A panic counts as a failed check: a restart repairs no store.
func (r *Readiness) callCheck(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.options.Log.Error(errPanicked, "readiness check failed", "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return r.options.Check(ctx)
}

// Err returns why the process is not ready, or nil. It does not block.
func (r *Readiness) Err() error {
	if r.options.Serving != nil {
		if err := r.options.Serving(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.began.IsZero():
		return errNotChecked
	case r.result != nil:
		return r.result
	case time.Since(r.began) > maxResultAge:
		return errOldResult
	default:
		return nil
	}
}

// NewProbesHandler returns a handler for /livez and /readyz. The reason why a process is not ready appears only in its log.
func NewProbesHandler(r *Readiness) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if r.Err() != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		text := "ok"
		if r.options.Note != nil {
			text += r.options.Note()
		}
		writeText(w, http.StatusOK, text)
	})
	return mux
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the client may have disconnected
}
