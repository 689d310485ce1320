package render

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/phoneproof/phoneproof/internal/webhook"
)

// Options are what the cluster's administrator decides for all projects, by flags of the operator.
type Options struct {
	// Image is the server's image. Required.
	Image string
	// PullPolicy of the image; the cluster's default if empty.
	PullPolicy corev1.PullPolicy
	// PullSecrets are the names of Secrets for the image's registry, in each project's namespace.
	PullSecrets []string
	// NamespacedRoles tells that the server's roles are Roles in each namespace, instead of ClusterRoles.
	NamespacedRoles bool
	// HTTPRoutes tells that the cluster has the Gateway API's HTTPRoute. Without it none is rendered.
	HTTPRoutes bool
	// WhatsAppURL, TelegramURL and SimulatorURL are where the platforms are; the public ones, and no simulator, if empty.
	WhatsAppURL, TelegramURL, SimulatorURL string
	// WebhookAllow and WebhookDeny say which addresses webhooks may reach. A project's pods are told those rules that
	// concern their namespace.
	WebhookAllow []webhook.AllowRule
	WebhookDeny  []netip.Prefix
	// LogFormat and LogLevel of the servers; serve's own defaults if empty.
	LogFormat, LogLevel string
}
