package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/dev"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
)

func newDevCommand(dependencies server.Dependencies) *cobra.Command {
	var (
		o   dev.Options
		log = logging.Options{Format: "text", Level: "warn"}
	)
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try everything on this machine: the API, simulated messengers and a webhook receiver",
		Long: `Run the verification API of one project with simulated messengers and a webhook receiver, on this machine alone, with
nothing to configure and nothing kept but the secrets that it makes up. A page plays the phones: open a link, send the text, see the
webhook arrive.

NOTHING THAT IT SAYS IS TRUE OF A REAL PHONE. It listens on loopback only, reaches nothing but loopback, and does not run in
a pod. With --project-file it serves your own project, with secrets that are made up unless they are in --secrets-dir. WhatsApp
and Telegram are simulated whatever the credentials are: those that begin with sim_ work, others go nowhere.`,
		Example: `  phoneproof dev
  phoneproof dev --project-file project.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := log.NewLogger(cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("configure logging: %w", err)
			}
			dependencies.Log = logger
			return dev.Run(cmd.Context(), o, dependencies, cmd.OutOrStdout())
		},
	}
	o.AddFlags(cmd.Flags())
	log.AddFlags(cmd.Flags())
	completeLogValues(cmd, "log-")
	completeFiles(cmd, "project-file", "yaml", "yml", "json")
	completeFolders(cmd, "secrets-dir")
	return cmd
}
