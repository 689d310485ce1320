package app

import (
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/operator"
)

func newOperatorCommand() *cobra.Command {
	var (
		o   operator.Options
		log logging.Options
	)
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
    --allow-annotation='cert-manager.io/cluster-issuer' --allow-annotation='service.beta.kubernetes.io/*'

  # give a bot, and all names below a domain, to the projects of one namespace
  phoneproof operator --server-image=ghcr.io/phoneproof/phoneproof:1.0.0 \
    --grant-account=shop=telegram:ada_books_bot --grant-host='shop=*.shop.example.com'`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := log.NewLogger(cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("configure logging: %w", err)
			}
			return operator.Run(cmd.Context(), o, logger)
		},
	}
	o.AddFlags(cmd.Flags())
	log.AddFlags(cmd.Flags())
	completeLogValues(cmd, "log-")
	completeLogValues(cmd, "server-log-")
	completeValues(cmd, "server-image-pull-policy", string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever))
	completeValues(cmd, "allow-service-type", string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeNodePort),
		string(corev1.ServiceTypeLoadBalancer))
	return cmd
}
