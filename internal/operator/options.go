package operator

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/internal/leader"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/internal/server"
)

// Options are what only the cluster's administrator may decide: the operator's flags.
type Options struct {
	// Image and PullPolicy are those of the pods that serve projects, PullSecrets the Secrets to pull the image with.
	Image       string
	PullPolicy  string
	PullSecrets []string
	// ServerLog is what those pods log.
	ServerLog logging.Options
	Webhook   server.WebhookOptions
	Platforms server.PlatformOptions
	// Permissions are what projects may ask for.
	Permissions project.Permissions
	// Namespaces are those to work in; none means all.
	Namespaces      []string
	Kubeconfig      string
	LeaderElect     bool
	LeaderNamespace string
	Lease           leader.Times
	// MaxUnreadyRollouts is how many projects may get new pods at a time because of the operator's own change.
	MaxUnreadyRollouts int
	// MetricsAddress and HealthAddress may be 0 for no port.
	MetricsAddress  string
	MetricsSecure   bool
	MetricsCertPath string
	HealthAddress   string

	accountGrants, hostGrants []string      // as Complete parses them
	probePeriod               time.Duration // for tests, also in place of minUptime; the usual ones if zero
}

// AddFlags adds the flags of the operator, with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Image, "server-image", "", "the image of the pods that serve projects, usually this operator's own; required")
	flags.StringVar(&o.PullPolicy, "server-image-pull-policy", "", "Always, IfNotPresent or Never; empty for the cluster's default")
	flags.StringSliceVar(&o.PullSecrets, "server-image-pull-secret", nil,
		"the name of a Secret, in the namespace of each project, to pull the image with; repeatable")
	flags.StringVar(&o.ServerLog.Format, "server-log-format", "json", "how those pods log: json or text")
	flags.StringVar(&o.ServerLog.Level, "server-log-level", "info", "what they log: debug, info, warn or error")
	o.Platforms.AddFlags(flags)
	o.Webhook.AddFlags(flags)
	o.addPermissionFlags(flags)
	flags.StringSliceVar(&o.Namespaces, "watch-namespace", nil,
		"the namespaces to work in, where the servers' roles are Roles; repeatable. Without it: all, with ClusterRoles")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig file; empty for the first of: $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "let only the holder of a lease work, so that several may run")
	flags.StringVar(&o.LeaderNamespace, "leader-elect-namespace", "", "the namespace of that lease; empty for the pod's own")
	o.Lease = o.Lease.Defaulted()
	flags.DurationVar(&o.Lease.Duration, "lease-duration", o.Lease.Duration,
		"how long the operator's lease is respected when its holder is silent")
	flags.DurationVar(&o.Lease.RenewDeadline, "lease-renew-deadline", o.Lease.RenewDeadline,
		"how long the holder tries to renew it before it gives up")
	flags.DurationVar(&o.Lease.RetryPeriod, "lease-retry-period", o.Lease.RetryPeriod, "how long to wait between tries")
	flags.IntVar(&o.MaxUnreadyRollouts, "max-unready-rollouts", 10,
		"how many projects may get new pods at a time when it is not their own change, but the operator's upgrade or flags")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "the address of the metrics; 0 for none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true,
		"serve the metrics over HTTPS, to those whose token the API server lets GET /metrics; false: in plain text, to everyone")
	flags.StringVar(&o.MetricsCertPath, "metrics-cert-path", "",
		"the folder of tls.crt and tls.key for the metrics, read again when they change; empty for a self-signed certificate")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "the address of the probes; 0 for none")
}

func (o *Options) addPermissionFlags(flags *pflag.FlagSet) {
	usual := project.DefaultPermissions()
	flags.StringSliceVar(&o.Permissions.Annotations, "allow-annotation", usual.Annotations,
		"a pattern of annotations that projects may give to Service and Ingress; repeatable, empty for none")
	flags.StringSliceVar(&o.Permissions.PriorityClasses, "allow-priority-class", usual.PriorityClasses,
		"a pattern of PriorityClasses that projects may give to their pods; repeatable")
	flags.StringSliceVar(&o.Permissions.Tolerations, "allow-toleration", usual.Tolerations,
		"a pattern of taints that projects may tolerate; repeatable")
	flags.StringSliceVar(&o.Permissions.ServiceTypes, "allow-service-type", usual.ServiceTypes,
		"a type that a project's Service may have: ClusterIP, NodePort or LoadBalancer; repeatable")
	flags.StringSliceVar(&o.accountGrants, "grant-account", nil,
		"a messenger account that only the projects of a namespace may name, as NAMESPACE=telegram:BOTUSERNAME or "+
			"NAMESPACE=whatsapp:PHONENUMBERID; pods of other projects that name it are stopped; repeatable")
	flags.StringSliceVar(&o.hostGrants, "grant-host", nil,
		`a host name that only the projects of a namespace may answer to, as NAMESPACE=HOST; a HOST that begins with "*." includes `+
			"the names below it, and * includes all; Ingresses and HTTPRoutes of other projects lose it; repeatable")
}

// parseGrants reads the grants among the permissions.
func (o *Options) parseGrants() error {
	o.Permissions.AccountGrants, o.Permissions.HostGrants = nil, nil
	for _, text := range o.accountGrants {
		grant, err := project.ParseAccountGrant(text)
		if err != nil {
			return fmt.Errorf("--grant-account: %w", err)
		}
		o.Permissions.AccountGrants = append(o.Permissions.AccountGrants, grant)
	}
	for _, text := range o.hostGrants {
		grant, err := project.ParseHostGrant(text)
		if err != nil {
			return fmt.Errorf("--grant-host: %w", err)
		}
		o.Permissions.HostGrants = append(o.Permissions.HostGrants, grant)
	}
	return nil
}

// Complete checks what the flags say together, and reads those that have a form.
func (o *Options) Complete() error {
	switch corev1.PullPolicy(o.PullPolicy) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return fmt.Errorf("--server-image-pull-policy is %q: want Always, IfNotPresent or Never", o.PullPolicy)
	}
	switch {
	case o.Image == "":
		return errors.New("--server-image is required: the image of the pods that serve projects")
	case o.MetricsCertPath != "" && !o.MetricsSecure:
		return errors.New("--metrics-cert-path needs --metrics-secure: without it the metrics are served in plain text")
	case o.MaxUnreadyRollouts < 1:
		return fmt.Errorf("--max-unready-rollouts is %d: want 1 or more", o.MaxUnreadyRollouts)
	}
	for _, name := range o.Namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return fmt.Errorf("--watch-namespace is %q: want the name of a namespace", name)
		}
	}
	if err := errors.Join(checkPortAddress("metrics-bind-address", o.MetricsAddress),
		checkPortAddress("health-probe-bind-address", o.HealthAddress), o.Platforms.Validate(), o.parseGrants()); err != nil {
		return err
	}
	if _, err := o.ServerLog.NewHandler(io.Discard); err != nil {
		return fmt.Errorf("--server-log-%w", err)
	}
	return o.Permissions.Validate()
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
