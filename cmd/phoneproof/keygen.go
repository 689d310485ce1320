package main

import (
	"crypto/rand"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/settings"
)

func newKeygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen",
		Short: "Make an API key",
		Long: `Make an API key of 256 random bits and print it, once: it is kept nowhere.

Any value of 32 or more printable characters is a valid key; one from here carries a checksum, so that a mistyped key is
told from an unknown one without looking it up.`,
		Example: `  # put a fresh key into a Secret that a VerificationProject refers to
  kubectl create secret generic shop-backend --from-literal=api-key="$(phoneproof keygen)"

  # put it into a folder for serve --secrets-dir
  mkdir -p secrets/shop-backend && phoneproof keygen > secrets/shop-backend/api-key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := settings.NewAPIKey(rand.Reader)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
			return err
		},
	}
}
