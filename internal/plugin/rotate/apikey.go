package rotate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// apiKeyKey is the key of a new Secret.
const apiKeyKey = "api-key"

// apiKey holds the flags of rotate api-key.
type apiKey struct {
	common

	newName string
	force   bool
}

func newAPIKeyCommand(env *plugin.Env) *cobra.Command {
	c := &apiKey{common: common{env: env}}
	cmd := &cobra.Command{
		Use:   "api-key NAME KEY",
		Short: "Replace an API key, with an overlap",
		Long: `Replace an API key. A new entry is added to spec.apiKeys, with the scopes of the former one, a value of its own and no
expiresAt; both are accepted until --finish removes the former entry. Move your clients in between.

A key that has leaked is replaced without an overlap: run the command with --finish --force right after the first one. Without --force,
--finish is refused while pods may run that do not have the new key: they would refuse every client.

No value is printed without --show. If the project comes from Git, make the change there, with --dry-run as a guide.`,
		Example: `  kubectl phoneproof rotate api-key shop backend
  kubectl get secret SECRET -o jsonpath='{.data.api-key}' | base64 -d   # what your clients get
  kubectl phoneproof rotate api-key shop backend --finish`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1]) },
	}
	c.addFlags(cmd)
	cmd.Flags().StringVar(&c.newName, "new-name", "", "name of the new entry; by default that of the former one with the next number")
	cmd.Flags().BoolVar(&c.force, "force", false, "with --finish: also while pods may run that do not have the new key")
	return plugin.DeclareRights(cmd,
		plugin.Right{Verbs: "get,patch", Resource: plugin.ResourceProjects},
		plugin.Right{Verbs: "create", Resource: "secrets", For: "a new Secret"},
		plugin.Right{Verbs: "patch", Resource: "secrets", For: "--secret"},
	)
}

func (c *apiKey) run(ctx context.Context, name, keyName string) error {
	opened, err := plugin.Open(ctx, c.env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	keys := opened.Project.Spec.APIKeys
	at := slices.IndexFunc(keys, func(k verifyv1.APIKey) bool { return k.Name == keyName })
	if at < 0 {
		return fmt.Errorf("project %s has no API key %s", name, keyName)
	}
	if keys[at].SigningSecretRef != nil {
		return fmt.Errorf("%s is no API key: its identity server signs with a secret that is changed there, and then in its Secret", keyName)
	}
	if c.finish {
		return c.removeKey(ctx, opened, at)
	}
	value, err := settings.NewAPIKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("make API key: %w", err)
	}
	return c.addKey(ctx, opened, at, value)
}

// addKey adds an entry like the former one at that place, with a new value.
func (c *apiKey) addKey(ctx context.Context, p *plugin.Client, at int, value string) error {
	former := p.Project.Spec.APIKeys[at]
	added := former.DeepCopy()
	if added.Name = c.newName; added.Name == "" {
		added.Name = nextName(p.Project.Spec.APIKeys, former.Name)
	}
	if slices.ContainsFunc(p.Project.Spec.APIKeys, func(k verifyv1.APIKey) bool { return k.Name == added.Name }) {
		return fmt.Errorf("project %s has an API key %s already: choose another --new-name", p.Project.Name, added.Name)
	}
	to := c.chooseTarget(p.Project.Name+"-"+added.Name, apiKeyKey)
	if slices.Contains(p.Project.Spec.SecretRefs(), to) {
		return fmt.Errorf("key %s of Secret %s is in use: choose another one", to.Key, to.Name)
	}
	added.SecretRef, added.ExpiresAt = to, nil
	if err := c.storeSecret(ctx, p, to, value); err != nil {
		return err
	}
	operations := copyKey(p.Project.Spec.APIKeys, at, added)
	if err := c.changeProject(ctx, p, func(spec *verifyv1.VerificationProjectSpec) {
		spec.APIKeys = append(spec.APIKeys, *added)
	}, operations...); err != nil {
		return c.nameUnused(to, err)
	}
	if err := c.reportValue(to, value); err != nil || c.dryRun {
		return err
	}
	return c.env.Print("API key %s counts beside %s as soon as the pods have its Secret: kubectl wait --for=condition=Ready vproj/%s -n %s\n"+
		"Move your clients then, and run\n  kubectl phoneproof rotate api-key %[3]s %[2]s -n %[4]s --finish",
		added.Name, former.Name, p.Project.Name, p.Project.Namespace)
}

