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
	errNotChecked  = errors.New("no check has ended yet")
	errOldResult   = errors.New("the last check began too long ago")
	errInterrupted = errors.New("the check did not end in time")
	errPanicked    = errors.New("the check panicked")
)

// ReadinessOptions say what makes a process ready.
type ReadinessOptions struct {
	// Check returns an error while something is missing that the process depends on. It is called in the background, with a
	// context of a second. Required.
	Check func(context.Context) error
	// Serving returns an error while the process itself should get no traffic, such as before its end. It is called for each probe
	// and must return at once; nil for none.
	Serving func() error
	Log     logr.Logger
}

// Readiness is a Runnable that checks again and again, and answers probes at once by the last result. A check for each probe would
// hold the probe's connection, and strangers who ask in a loop would then keep the kubelet out.
type Readiness struct {
	options ReadinessOptions

	mu     sync.Mutex
	result error     // of the last check that ended
	began  time.Time // when that check began; zero before the first one
}

// NewReadiness returns a process that is not ready until a check has succeeded.
func NewReadiness(o ReadinessOptions) *Readiness { return &Readiness{options: o} }

// NeedLeaderElection reports that a manager starts it on every replica.
func (r *Readiness) NeedLeaderElection() bool { return false }

// Start checks until ctx ends.
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

// check makes a check. One that panics has failed: a restart repairs no store.
func (r *Readiness) callCheck(ctx context.Context) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.options.Log.Error(errPanicked, "readiness check", "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
			err = errPanicked
		}
	}()
	return r.options.Check(ctx)
}

// Err returns why the process is not ready, or nil. It never waits.
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

// NewProbesHandler answers /livez, and /readyz by the readiness. Why a process is not ready is for its log alone.
func NewProbesHandler(r *Readiness) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if r.Err() != nil {
			writeText(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		writeText(w, http.StatusOK, "ok")
	})
	return mux
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the reader may have gone
}
