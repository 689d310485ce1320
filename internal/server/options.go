package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/leader"
)

// The values of Options.Store.
const (
	StoreMemory     = "memory"
	StoreKubernetes = "kubernetes"
	StorePostgreSQL = "postgresql"
)

// Options are the flags of a server.
type Options struct {
	// Project is the VerificationProject of a cluster, as NAMESPACE/NAME; empty with ProjectFile.
	Project    string
	Kubeconfig string
	// Lease has the times of the lease on the project's loops.
	Lease leader.Times
	// ClaimLease is how long requests stay claimed in a database; zero for the default.
	ClaimLease time.Duration
	// ProjectFile is the VerificationProject without a cluster; empty with Project.
	ProjectFile string
	SecretsDir  string
	// LogoFile is the picture above the page; empty for none.
	LogoFile string
	// MountedSecrets are the secrets that this pod mounts, as SECRET/KEY; none means all.
	MountedSecrets []string
	// Store is where requests are kept; empty for the project's choice.
	Store         string
	Address       string
	HealthAddress string
	// DrainDelay is how long the server keeps answering after the signal to stop.
	DrainDelay time.Duration
	Webhook    WebhookOptions
	Platforms  PlatformOptions
}

// AddFlags adds the flags of a server with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Project, "project", "", "the VerificationProject of the cluster to serve, as NAMESPACE/NAME")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "the kubeconfig file for --project; empty for the first of: $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config")
	flags.StringVar(&o.ProjectFile, "project-file", "", "the VerificationProject to serve without a cluster, as a YAML file")
	flags.StringVar(&o.SecretsDir, "secrets-dir", "", "the folder with the files of the project's secrets, as SECRET/KEY")
	flags.StringVar(&o.LogoFile, "logo-file", "",
		"the picture above the page: PNG, JPEG, WebP or GIF of at most 64 KiB; read again when it changes")
	flags.StringSliceVar(&o.MountedSecrets, "mounted-secrets", nil,
		"with --project: what of the project's secrets this pod mounts, as SECRET/KEY; repeatable. "+
			"Others wait for pods that mount them and are not reported as missing; empty means all")
	flags.StringVar(&o.Store, "store", "",
		"where requests are kept: kubernetes (VerificationRequest objects; the default with --project), "+
			"memory (lost when the process ends; the default with --project-file), "+
			"or postgresql (what spec.storage names; the default with a --project-file that has it)")
	flags.StringVar(&o.Address, "bind-address", ":8080", "the address of the API")
	flags.StringVar(&o.HealthAddress, "health-bind-address", ":8081", "the address of probes and metrics")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 5*time.Second,
		"how long to go on answering after the signal to stop, while load balancers notice")
	o.Lease = o.Lease.Defaulted()
	flags.DurationVar(&o.Lease.Duration, "lease-duration", o.Lease.Duration,
		"how long the lease on the project's loops is respected when its holder is silent")
	flags.DurationVar(&o.Lease.RenewDeadline, "lease-renew-deadline", o.Lease.RenewDeadline,
		"how long the holder tries to renew it before it gives up")
	flags.DurationVar(&o.Lease.RetryPeriod, "lease-retry-period", o.Lease.RetryPeriod, "how long to wait between tries")
	flags.DurationVar(&o.ClaimLease, "claim-lease", request.DefaultClaimLease,
		"how long a replica keeps the requests that it claimed from a database; more than the longest delivery attempt takes")
	o.Webhook.AddFlags(flags)
	o.Platforms.AddFlags(flags)
}

// Complete validates the flags together and sets those that depend on others.
func (o *Options) Complete() error {
	stores := []string{StoreKubernetes, StorePostgreSQL}
	if o.ProjectFile != "" {
		stores[0] = StoreMemory
	}
	switch {
	case o.Project != "" && o.ProjectFile != "":
		return errors.New("--project and --project-file exclude each other: give the project of a cluster or that of a file")
	case o.Project == "" && o.ProjectFile == "":
		return errors.New("one of --project NAMESPACE/NAME and --project-file FILE is required: the VerificationProject to serve")
	case o.Project != "" && !isNamespacedName(o.Project):
		return fmt.Errorf("--project is %q: want NAMESPACE/NAME", o.Project)
	case o.SecretsDir == "":
		return errors.New("--secrets-dir is required: the folder with the files of the project's secrets, as SECRET/KEY")
	case o.Store != "" && !slices.Contains(stores, o.Store):
		return fmt.Errorf("--store is %q: want %s here", o.Store, strings.Join(stores, " or "))
	case o.DrainDelay < 0 || o.DrainDelay > time.Minute:
		return fmt.Errorf("--drain-delay is %s: want 0s to 1m", o.DrainDelay)
	case o.Store == "" && o.Project != "":
		o.Store = StoreKubernetes // the store of a project file depends on the project
	}
	return errors.Join(CheckAddress("bind-address", o.Address), CheckAddress("health-bind-address", o.HealthAddress))
}

// isNamespacedName reports whether a text is NAMESPACE/NAME.
func isNamespacedName(text string) bool {
	namespace, name, ok := strings.Cut(text, "/")
	return ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// CheckAddress returns an error for an address without a port: net.Listen would choose a random one that nothing reports.
func CheckAddress(flag, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fmt.Errorf("--%s is %q: want HOST:PORT or :PORT", flag, address)
	}
	return nil
}

// CheckSecretsDir returns an error if the secrets folder does not exist: a mistyped one would look like a project without secrets.
func CheckSecretsDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("--secrets-dir: %w", err)
	case !info.IsDir():
		return fmt.Errorf("--secrets-dir: %s is not a folder", dir)
	}
	return nil
}
