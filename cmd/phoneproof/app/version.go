package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/version"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), version.String()); err != nil {
				return fmt.Errorf("print the version: %w", err)
			}
			return nil
		},
	}
}
