// Package rendertest provides projects for the tests of rendering and applying: a smallest one, and one for each option that
// changes a child.
package rendertest

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Case is a project with its options.
type Case struct {
	Name    string
	Project *verifyv1.VerificationProject
	Options render.Options
}

// UID is the UID of every project here.
const UID = types.UID("5d3a4f7e-0c1b-4b8e-9a55-6f1f3c2d7e90")

// Project returns the smallest project: one API key, one messenger, and defaults.
func Project() *verifyv1.VerificationProject {
	p := &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: UID},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys:  []verifyv1.APIKey{{Name: "backend", SecretRef: secretRef("shop-backend", "api-key")}},
			Telegram: &verifyv1.Telegram{BotUsername: "ShopBot", BotTokenSecretRef: secretRef("shop-telegram", "token")},
		},
	}
	p.Default()
	return p
}

// Options returns the smallest options.
func Options() render.Options { return render.Options{Image: "registry.example.com/phoneproof:1.0.0"} }

// Cases returns the smallest project first, then one per option that differs in that option.
func Cases() []Case {
	cases := []Case{{"minimal", Project(), Options()}}
	for _, option := range options {
		p, o := Project(), Options()
		option.change(p, &o)
		p.Default()
		cases = append(cases, Case{option.name, p, o})
	}
	return cases
}

var options = []struct {
	name   string
	change func(*verifyv1.VerificationProject, *render.Options)
}{
	{"name-long", func(p *verifyv1.VerificationProject, _ *render.Options) { p.Name = longName }},
	{"name-dotted", func(p *verifyv1.VerificationProject, _ *render.Options) { p.Name = "0shop.example.com" }},

	{"secrets", useSecrets},
	{"postgresql", usePostgreSQL},
	{"postgresql-ca", func(p *verifyv1.VerificationProject, o *render.Options) {
		usePostgreSQL(p, o)
		p.Spec.Storage.PostgreSQL.CASecretRef = &verifyv1.CASecretRef{Name: "shop-db-ca"}
	}},
	{"suspended", func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Suspend = new(true) }},

	{"replicas", func(p *verifyv1.VerificationProject, _ *render.Options) { p.Spec.Server.Replicas = new(int32(5)) }},
	{"autoscaling", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.Server.Autoscaling = &verifyv1.Autoscaling{MaxReplicas: 10}
	}},
	{"autoscaling-full", useAutoscaling},
	{"autoscaling-suspended", func(p *verifyv1.VerificationProject, o *render.Options) {
		useAutoscaling(p, o)
		p.Spec.Suspend = new(true)
	}},
	{"disruption-budget", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{}
	}},
	{"resources", useResources},
	{"placement", usePlacement},
	{"spread-own", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.Server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 2, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule},
		}
	}},
	{"spread-none", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.Server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{}
	}},

	{"service-load-balancer", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.Expose.Service = verifyv1.ServiceSettings{
			Type:        verifyv1.ServiceLoadBalancer,
			Annotations: map[string]verifyv1.AnnotationValue{"external-dns.alpha.kubernetes.io/hostname": "verify.example.com"},
		}
	}},
	{"ingress", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.BaseURL = "https://verify.example.com"
		p.Spec.Expose.Ingress = &verifyv1.IngressSettings{}
	}},
	{"ingress-full", useIngress},
	{"ingress-address", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.BaseURL = "http://192.0.2.7:8080"
		p.Spec.Expose.Ingress = &verifyv1.IngressSettings{}
	}},
	{"httproute", func(p *verifyv1.VerificationProject, o *render.Options) {
		o.HTTPRoutes = true
		p.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{ParentRefs: []verifyv1.GatewayRef{{Name: "public"}}}
	}},
	{"httproute-full", useHTTPRoute},
	{"page", func(p *verifyv1.VerificationProject, o *render.Options) {
		useHTTPRoute(p, o)
		useIngress(p, o)
		p.Spec.Page = &verifyv1.Page{LogoRef: &verifyv1.ConfigMapKeyRef{Name: "shop-page", Key: "logo.png"}}
	}},
	{"network-policy", func(p *verifyv1.VerificationProject, _ *render.Options) {
		p.Spec.NetworkPolicy = &verifyv1.NetworkPolicy{}
	}},
	{"network-policy-full", useNetworkPolicy},

	{"roles-namespaced", func(_ *verifyv1.VerificationProject, o *render.Options) { o.NamespacedRoles = true }},
	{"image", func(_ *verifyv1.VerificationProject, o *render.Options) {
		o.Image = "registry.example.com/phoneproof@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		o.PullPolicy = corev1.PullAlways
		o.PullSecrets = []string{"registry", "registry-mirror", "registry"}
	}},
	{"platforms", func(_ *verifyv1.VerificationProject, o *render.Options) {
		o.WhatsAppURL = "https://graph.example.com"
		o.TelegramURL = "https://bots.example.com"
		o.GatewayURL = "https://codes.example.com"
		o.SimulatorURL = "http://simulator.phoneproof-system:8080"
	}},
	{"webhook-rules", useWebhookRules},
	{"log", func(_ *verifyv1.VerificationProject, o *render.Options) { o.LogFormat, o.LogLevel = "text", "debug" }},
}

