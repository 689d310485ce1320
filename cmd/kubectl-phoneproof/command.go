package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/internal/plugin/doctor"
	"github.com/phoneproof/phoneproof/internal/plugin/report"
	"github.com/phoneproof/phoneproof/internal/plugin/requests"
	"github.com/phoneproof/phoneproof/internal/plugin/rotate"
	"github.com/phoneproof/phoneproof/internal/plugin/status"
	"github.com/phoneproof/phoneproof/internal/version"
)

// runCommand runs the command and returns the exit code of its program.
func runCommand(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	cmd := newCommandIn(&plugin.Env{Streams: streams})
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := 1
	if coded, ok := errors.AsType[*doctor.ExitError](err); ok {
		code = coded.Code
	}
	if !errors.Is(err, doctor.ErrFindings) {
		fmt.Fprintln(streams.ErrOut, "Error:", err)
	}
	return code
}

// newCommandIn returns the command for an environment whose ways to pods may be replaced. It sets the flags of the environment.
func newCommandIn(env *plugin.Env) *cobra.Command {
	log.SetLogger(logr.Discard()) // controller-runtime's client would warn that it has none
	env.Flags = genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:   "kubectl-phoneproof",
		Short: "See and steer phone verification APIs",
		Long: `See and steer the phone verification APIs of a cluster: their projects, requests, events and secrets.

It works with your own rights. The help of each command names those that it needs.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl phoneproof"},
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(env.Streams.Out)
	root.SetErr(env.Streams.ErrOut)
	root.SetIn(env.Streams.In)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	env.Flags.Namespace = new("")
	env.Flags.AddFlags(root.PersistentFlags())
	root.AddCommand(
		status.NewCommand(env),
		requests.NewCommand(env),
		requests.NewVerifyCommand(env), requests.NewCancelCommand(env),
		requests.NewRedeliverCommand(env),
		rotate.NewCommand(env),
		report.NewCommand(env),
		doctor.NewCommand(env.Flags, env.Streams),
		status.NewSuspendCommand(env), status.NewResumeCommand(env), status.NewLogsCommand(env), status.NewMetricsCommand(env),
		newVersionCommand(env),
	)
	return root
}

func newVersionCommand(env *plugin.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the plugin",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return env.Print("%s", version.String())
		},
	}
}
