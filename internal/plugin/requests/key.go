package requests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

// keyVariable holds an API key.
const keyVariable = "PHONEPROOF_API_KEY"

// keyFlags say where the API key is. A key itself is no flag: other users of the machine see the flags of processes.
type keyFlags struct {
	// Scope is what the command needs the key for.
	Scope verifyv1.Scope

	name, file string
}

// AddTo adds the flags to a command.
func (f *keyFlags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "api-key", "", "name of the API key of the project to use; its Secret is read")
	cmd.Flags().StringVar(&f.file, "api-key-file", "", "file with the API key to use, - for standard input; or set "+keyVariable)
	cmd.MarkFlagsMutuallyExclusive("api-key", "api-key-file")
}

// Named reports whether a flag names a key.
func (f *keyFlags) Named() bool { return f.name != "" || f.file != "" }

// read returns the key.
func (f *keyFlags) read(ctx context.Context, c *plugin.Client) (string, error) {
	switch {
	case f.name != "":
		return f.readSecret(ctx, c)
	case f.file != "":
		return readFile(f.file)
	case os.Getenv(keyVariable) != "":
		return os.Getenv(keyVariable), nil
	default:
		return "", fmt.Errorf("this needs an API key with the scope %s: set --api-key NAME (%s), --api-key-file FILE or %s",
			f.Scope, f.suggest(c.Project), keyVariable)
	}
}

// suggest names the keys of the project that have the scope.
func (f *keyFlags) suggest(p *verifyv1.VerificationProject) string {
	var names []string
	for i := range p.Spec.APIKeys {
		if hasScope(&p.Spec.APIKeys[i], f.Scope) {
			names = append(names, p.Spec.APIKeys[i].Name)
		}
	}
	if len(names) == 0 {
		return "the project has no key with this scope: add one to spec.apiKeys"
	}
	return "the project has " + strings.Join(names, ", ")
}

// readSecret reads the key from its Secret.
func (f *keyFlags) readSecret(ctx context.Context, c *plugin.Client) (string, error) {
	for i := range c.Project.Spec.APIKeys {
		key := &c.Project.Spec.APIKeys[i]
		if key.Name != f.name {
			continue
		}
		if f.Scope != "" && !hasScope(key, f.Scope) {
			return "", fmt.Errorf("the API key %s lacks the scope %s; %s", f.name, f.Scope, f.suggest(c.Project))
		}
		var secret corev1.Secret
		if err := c.Get(ctx, client.ObjectKey{Namespace: c.Project.Namespace, Name: key.SecretRef.Name}, &secret); err != nil {
			return "", fmt.Errorf("read Secret of API key %s: %w", f.name, err)
		}
		value, found := secret.Data[key.SecretRef.Key]
		if !found {
			return "", fmt.Errorf("read Secret of API key %s: Secret %s has no key %s", f.name, secret.Name, key.SecretRef.Key)
		}
		return strings.TrimSuffix(string(value), "\n"), nil
	}
	return "", fmt.Errorf("the project has no API key %s; %s", f.name, f.suggest(c.Project))
}

func hasScope(key *verifyv1.APIKey, scope verifyv1.Scope) bool {
	return slices.Contains(key.EffectiveScopes(), scope)
}

func readFile(name string) (string, error) {
	if name == "-" {
		name = "/dev/stdin"
	}
	content, err := os.ReadFile(name) //nolint:gosec // the user names the file
	if err != nil {
		return "", fmt.Errorf("read API key: %w", err)
	}
	key := strings.TrimRight(string(content), "\r\n")
	if key == "" {
		return "", errors.New("read API key: the file is empty")
	}
	return key, nil
}
