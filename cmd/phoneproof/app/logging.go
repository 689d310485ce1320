package app

import (
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// logFlags are the flags of every subcommand that logs.
type logFlags struct {
	format string
	level  string
}

func (f *logFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.format, "log-format", "json", "json or text")
	flags.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
}

// libraries guards the logger of the libraries: it is the process's, and theirs to read without a lock once they run.
var libraries sync.Once

// logger returns the one logger of the process and makes the libraries use it. Where one process runs several commands,
// as tests do, the libraries keep the first one's.
func (f *logFlags) logger(out io.Writer) (logr.Logger, error) {
	handler, err := f.handler(out)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-%w", err)
	}
	logger := logr.FromSlogHandler(handler)
	libraries.Do(func() {
		ctrl.SetLogger(logger)
		klog.SetLogger(logger)
	})
	return logger, nil
}

// handler returns what the flags say. Errors begin with the end of the flag's name: the flags of other processes' logs
// are checked by it too.
func (f *logFlags) handler(out io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return nil, fmt.Errorf("level is %q: want debug, info, warn or error", f.level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch f.format {
	case "json":
		return slog.NewJSONHandler(out, options), nil
	case "text":
		return slog.NewTextHandler(out, options), nil
	default:
		return nil, fmt.Errorf("format is %q: want json or text", f.format)
	}
}
