package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
)

func newServeCommand(dependencies server.Dependencies) *cobra.Command {
	var (
		o   server.Options
		log logging.Options
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the verification API of one project",
		Long: `Run the verification API of one project: init and status for client backends, expiry of requests, delivery of
signed webhooks, and clean-up.

The project file is a VerificationProject, the same YAML that a cluster takes. The files of its secrets are at
SECRETS-DIR/SECRET/KEY. Changes of both are picked up within a second; a project file that is not valid any more is
reported and changes nothing.

Probes and metrics are on a port of their own: /livez, /readyz, /metrics, and /problems: the secrets that cannot be used
and the change of the project that was refused.`,
		Example: `  # an API key for the project, where its secretRef {name: shop-backend, key: api-key} points to
  mkdir -p secrets/shop-backend && phoneproof keygen > secrets/shop-backend/api-key

  # run it, with requests in memory
  phoneproof serve --project-file project.yaml --secrets-dir secrets --store memory

  # serve a project of a cluster, as a replica beside others; webhooks may go to the namespace's own services
  phoneproof serve --project shop/shop --kubeconfig ~/.kube/config --secrets-dir secrets \
    --webhook-allow shop=10.96.0.0/12:8443

  # start a verification, and ask how it stands
  curl -sS http://localhost:8080/api/verify/init -H "Authorization: Bearer $(cat secrets/shop-backend/api-key)" \
    -H 'Content-Type: application/json' -d '{"phoneNumber": "+4915112345678"}'
  curl -sS "http://localhost:8080/api/verify/status?id=REQUEST_ID" \
    -H "Authorization: Bearer $(cat secrets/shop-backend/api-key)"`,
		Args:    refuseProjectFileArgument,
		PreRunE: func(*cobra.Command, []string) error { return o.Complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			lines := logging.NewWriter(cmd.ErrOrStderr(), clock.RealClock{})
			defer lines.Flush() //nolint:errcheck // as with every line
			logger, err := log.NewLogger(lines)
			if err != nil {
				return fmt.Errorf("configure logging: %w", err)
			}
			requests, err := log.NewHandler(lines.Later())
			if err != nil {
				return fmt.Errorf("configure request log: %w", err)
			}
			dependencies.ConnectionBudget = boundedhttp.Budget() // of the whole limit
			server.TuneGarbageCollector()
			dependencies.Log, dependencies.RequestLog = logger, requests
			dependencies.Runnables = append(dependencies.Runnables, server.ReturnMemory())
			return server.Run(cmd.Context(), o, dependencies)
		},
	}
	o.AddFlags(cmd.Flags())
	log.AddFlags(cmd.Flags())
	completeValues(cmd, "store", server.StoreKubernetes, server.StoreMemory, server.StorePostgreSQL)
	completeLogValues(cmd, "log-")
	completeFiles(cmd, "project-file", "yaml", "yml", "json")
	completeFolders(cmd, "secrets-dir")
	return cmd
}

// refuseProjectFileArgument refuses every argument, and names the flag that a project file belongs to.
func refuseProjectFileArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: use --project-file %s, or --project NAMESPACE/NAME; see %s --help",
		args[0], args[0], cmd.CommandPath())
}
