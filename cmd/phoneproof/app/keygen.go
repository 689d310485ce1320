package app

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/settings"
)

func newKeygenCommand() *cobra.Command {
	var webhook bool
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make an API key, or a webhook secret",
		Long: `Make an API key of 256 random bits and print it, once: it is kept nowhere.

Any value of 32 or more printable characters is a valid key; one from here carries a checksum, so that a mistyped key is
recognized without a lookup.

With --webhook make a webhook secret instead: whsec_ and 256 random bits in base64, the form of Standard Webhooks. Any
value of 24 or more bytes is a valid one, but what begins with whsec_ must go on with the base64 of as many.`,
		Example: `  # put a fresh key into a Secret that a VerificationProject refers to
  kubectl create secret generic shop-backend --from-literal=api-key="$(phoneproof keygen)"

  # the same with a webhook secret
  kubectl create secret generic shop-webhook --from-literal=secret="$(phoneproof keygen --webhook)"

  # put it into a folder for serve --secrets-dir
  mkdir -p secrets/shop-backend && phoneproof keygen > secrets/shop-backend/api-key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			generate := settings.NewAPIKey
			if webhook {
				generate = settings.NewWebhookSecret
			}
			value, err := generate(rand.Reader)
			if err != nil {
				return fmt.Errorf("make a secret: %w", err)
			}
			if _, err = fmt.Fprintln(cmd.OutOrStdout(), value); err != nil {
				return fmt.Errorf("print the secret: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&webhook, "webhook", false, "make a webhook secret instead of an API key")
	return cmd
}
