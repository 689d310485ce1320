// Package app is the phoneproof command: one file per subcommand, with its flags.
package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/version"
)

// Main runs the command of the process's arguments and returns its exit code. Servers get the dependencies; the shipped
// program passes none.
func Main(dependencies server.Dependencies) int {
	// The first signal ends the work in order; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := newCommand(dependencies).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "phoneproof:", err)
		return 1
	}
	return 0
}

// newCommand returns the command with all its subcommands.
func newCommand(dependencies server.Dependencies) *cobra.Command {
	root := &cobra.Command{
		Use:           "phoneproof",
		Short:         "Verify phone numbers through WhatsApp and Telegram",
		Version:       version.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newOperatorCommand(), newServeCommand(dependencies), newDevCommand(dependencies), newSimulatorCommand(),
		newKeygenCommand(), newVersionCommand())
	return root
}
