// Command phoneproof is the operator, the verification server and the tools around them, in one static binary.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The first signal ends the work in order; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "phoneproof:", err)
		os.Exit(1)
	}
}

// newCommand returns the command with all its subcommands, one file each.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "phoneproof",
		Short:         "Prove phone numbers through WhatsApp and Telegram",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newOperatorCommand(), newServeCommand(), newDevCommand(), newSimulatorCommand(), newKeygenCommand(), newVersionCommand())
	return root
}
