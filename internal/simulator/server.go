package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewServer returns what serves a simulator until its context ends. Long polls end with it.
func NewServer(handler http.Handler, listener net.Listener, log logr.Logger) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		front := &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			// Telegram's long polls take up to 50 s.
			WriteTimeout: 90 * time.Second,
			IdleTimeout:  2 * time.Minute,
			BaseContext:  func(net.Listener) context.Context { return ctx },
			ErrorLog:     slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelInfo),
		}
		stopped := make(chan struct{})
		defer context.AfterFunc(ctx, func() {
			defer close(stopped)
			bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if front.Shutdown(bounded) != nil {
				_ = front.Close() // for net/http a connection without a request is busy for five seconds
			}
		})()
		if err := front.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the simulator: %w", err)
		}
		<-stopped
		return nil
	})
}
