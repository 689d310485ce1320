package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/lease"
	"github.com/phoneproof/phoneproof/internal/linelog"
)

// The stores that --store names.
const (
	storeMemory     = "memory"
	storeKubernetes = "kubernetes"
	storePostgreSQL = "postgresql"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	project        string
	kubeconfig     string
	lease          lease.Times
	claimLease     time.Duration
	projectFile    string
	secretsDir     string
	mountedSecrets []string
	store          string
	storeSet       bool // by --store, not by default
	address        string
	healthAddress  string
	drainDelay     time.Duration
	webhook        webhookFlags
	channel        channelFlags
	log            logFlags
}

func newServeCommand() *cobra.Command {
	var o serveOptions
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			lines := linelog.New(cmd.ErrOrStderr(), clock.RealClock{})
			defer lines.Flush() //nolint:errcheck // as with every line
			logger, err := o.log.logger(lines)
			if err != nil {
				return err
			}
			requests, err := o.log.handler(lines.Later())
			if err != nil {
				return err
			}
			collectByLimit()
			return serve(cmd.Context(), o, logger, requests)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

func (o *serveOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.project, "project", "", "the VerificationProject of the cluster to serve, as NAMESPACE/NAME")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the cluster of --project; empty in a pod")
	flags.StringVar(&o.projectFile, "project-file", "", "the VerificationProject to serve without a cluster, as a YAML file")
	flags.StringVar(&o.secretsDir, "secrets-dir", "", "the folder with the files of the project's secrets, as SECRET/KEY")
	flags.StringSliceVar(&o.mountedSecrets, "mounted-secrets", nil,
		"with --project: what of the project's secrets this pod mounts, as SECRET/KEY; repeatable. "+
			"Others wait for pods that mount them and are not reported as missing; empty means all")
	flags.StringVar(&o.store, "store", "",
		"where requests are kept: kubernetes (VerificationRequest objects; the default with --project), "+
			"memory (lost when the process ends; the default with --project-file), "+
			"or postgresql (what spec.storage names; the default with a --project-file that has it)")
	flags.StringVar(&o.address, "bind-address", ":8080", "the address of the API")
	flags.StringVar(&o.healthAddress, "health-bind-address", ":8081", "the address of probes and metrics")
	flags.DurationVar(&o.drainDelay, "drain-delay", 5*time.Second,
		"how long to go on answering after the signal to stop, while load balancers notice")
	o.lease = o.lease.Defaulted()
	flags.DurationVar(&o.lease.Duration, "lease-duration", o.lease.Duration,
		"how long the lease on the project's loops is respected when its holder is silent")
	flags.DurationVar(&o.lease.RenewDeadline, "lease-renew-deadline", o.lease.RenewDeadline,
		"how long the holder tries to renew it before it gives up")
	flags.DurationVar(&o.lease.RetryPeriod, "lease-retry-period", o.lease.RetryPeriod, "how long to wait between tries")
	flags.DurationVar(&o.claimLease, "claim-lease", request.DefaultClaimLease,
		"how long a replica keeps the requests that it claimed from a database; more than the longest delivery attempt takes")
	o.webhook.bind(flags)
	o.channel.bind(flags)
	o.log.bind(flags)
}

// complete checks what the flags say together.
func (o *serveOptions) complete() error {
	stores := []string{storeKubernetes, storePostgreSQL}
	if o.projectFile != "" {
		stores[0] = storeMemory
	}
	if o.storeSet = o.store != ""; !o.storeSet {
		o.store = stores[0] // a file may ask for the other
	}
	namespace, name, ok := strings.Cut(o.project, "/")
	switch {
	case (o.project == "") == (o.projectFile == ""):
		return errors.New("one of --project NAMESPACE/NAME and --project-file FILE is required: the VerificationProject to serve")
	case o.project != "" && (!ok || namespace == "" || name == ""):
		return fmt.Errorf("--project is %q: want NAMESPACE/NAME", o.project)
	case o.secretsDir == "":
		return errors.New("--secrets-dir is required: the folder with the files of the project's secrets, as SECRET/KEY")
	case !slices.Contains(stores, o.store):
		return fmt.Errorf("--store is %q: want %s here", o.store, strings.Join(stores, " or "))
	case o.drainDelay < 0 || o.drainDelay > time.Minute:
		return fmt.Errorf("--drain-delay is %s: want 0s to 1m", o.drainDelay)
	case o.drainDelay == 0:
		o.drainDelay = -1 // the server takes zero for its default
	}
	return nil
}
