package operator

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"

	"github.com/phoneproof/phoneproof/controllers/project"
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