// removeKey removes an entry that another one replaces.
func (c *apiKey) removeKey(ctx context.Context, p *plugin.Client, at int) error {
	former := p.Project.Spec.APIKeys[at]
	replaced := slices.ContainsFunc(p.Project.Spec.APIKeys, func(k verifyv1.APIKey) bool {
		return isLaterName(k.Name, former.Name) && replacesKey(&k, &former, time.Now())
	})
	if !replaced && c.newName == "" {
		return fmt.Errorf("%w: no entry has replaced API key %s; name it by --new-name if its name is another one",
			errNothingToFinish, former.Name)
	}
	if !replaced && !slices.ContainsFunc(p.Project.Spec.APIKeys, func(k verifyv1.APIKey) bool {
		return k.Name == c.newName && k.Name != former.Name
	}) {
		return errors.New("the project has no API key " + c.newName)
	}
	if wait := describeWait(p.Project); wait != "" && !c.force {
		return fmt.Errorf("API key %s stays: pods may run that do not have the new one, and would refuse every client (%s); finish once they "+
			"are replaced: kubectl wait --for=condition=Ready vproj/%s -n %s; if the key has leaked, use --force",
			former.Name, wait, p.Project.Name, p.Project.Namespace)
	}
	if err := c.changeProject(ctx, p, func(spec *verifyv1.VerificationProjectSpec) {
		spec.APIKeys = slices.Delete(spec.APIKeys, at, at+1)
	}, operation{Op: "remove", Path: "/spec/apiKeys/" + strconv.Itoa(at)}); err != nil {
		return err
	}
	if c.dryRun {
		return nil
	}
	return c.env.Print("API key %s is refused within a second. Its value stays in key %s of Secret %s.",
		former.Name, former.SecretRef.Key, former.SecretRef.Name)
}

// describeWait returns why pods may run without a Secret of the project, by its status; empty if none do.
func describeWait(p *verifyv1.VerificationProject) string {
	secrets := meta.FindStatusCondition(p.Status.Conditions, verifyv1.ConditionSecretsReady)
	switch {
	case p.Suspended():
		return ""
	case p.Status.ObservedGeneration != p.Generation, secrets == nil, secrets.ObservedGeneration != p.Generation:
		return "no pod has reported on this spec yet"
	}
	for _, c := range p.Status.Conditions {
		if c.Reason == verifyv1.ReasonRolloutQueued {
			continue // the project's own changes do not wait for it
		}
		rolling := c.Type == verifyv1.ConditionReconciling || c.Type == verifyv1.ConditionStalled
		if rolling && c.Status == metav1.ConditionTrue || c.Status != metav1.ConditionTrue &&
			(c.Type == verifyv1.ConditionSecretsReady || c.Reason == verifyv1.ReasonPodsRefused) {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// replacesKey reports whether a key may be used at now for all that another one is used for.
func replacesKey(key, other *verifyv1.APIKey, now time.Time) bool {
	if key.IsTest() != other.IsTest() || key.ExpiresAt != nil && !now.Before(key.ExpiresAt.Time) {
		return false
	}
	for _, scope := range other.EffectiveScopes() {
		if !slices.Contains(key.EffectiveScopes(), scope) {
			return false
		}
	}
	return true
}

// splitName returns the name of a key without the number of its rotation, and that number; 1 if it has none.
func splitName(name string) (base string, number int) {
	if i := strings.LastIndex(name, "-"); i > 0 {
		if number, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i], number
		}
	}
	return name, 1
}

// isLaterName reports whether a name is one that a rotation gives to the replacement of a key.
func isLaterName(name, former string) bool {
	base, number := splitName(name)
	formerBase, formerNumber := splitName(former)
	return base == formerBase && number > formerNumber
}

// nextName returns the first name that is free: backend, backend-2, backend-3.
func nextName(keys []verifyv1.APIKey, name string) string {
	const longest = 63
	base, _ := splitName(name)
	for number := 2; ; number++ {
		suffix := "-" + strconv.Itoa(number)
		next := base[:min(len(base), longest-len(suffix))] + suffix
		if !slices.ContainsFunc(keys, func(k verifyv1.APIKey) bool { return k.Name == next }) {
			return next
		}
	}
}
