package operator

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/controllers/project"
	"github.com/phoneproof/phoneproof/internal/logging"
	"github.com/phoneproof/phoneproof/test/repository"
)

// parseOptions returns the options of a command line.
func parseOptions(args ...string) (Options, error) {
	var o Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.Complete()
}

func TestOptions_refused(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		problem string
	}{
		"no image":              {nil, "--server-image is required"},
		"a policy that is none": {[]string{"--server-image-pull-policy=Sometimes"}, `--server-image-pull-policy is "Sometimes"`},
		"a certificate for plain text": {
			[]string{"--server-image=a", "--metrics-secure=false", "--metrics-cert-path=/certs"}, "--metrics-cert-path"},
		"no turns":              {[]string{"--server-image=a", "--max-unready-rollouts=0"}, "--max-unready-rollouts is 0"},
		"a format that is none": {[]string{"--server-image=a", "--server-log-format=xml"}, `--server-log-format is "xml"`},
		"a level that is none":  {[]string{"--server-image=a", "--server-log-level=loud"}, `--server-log-level is "loud"`},
		"a platform without TLS": {
			[]string{"--server-image=a", "--whatsapp-url=http://example.com"}, "--whatsapp-url or --simulator-url"},
		"a pattern that is none":         {[]string{"--server-image=a", "--allow-annotation=["}, "--allow-annotation"},
		"an account without a messenger": {[]string{"--server-image=a", "--grant-account=shop=ada_books_bot"}, "--grant-account"},
		"an account without a namespace": {[]string{"--server-image=a", "--grant-account=telegram:ada_books_bot"}, "--grant-account"},
		"a host with a port":             {[]string{"--server-image=a", "--grant-host=shop=a.example.com:443"}, "--grant-host"},
		"no address for the metrics":     {[]string{"--server-image=a", "--metrics-bind-address="}, `--metrics-bind-address is "": want HOST:PORT or :PORT, or 0 for none`},
		"no address for the probes":      {[]string{"--server-image=a", "--health-probe-bind-address="}, `--health-probe-bind-address is "":`},
		"an address without a port":      {[]string{"--server-image=a", "--metrics-bind-address=127.0.0.1:"}, "--metrics-bind-address"},
		"a Service that leads outside":   {[]string{"--server-image=a", "--allow-service-type=ExternalName"}, "--allow-service-type"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseOptions(test.args...)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.problem)))
		})
	}
}

func TestOptions_noPorts(t *testing.T) {
	_, err := parseOptions("--server-image=a", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func TestOptions_permissions(t *testing.T) {
	g := NewWithT(t)
	usual, err := parseOptions("--server-image=a")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(usual.Permissions).To(Equal(project.DefaultPermissions()))

	none, err := parseOptions("--server-image=a", "--allow-annotation=")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none.Permissions.Annotations).To(BeEmpty())

	others, err := parseOptions("--server-image=a", "--allow-service-type=ClusterIP", "--allow-service-type=NodePort")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(others.Permissions.ServiceTypes).To(Equal([]string{"ClusterIP", "NodePort"}))
}

func TestOptions_grants(t *testing.T) {
	g := NewWithT(t)
	o, err := parseOptions("--server-image=a", "--grant-account=shop=telegram:Ada_Books_BOT", "--grant-account=bank=whatsapp:0123",
		"--grant-host=shop=*.Example.com.", "--grant-host=bank=a.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(o.Permissions.AccountGrants).To(Equal([]project.Grant{
		{Namespace: "shop", Name: "telegram:ada_books_bot"}, {Namespace: "bank", Name: "whatsapp:0123"},
	}))
	g.Expect(o.Permissions.HostGrants).To(Equal([]project.Grant{
		{Namespace: "shop", Name: "*.example.com"}, {Namespace: "bank", Name: "a.example.com"},
	}))
}

func TestOptions_renderOptions(t *testing.T) {
	g := NewWithT(t)
	o, err := parseOptions("--server-image=a", "--server-image-pull-secret=one", "--server-image-pull-secret=two",
		"--webhook-allow=shop=10.0.0.0/8:8443", "--webhook-deny=10.1.0.0/16", "--watch-namespace=shop",
		"--server-log-format=text", "--server-log-level=debug")
	g.Expect(err).NotTo(HaveOccurred())
	rendering, err := o.renderOptions()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rendering.PullSecrets).To(Equal([]string{"one", "two"}))
	g.Expect([]string{rendering.LogFormat, rendering.LogLevel}).To(Equal([]string{"text", "debug"}))
	g.Expect(rendering.NamespacedRoles).To(BeTrue())
	g.Expect(rendering.WebhookAllow[0].String()).To(Equal("shop=10.0.0.0/8:8443"))
	g.Expect(rendering.WebhookDeny[0].String()).To(Equal("10.1.0.0/16"))

	o.Webhook.Allow = []string{"everything"}
	_, err = o.renderOptions()
	g.Expect(err).To(MatchError(ContainSubstring("--webhook-allow")))
}

// flagsOfValues are the flags that the chart passes values on by.
var flagsOfValues = map[string]string{
	"admin.webhook.allow": "--webhook-allow", "admin.webhook.deny": "--webhook-deny", "admin.allowAnnotations": "--allow-annotation",
	"admin.allowPriorityClasses": "--allow-priority-class", "admin.allowTolerations": "--allow-toleration",
	"admin.allowServiceTypes": "--allow-service-type", "admin.grantAccounts": "--grant-account", "admin.grantHosts": "--grant-host",
	"admin.whatsappURL": "--whatsapp-url", "admin.telegramURL": "--telegram-url",
	"admin.telegramGatewayURL": "--telegram-gateway-url", "admin.simulatorURL": "--simulator-url",
	"watchNamespaces": "--watch-namespace", "operator.maxUnreadyRollouts": "--max-unready-rollouts",
	"operator.log.format": "--log-format", "operator.log.level": "--log-level", "image.pullPolicy": "--server-image-pull-policy",
}

// TestOptions_likeTheChart checks the values of a suite of the chart, which its schema refuses or takes.
func TestOptions_likeTheChart(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof/tests/refused_test.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var suite struct {
		Tests []struct {
			It      string           `json:"it"`
			Set     map[string]any   `json:"set"`
			Asserts []map[string]any `json:"asserts"`
		} `json:"tests"`
	}
	g.Expect(yaml.Unmarshal(content, &suite)).To(Succeed())
	g.Expect(len(suite.Tests)).To(BeNumerically(">", 40))
	for _, test := range suite.Tests {
		t.Run(test.It, func(t *testing.T) {
			args := []string{"--server-image=a"}
			for path, value := range test.Set {
				values, isList := value.([]any)
				if !isList {
					values = []any{value}
				}
				for _, value := range values {
					g.Expect(flagsOfValues).To(HaveKey(path))
					args = append(args, fmt.Sprintf("%s=%v", flagsOfValues[path], value))
				}
			}
			_, refused := test.Asserts[0]["failedTemplate"]
			NewWithT(t).Expect(checkArgs(args) != nil).To(Equal(refused), "%v", args)
		})
	}
}

// checkArgs returns why an operator with these flags would end at its start.
func checkArgs(args []string) error {
	var o Options
	var log logging.Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	o.AddFlags(flags)
	log.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	_, err := log.NewHandler(io.Discard)
	_, rendering := o.renderOptions()
	return errors.Join(o.Complete(), err, rendering)
}
