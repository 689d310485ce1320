package rotate

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// webhookKey is the key of a new Secret.
const webhookKey = "webhook-secret"

func newWebhookSecretCommand(env *plugin.Env) *cobra.Command {
	c := &common{env: env}
	cmd := &cobra.Command{
		Use:   "webhook-secret NAME",
		Short: "Replace the secret that signs events, with an overlap",
		Long: `Replace the secret that signs events. secretRef leads to the new value then, and previousSecretRef to the former one: each event
carries a signature by both, until --finish removes previousSecretRef. Move your receiver in between. x-webhook-signature has room for one
signature, and is made with the new secret at once.

No value is printed without --show. If the project comes from Git, make the change there, with --dry-run as a guide.`,
		Example: `  kubectl phoneproof rotate webhook-secret shop
  kubectl get secret SECRET -o jsonpath='{.data.webhook-secret}' | base64 -d   # what your receiver gets
  kubectl phoneproof rotate webhook-secret shop --finish`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.rotateWebhook(cmd.Context(), args[0]) },
	}
	c.addFlags(cmd)
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get,patch", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "create", Resource: "secrets", For: "a new Secret"},
		plugin.Right{Verbs: "patch", Resource: "secrets", For: "--secret"},
	)
}

func (c *common) rotateWebhook(ctx context.Context, name string) error {
	opened, err := plugin.Open(ctx, c.env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	webhook := opened.Project.Spec.Webhook
	switch {
	case webhook == nil:
		return fmt.Errorf("project %s has no webhook, so no secret signs events", name)
	case c.finish:
		return c.finishWebhook(ctx, opened)
	case webhook.PreviousSecretRef != nil:
		return fmt.Errorf("a rotation is under way: its former secret is key %s of Secret %s; move your receiver, and use --finish",
			webhook.PreviousSecretRef.Key, webhook.PreviousSecretRef.Name)
	}
	value, err := settings.NewWebhookSecret(rand.Reader)
	if err != nil {
		return fmt.Errorf("make webhook secret: %w", err)
	}
	to := c.chooseTarget(name+"-webhook", webhookKey)
	if slices.Contains(opened.Project.Spec.SecretRefs(), to) {
		return fmt.Errorf("key %s of Secret %s is in use: its value would be lost; choose another key", to.Key, to.Name)
	}
	if err := c.storeSecret(ctx, opened, to, value); err != nil {
		return err
	}
	if err := c.changeProject(ctx, opened, func(spec *verifyv1.VerificationProjectSpec) {
		spec.Webhook.PreviousSecretRef, spec.Webhook.SecretRef = spec.Webhook.SecretRef, &to
	}); err != nil {
		return c.nameUnused(to, err)
	}
	if err := c.reportValue(to, value); err != nil || c.dryRun {
		return err
	}
	if opened.Project.Spec.Webhook.PreviousSecretRef == nil {
		return c.env.Print("Events carry a signature, which they did not, as soon as the pods have the secret: "+
			"kubectl wait --for=condition=Ready vproj/%s -n %s", name, opened.Project.Namespace)
	}
	return c.env.Print("Events carry a signature by both secrets as soon as the pods have the new one: kubectl wait --for=condition=Ready vproj/%s -n %s\n"+
		"Move your receiver then, and run\n  kubectl phoneproof rotate webhook-secret %[1]s -n %[2]s --finish", name, opened.Project.Namespace)
}

// finishWebhook removes the former secret.
func (c *common) finishWebhook(ctx context.Context, p *plugin.Client) error {
	former := p.Project.Spec.Webhook.PreviousSecretRef
	if former == nil {
		return fmt.Errorf("%w: spec.webhook.previousSecretRef is not set", errNothingToFinish)
	}
	if err := c.changeProject(ctx, p, func(spec *verifyv1.VerificationProjectSpec) { spec.Webhook.PreviousSecretRef = nil }); err != nil {
		return err
	}
	if c.dryRun {
		return nil
	}
	return c.env.Print("Events are signed by the new secret alone. The former value stays in key %s of Secret %s.", former.Key, former.Name)
}
