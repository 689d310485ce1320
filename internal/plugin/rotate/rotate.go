// Package rotate are the commands that replace API keys and webhook secrets, each with a time in which the former value counts, too.
package rotate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// NewCommand returns the command with its subcommands.
func NewCommand(env *plugin.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace an API key or the webhook secret, with an overlap",
	}
	cmd.AddCommand(newAPIKeyCommand(env), newWebhookSecretCommand(env))
	return cmd
}

// common holds the flags that both subcommands have.
type common struct {
	env    *plugin.Env
	secret string
	finish bool
	show   bool
	dryRun bool
}

func (c *common) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.secret, "secret", "", "SECRET or SECRET/KEY that the new value is added to; by default a new Secret")
	flags.BoolVar(&c.finish, "finish", false, "end the overlap: remove the former one from the project")
	flags.BoolVar(&c.show, "show", false, "print the new value; otherwise it is in the Secret alone")
	flags.BoolVar(&c.dryRun, "dry-run", false, "have the API server check the changes, and print them, without making any")
	cmd.MarkFlagsMutuallyExclusive("finish", "secret")
	cmd.MarkFlagsMutuallyExclusive("finish", "show")
}

// chooseTarget returns the key of the flag's Secret, or of a new one whose name begins with prefix.
func (c *common) chooseTarget(prefix, key string) verifyv1.SecretKeyRef {
	if c.secret == "" {
		// The end of a random text: names must not repeat, and the former Secret stays.
		return verifyv1.SecretKeyRef{Name: shorten(prefix) + "-" + strings.ToLower(rand.Text())[:6], Key: key}
	}
	name, chosen, found := strings.Cut(c.secret, "/")
	if found {
		key = chosen
	}
	return verifyv1.SecretKeyRef{Name: name, Key: key}
}

// shorten leaves room for what makes a name unique.
func shorten(prefix string) string {
	const longest = 200
	return strings.TrimRight(prefix[:min(len(prefix), longest)], "-.")
}

// patchOptions make the API server check a write without doing it.
func (c *common) patchOptions() []client.PatchOption {
	if c.dryRun {
		return []client.PatchOption{client.DryRunAll}
	}
	return nil
}

// storeSecret writes a value into the target. It reads no Secret.
func (c *common) storeSecret(ctx context.Context, p *plugin.Client, to verifyv1.SecretKeyRef, value string) error {
	meta := metav1.ObjectMeta{Namespace: p.Project.Namespace, Name: to.Name}
	if c.secret != "" {
		err := p.Patch(ctx, &corev1.Secret{ObjectMeta: meta}, newAddition(to.Key, value), c.patchOptions()...)
		if apierrors.IsInvalid(err) {
			return fmt.Errorf("write Secret %s: it may have the key %s already, for something else, or no key at all, or be immutable; "+
				"choose another one: %w", to.Name, to.Key, err)
		}
		if err != nil {
			return fmt.Errorf("write Secret %s: %w", to.Name, err)
		}
		return nil
	}
	meta.Labels = map[string]string{verifyv1.ProjectLabel: verifyv1.ProjectLabelValue(p.Project.Name)}
	var options []client.CreateOption
	if c.dryRun {
		options = append(options, client.DryRunAll)
	}
	secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{to.Key: value}}
	if err := p.Create(ctx, secret, options...); err != nil {
		return fmt.Errorf("create Secret %s: %w", to.Name, err)
	}
	return nil
}

// errChanged means that another program or person changed the spec meanwhile: what was decided by the former one may be wrong by now.
var errChanged = errors.New("its spec was changed meanwhile, and is left as it is: run the command again")

// changeProject changes the spec, unless it is not any more the one that was read. The operator writes the status of the same object,
// so a conflict alone means nothing. What changes a list also says so by operations: a list that is sent whole loses the fields that this
// version does not know.
func (c *common) changeProject(
	ctx context.Context, p *plugin.Client, change func(*verifyv1.VerificationProjectSpec), list ...operation,
) error {
	read := p.Project.DeepCopy()
	change(&p.Project.Spec)
	wanted := p.Project.Spec
	if c.dryRun {
		data, err := newProjectPatch(read, list).Data(p.Project)
		if err != nil {
			return fmt.Errorf("compute change: %w", err)
		}
		if err := printPatch(c.env.Streams.Out, data); err != nil {
			return err
		}
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := p.Patch(ctx, p.Project, newLockedPatch(read, list), c.patchOptions()...)
		if err == nil {
			return nil
		}
		failed := fmt.Errorf("write it: %w", err)
		if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			return failed
		}
		generation := read.Generation
		if err := p.Get(ctx, client.ObjectKeyFromObject(p.Project), read); err != nil {
			return fmt.Errorf("read it again: %w", err)
		}
		if read.Generation != generation {
			return errChanged
		}
		p.Project = read.DeepCopy()
		p.Project.Spec = wanted
		return failed
	})
	if err != nil {
		return fmt.Errorf("change project: %w", err)
	}
	return nil
}

// nameUnused adds to an error where the value is that nothing uses: it may be deleted.
func (c *common) nameUnused(to verifyv1.SecretKeyRef, err error) error {
	if c.dryRun {
		return err
	}
	return fmt.Errorf("%w; the new value stays unused in key %s of Secret %s", err, to.Key, to.Name)
}

// printPatch prints a change of the project as YAML. It holds references to Secrets, and no value.
func printPatch(out io.Writer, data []byte) error {
	text, err := yaml.JSONToYAML(data)
	if err != nil {
		return fmt.Errorf("print change: %w", err)
	}
	if _, err := fmt.Fprintf(out, "# the change of the project\n%s", text); err != nil {
		return fmt.Errorf("print change: %w", err)
	}
	return nil
}

// reportValue says where the new value is, and prints it if the user asked for that.
func (c *common) reportValue(to verifyv1.SecretKeyRef, value string) error {
	if c.dryRun {
		return c.env.Print("dry run: a new value would be written to key %s of Secret %s", to.Key, to.Name)
	}
	if err := c.env.Print("new value in key %s of Secret %s", to.Key, to.Name); err != nil {
		return err
	}
	if !c.show {
		return nil
	}
	return c.env.Print("%s", value)
}

// errNothingToFinish means that no rotation is under way.
var errNothingToFinish = errors.New("no rotation is under way")
