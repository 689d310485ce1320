package logging

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Options say what a process logs, and how.
type Options struct {
	// Format is json or text.
	Format string
	// Level is debug, info, warn or error.
	Level string
}

// AddFlags adds the flags --log-format and --log-level. Values that are set already are their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	if o.Format == "" {
		o.Format = "json"
	}
	if o.Level == "" {
		o.Level = "info"
	}
	flags.StringVar(&o.Format, "log-format", o.Format, "json or text")
	flags.StringVar(&o.Level, "log-level", o.Level, "debug, info, warn or error")
}

// setLibraryLogger guards the logger of the libraries: they read it without a lock once they run.
var setLibraryLogger sync.Once

// NewLogger returns the logger of the process and makes the libraries use it. In a process that runs several commands, as
// tests do, the libraries keep the first one.
func (o *Options) NewLogger(out io.Writer) (logr.Logger, error) {
	handler, err := o.NewHandler(out)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-%w", err)
	}
	logger := logr.FromSlogHandler(handler)
	setLibraryLogger.Do(func() {
		log.SetLogger(logger)
		klog.SetLogger(logger)
	})
	return logger, nil
}

// NewHandler returns a handler that writes to out. Errors begin with "format" or "level", the end of the flag's name, whose
// beginning may be another one than "--log-".
func (o *Options) NewHandler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.Level)); err != nil {
		return nil, fmt.Errorf("level is %q: want debug, info, warn or error", o.Level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.Format {
	case "json":
		return slog.NewJSONHandler(out, options), nil
	case "text":
		return slog.NewTextHandler(out, options), nil
	default:
		return nil, fmt.Errorf("format is %q: want json or text", o.Format)
	}
}
