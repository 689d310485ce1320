package app

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/server"
)

// operatorOptions are the flags of operator: what only the cluster's administrator may decide.
type operatorOptions struct {
	image              string
	pullPolicy         string
	pullSecrets        []string
	serverLog          logFlags
	webhook            server.WebhookOptions
	platforms          server.PlatformOptions
	permissions        project.Permissions
	accountGrants      []string
	hostGrants         []string
	namespaces         []string
	kubeconfig         string
	leaderElect        bool
	leaderNamespace    string
	lease              leader.Times
	maxUnreadyRollouts int
	metricsAddress     string
	metricsSecure      bool
	metricsCertPath    string
	healthAddress      string
	log                logFlags
}

func newOperatorCommand() *cobra.Command {
	var o operatorOptions
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator: make every VerificationProject a running API",
		Long: `Run the operator of a cluster: it makes every VerificationProject a running verification API, with ServiceAccount,
RoleBinding, Deployment and Service and, on request, Ingress, HTTPRoute, HorizontalPodAutoscaler, PodDisruptionBudget and
NetworkPolicy, and says in the project's conditions how it stands.

It reads no Secret. What projects may ask for is said by the flags that begin with --allow: a pattern is a whole value, or
has * for any text without a slash, and * alone matches everything. Naming one replaces the default.

Probes are at /livez and /readyz, metrics at /metrics of their own port, over HTTPS and with a token.`,
		Example: `  # watch the whole cluster
  phoneproof operator --server-image=ghcr.io/phoneproof/phoneproof:1.0.0

  # two namespaces, with rights in these alone
  phoneproof operator --server-image=ghcr.io/phoneproof/phoneproof:1.0.0 --watch-namespace=shop --watch-namespace=bank

  # let projects have load balancers, and annotations for those of AWS
  phoneproof operator --server-image=ghcr.io/phoneproof/phoneproof:1.0.0 \
    --allow-service-type=ClusterIP --allow-service-type=LoadBalancer \
    --allow-annotation='cert-manager.io/*' --allow-annotation='service.beta.kubernetes.io/*'

  # give a bot, and all names below a domain, to the projects of one namespace
  phoneproof operator --server-image=ghcr.io/phoneproof/phoneproof:1.0.0 \
    --grant-account=shop=telegram:ada_books_bot --grant-host='shop=*.shop.example.com'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			logger, err := o.log.logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return operate(cmd.Context(), o, logger)
		},
	}
	o.bind(cmd.Flags())
	completeLogValues(cmd, "log-")
	completeLogValues(cmd, "server-log-")
	completeValues(cmd, "server-image-pull-policy", string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))
	completeValues(cmd, "allow-service-type", string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeNodePort),
		string(corev1.ServiceTypeLoadBalancer))
	return cmd
}

func (o *operatorOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.image, "server-image", "", "the image of the pods that serve projects, usually this operator's own; required")
	flags.StringVar(&o.pullPolicy, "server-image-pull-policy", "", "Always, IfNotPresent or Never; empty for the cluster's default")
	flags.StringSliceVar(&o.pullSecrets, "server-image-pull-secret", nil,
		"the name of a Secret, in the namespace of each project, to pull the image with; repeatable")
	flags.StringVar(&o.serverLog.format, "server-log-format", "json", "how those pods log: json or text")
	flags.StringVar(&o.serverLog.level, "server-log-level", "info", "what they log: debug, info, warn or error")
	o.platforms.AddFlags(flags)
	o.webhook.AddFlags(flags)
	o.bindPermissions(flags)
	flags.StringSliceVar(&o.namespaces, "watch-namespace", nil,
		"the namespaces to work in, where the servers' roles are Roles; repeatable. Without it: all, with ClusterRoles")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig file; empty for the first of: $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "let only the holder of a lease work, so that several may run")
	flags.StringVar(&o.leaderNamespace, "leader-elect-namespace", "", "the namespace of that lease; empty for the pod's own")
	o.lease = o.lease.Defaulted()
	flags.DurationVar(&o.lease.Duration, "lease-duration", o.lease.Duration,
		"how long the operator's lease is respected when its holder is silent")
	flags.DurationVar(&o.lease.RenewDeadline, "lease-renew-deadline", o.lease.RenewDeadline,
		"how long the holder tries to renew it before it gives up")
	flags.DurationVar(&o.lease.RetryPeriod, "lease-retry-period", o.lease.RetryPeriod, "how long to wait between tries")
	flags.IntVar(&o.maxUnreadyRollouts, "max-unready-rollouts", 10,
		"how many projects may get new pods at a time when it is not their own change, but the operator's upgrade or flags")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "the address of the metrics; 0 for none")
	flags.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve the metrics over HTTPS, to those whose token the API server lets GET /metrics; false: in plain text, to everyone")
	flags.StringVar(&o.metricsCertPath, "metrics-cert-path", "",
		"the folder of tls.crt and tls.key for the metrics, read again when they change; empty for a self-signed certificate")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "the address of the probes; 0 for none")
	o.log.bind(flags)
}

func (o *operatorOptions) bindPermissions(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.permissions.Annotations, "allow-annotation", []string{"cert-manager.io/*", "external-dns.alpha.kubernetes.io/*"},
		"a pattern of annotations that projects may give to Service and Ingress; repeatable, empty for none")
	flags.StringSliceVar(&o.permissions.PriorityClasses, "allow-priority-class", nil,
		"a pattern of PriorityClasses that projects may give to their pods; repeatable")
	flags.StringSliceVar(&o.permissions.Tolerations, "allow-toleration", []string{"*"},
		"a pattern of taints that projects may tolerate; repeatable, empty for none")
	flags.StringSliceVar(&o.permissions.ServiceTypes, "allow-service-type", []string{string(corev1.ServiceTypeClusterIP)},
		"a type that a project's Service may have: ClusterIP, NodePort or LoadBalancer; repeatable")
	flags.StringSliceVar(&o.accountGrants, "grant-account", nil,
		"a messenger account that only the projects of a namespace may name, as NAMESPACE=telegram:BOTUSERNAME or "+
			"NAMESPACE=whatsapp:PHONENUMBERID; pods of other projects that name it are stopped; repeatable")
	flags.StringSliceVar(&o.hostGrants, "grant-host", nil,
		`a host name that only the projects of a namespace may answer to, as NAMESPACE=HOST; a HOST that begins with "*." includes `+
			"the names below it, and * includes all; Ingresses and HTTPRoutes of other projects lose it; repeatable")
}

// parseGrants reads the grants among the permissions.
func (o *operatorOptions) parseGrants() error {
	o.permissions.AccountGrants, o.permissions.HostGrants = nil, nil
	for _, text := range o.accountGrants {
		grant, err := project.ParseAccountGrant(text)
		if err != nil {
			return fmt.Errorf("--grant-account: %w", err)
		}
		o.permissions.AccountGrants = append(o.permissions.AccountGrants, grant)
	}
	for _, text := range o.hostGrants {
		grant, err := project.ParseHostGrant(text)
		if err != nil {
			return fmt.Errorf("--grant-host: %w", err)
		}
		o.permissions.HostGrants = append(o.permissions.HostGrants, grant)
	}
	return nil
}

// complete checks what the flags say together.
func (o *operatorOptions) complete() error {
	switch corev1.PullPolicy(o.pullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return fmt.Errorf("--server-image-pull-policy is %q: want Always, IfNotPresent or Never", o.pullPolicy)
	}
	switch {
	case o.image == "":
		return errors.New("--server-image is required: the image of the pods that serve projects")
	case o.metricsCertPath != "" && !o.metricsSecure:
		return errors.New("--metrics-cert-path needs --metrics-secure: without it the metrics are served in plain text")
	case o.maxUnreadyRollouts < 1:
		return fmt.Errorf("--max-unready-rollouts is %d: want 1 or more", o.maxUnreadyRollouts)
	}
	if err := errors.Join(checkPortAddress("metrics-bind-address", o.metricsAddress),
		checkPortAddress("health-probe-bind-address", o.healthAddress)); err != nil {
		return err
	}
	if _, err := o.serverLog.handler(io.Discard); err != nil {
		return fmt.Errorf("--server-log-%w", err)
	}
	if err := o.platforms.Validate(); err != nil {
		return err
	}
	if err := o.parseGrants(); err != nil {
		return err
	}
	return o.permissions.Validate()
}

// checkPortAddress accepts an address, and 0 for a port that is not opened.
func checkPortAddress(flag, address string) error {
	if address == noPort {
		return nil
	}
	if err := server.CheckAddress(flag, address); err != nil {
		return fmt.Errorf("%w, or 0 for none", err)
	}
	return nil
}