// longName is a name of the greatest length.
var longName = func() string {
	name := "a-project-whose-name-says-all-there-is-to-say-about-it."
	for len(name) < 253 {
		name += "x"
	}
	return name
}()

func secretRef(name, key string) verifyv1.SecretKeyRef {
	return verifyv1.SecretKeyRef{Name: name, Key: key}
}

func useSecrets(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.APIKeys = []verifyv1.APIKey{
		{Name: "mobile", SecretRef: secretRef("shop", "api-key-mobile")},
		{Name: "backend", SecretRef: secretRef("shop", "api-key")},
		{Name: "old-backend", SecretRef: secretRef("shop", "api-key")},
	}
	p.Spec.Webhook = &verifyv1.Webhook{
		URL:               "https://shop.example.com/hooks/phone",
		SecretRef:         new(secretRef("shop", "webhook")),
		PreviousSecretRef: new(secretRef("shop-old", "webhook")),
		TestURL:           "https://staging.example.com/hooks/phone",
		TestSecretRef:     new(secretRef("shop", "webhook-test")),
	}
	p.Spec.WhatsApp = &verifyv1.WhatsApp{
		PhoneNumber: "+15550100125", PhoneNumberID: "106540352242924",
		AccessTokenSecretRef: secretRef("shop.whatsapp", "access-token"), AppSecretRef: secretRef("shop.whatsapp", "app-secret"),
	}
}

func usePostgreSQL(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.Storage = verifyv1.Storage{
		Type:       verifyv1.StoragePostgreSQL,
		PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop-db-app"}},
	}
}

func useAutoscaling(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.Server.Autoscaling = &verifyv1.Autoscaling{
		MinReplicas: new(int32(3)), MaxReplicas: 12, TargetCPUUtilization: new(int32(55)),
	}
}

func useResources(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.Server.Resources = &verifyv1.Resources{
		Requests: &verifyv1.ResourceAmounts{CPU: new(resource.MustParse("0.25")), Memory: new(resource.MustParse("128Mi"))},
		Limits:   &verifyv1.ResourceAmounts{CPU: new(resource.MustParse("2000m")), Memory: new(resource.MustParse("0.5Gi"))},
	}
}

func usePlacement(p *verifyv1.VerificationProject, _ *render.Options) {
	server := &p.Spec.Server
	server.NodeSelector = map[string]verifyv1.LabelValue{"example.com/pool": "public", "kubernetes.io/arch": "arm64"}
	server.PriorityClassName = "system-cluster-critical"
	server.Tolerations = []corev1.Toleration{
		{Key: "example.com/pool", Operator: corev1.TolerationOpEqual, Value: "public", Effect: corev1.TaintEffectNoSchedule},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))},
	}
	server.Affinity = &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 10,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "example.com/disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd", "nvme"}},
				}},
			}},
		},
		PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "batch"}},
			}},
		},
	}
	server.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "phoneproof"}},
	}}
}

func useIngress(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.BaseURL = "https://api.example.com/phones/v1/"
	p.Spec.Expose.Ingress = &verifyv1.IngressSettings{
		ClassName: "nginx", Host: "verify.example.com", TLSSecretName: "verify-example-com-tls",
		Annotations: map[string]verifyv1.AnnotationValue{"cert-manager.io/cluster-issuer": "letsencrypt"},
	}
}

func useHTTPRoute(p *verifyv1.VerificationProject, o *render.Options) {
	o.HTTPRoutes = true
	p.Spec.BaseURL = "https://api.example.com/phones"
	p.Spec.Expose.HTTPRoute = &verifyv1.HTTPRouteSettings{
		ParentRefs: []verifyv1.GatewayRef{{Name: "public", SectionName: "https"}, {Name: "partners"}},
		Hostnames:  []verifyv1.Hostname{"verify.example.com", "*.verify.example.com"},
	}
}

func useNetworkPolicy(p *verifyv1.VerificationProject, _ *render.Options) {
	p.Spec.NetworkPolicy = &verifyv1.NetworkPolicy{
		IngressFrom: []networkingv1.NetworkPolicyPeer{
			{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "gateway"}}},
			{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"backend", "jobs"}},
			}}},
			{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24", Except: []string{"192.0.2.128/25"}}},
		},
		MetricsFrom: []networkingv1.NetworkPolicyPeer{
			{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "monitoring"}}},
		},
	}
}

func useWebhookRules(_ *verifyv1.VerificationProject, o *render.Options) {
	for _, rule := range []string{"10.1.0.0/16", "shop=10.96.0.0/12:8443", "bank=10.2.0.0/16", "shop=[fd00:1::/32]:443"} {
		parsed, err := webhook.ParseAllowRule(rule)
		if err != nil {
			panic(err)
		}
		o.WebhookAllow = append(o.WebhookAllow, parsed)
	}
	o.WebhookDeny = []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24"), netip.MustParsePrefix("fd00:2::/32")}
}
