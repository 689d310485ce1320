package main

import (
	"fmt"
	"io"
	"log/slog"

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

// logger returns the one logger of the process and makes the libraries use it.
func (f *logFlags) logger(out io.Writer) (logr.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level is %q: want debug, info, warn or error", f.level)
	}
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler
	switch f.format {
	case "json":
		handler = slog.NewJSONHandler(out, options)
	case "text":
		handler = slog.NewTextHandler(out, options)
	default:
		return logr.Logger{}, fmt.Errorf("--log-format is %q: want json or text", f.format)
	}
	logger := logr.FromSlogHandler(handler)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger, nil
}
