package render

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Options are the decisions of the cluster's administrator for all projects, by flags of the operator.
type Options struct {
	// Image is the server's image. Required.
	Image string
	// PullPolicy of the image; the cluster's default if empty.
	PullPolicy corev1.PullPolicy
	// PullSecrets are the names of Secrets for the image's registry, in each project's namespace.
	PullSecrets []string
	// NamespacedRoles is set if the server's roles are Roles in each namespace, instead of ClusterRoles.
	NamespacedRoles bool
	// HTTPRoutes is set if the cluster has the Gateway API's HTTPRoute. Otherwise none is rendered.
	HTTPRoutes bool
	// WhatsAppURL, TelegramURL, GatewayURL (Telegram's Gateway) and SimulatorURL are the addresses of the platforms; the public ones, and
	// no simulator, if empty.
	WhatsAppURL, TelegramURL, GatewayURL, SimulatorURL string
	// WebhookAllow and WebhookDeny are the addresses that webhooks may and may not reach. A project's pods get only the rules for
	// their namespace.
	WebhookAllow []webhook.AllowRule
	WebhookDeny  []netip.Prefix
	// LogFormat and LogLevel of the servers; serve's own defaults if empty.
	LogFormat, LogLevel string
}
