package dev

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// madeUpProject is served if no other is given. Its own address and that of the simulated phones are filled in.
const madeUpProject = `apiVersion: phoneproof.dev/v1alpha1
kind: VerificationProject
metadata: {name: dev}
spec:
  displayName: Ada's Bookshop
  baseURL: %[1]s
  page: {returnURLs: ["%[2]s"]}
  apiKeys:
  - name: backend
    secretRef: {name: dev, key: api-key}
  webhook:
    url: %[2]s/receiver
    secretRef: {name: dev, key: webhook}
  whatsapp:
    phoneNumber: "+4915112345670"
    phoneNumberID: "1234567890"
    acceptSharedContact: true
    accessTokenSecretRef: {name: dev, key: whatsapp}
    appSecretRef: {name: dev, key: whatsapp}
  telegram:
    botUsername: adas_bookshop_bot
    botTokenSecretRef: {name: dev, key: telegram}
  rateLimit:
    perPhoneNumber: {requests: 100, period: 1m}
`

// projectFiles are the project's files, those that were made up in a folder of their own.
type projectFiles struct {
	project, secrets string
	keyFile          string // of the API key to begin with; empty if the project has none that may do both
	madeUp           string
}

func (f projectFiles) removeMadeUp() {
	if f.madeUp != "" {
		_ = os.RemoveAll(f.madeUp) // it is in the folder for temporary files
	}
}

// readKey returns the API key; nothing if it cannot be read.
func (f projectFiles) readKey() string {
	content, err := os.ReadFile(f.keyFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func (f projectFiles) secretFile(name, key string) string { return filepath.Join(f.secrets, name, key) }

// findFiles returns the project's files, and makes up what was not given.
func (o *Options) findFiles() (projectFiles, error) {
	f := projectFiles{project: o.ProjectFile, secrets: o.SecretsDir}
	if f.project == "" && f.secrets != "" {
		return f, errors.New("--secrets-dir needs --project-file")
	}
	if f.secrets != "" {
		if err := server.CheckSecretsDir(f.secrets); err != nil {
			return f, err
		}
	}
	var err error
	if f.secrets == "" {
		if f.madeUp, err = os.MkdirTemp("", "phoneproof-dev-"); err != nil {
			return f, fmt.Errorf("make a folder for secrets: %w", err)
		}
		f.secrets = filepath.Join(f.madeUp, "secrets")
	}
	if f.project == "" {
		f.project = filepath.Join(f.madeUp, "project.yaml")
		if err = os.WriteFile(f.project, fmt.Appendf(nil, madeUpProject, o.api.url(), o.page.url()), 0o600); err != nil {
			err = fmt.Errorf("write the project file: %w", err)
		}
	}
	if err == nil {
		err = f.makeUpMissing()
	}
	if err != nil {
		f.removeMadeUp()
	}
	return f, err
}

// makeUpMissing reads the project, makes its secrets up if there are none, and finds an API key to begin with.
func (f *projectFiles) makeUpMissing() error {
	content, err := os.ReadFile(f.project)
	if err != nil {
		return fmt.Errorf("read the project file: %w", err)
	}
	project, err := verifyv1.DecodeProject(content)
	if err != nil {
		return nil //nolint:nilerr // the server reports what is wrong, without its values
	}
	for i := range project.Spec.APIKeys {
		k := &project.Spec.APIKeys[i]
		scopes := k.EffectiveScopes()
		if f.keyFile == "" && slices.Contains(scopes, verifyv1.ScopeInit) && slices.Contains(scopes, verifyv1.ScopeStatus) {
			f.keyFile = f.secretFile(k.SecretRef.Name, k.SecretRef.Key)
		}
	}
	if f.madeUp == "" {
		return nil
	}
	return f.makeUp(&project.Spec)
}

// makeUp writes a secret for every place of the project that refers to one.
func (f *projectFiles) makeUp(spec *verifyv1.VerificationProjectSpec) error {
	var errs []error
	for i := range spec.APIKeys {
		key, err := settings.NewAPIKey(rand.Reader)
		errs = append(errs, err, f.writeSecret(spec.APIKeys[i].SecretRef, key))
	}
	if w := spec.Webhook; w != nil {
		for _, ref := range []*verifyv1.SecretKeyRef{w.SecretRef, w.PreviousSecretRef, w.TestSecretRef} {
			if ref != nil {
				errs = append(errs, f.writeSecret(*ref, rand.Text()+rand.Text()))
			}
		}
	}
	if w := spec.WhatsApp; w != nil {
		credential := messenger.SimulatorPrefix + strings.TrimPrefix(w.PhoneNumber, "+")
		errs = append(errs, f.writeSecret(w.AccessTokenSecretRef, credential), f.writeSecret(w.AppSecretRef, credential))
	}
	if t := spec.Telegram; t != nil {
		errs = append(errs, f.writeSecret(t.BotTokenSecretRef, messenger.SimulatorPrefix+t.BotUsername))
	}
	return errors.Join(errs...)
}

// writeSecret writes a secret. The names are not validated yet, so they are kept from leading out of the folder.
func (f *projectFiles) writeSecret(ref verifyv1.SecretKeyRef, value string) error {
	root, err := os.OpenRoot(f.madeUp)
	if err != nil {
		return fmt.Errorf("open the folder for secrets: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing was written to it itself
	path := filepath.Join(filepath.Base(f.secrets), ref.Name, ref.Key)
	if err := root.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a folder for secret %s: %w", ref.Name, err)
	}
	if err := root.WriteFile(path, []byte(value), 0o600); err != nil {
		return fmt.Errorf("write secret %s: %w", ref.Name, err)
	}
	return nil
}

// printInstructions says where everything is and how to begin.
func (o *Options) printInstructions(out io.Writer, s *settings.Settings, f projectFiles) {
	key := f.readKey()
	if f.madeUp == "" {
		key = "$(cat '" + f.keyFile + "')"
	}
	method, user := "WHATSAPP", "+4915112345678"
	if s.WhatsApp == nil {
		method = "TELEGRAM"
	}
	fmt.Fprintf(out, `PhoneProof dev: project %s, everything in memory, every messenger simulated.

  Page      %s/          play the phones, see the webhooks
  API       %s
  API key   %s
  Receiver  %s/receiver  %s

Try it:

  curl -sS %s/api/verify/init -H "Authorization: Bearer %s" \
    -H 'Content-Type: application/json' -d '{"phoneNumber": "%s", "method": "%s"}'

  # then, with the link and the requestId of the answer: the user taps it and sends the text
  curl -sS %s/sim/users/%s/send -H 'Content-Type: application/json' -d '{"link": "LINK"}'

  curl -sS "%s/api/verify/status?id=REQUEST_ID&wait=20s" -H "Authorization: Bearer %s"

`, s.Project, o.page.url(), o.api.url(), key, o.page.url(), o.aboutReceiver(s),
		o.api.url(), key, user, method, o.page.url(), user, o.api.url(), key)
	for _, warning := range o.listWarnings(s, f) {
		fmt.Fprintln(out, "WARNING: "+warning)
	}
}

func (o *Options) aboutReceiver(s *settings.Settings) string {
	switch {
	case s.Webhook == nil:
		return "(the project has no spec.webhook)"
	case s.Webhook.URL != o.page.url()+"/receiver":
		return "(set spec.webhook.url to it to see the events here)"
	case !s.Webhook.Signed:
		return "takes the project's events, which are not signed"
	default:
		return "takes the project's events and checks their signatures"
	}
}

// listWarnings say what of the project does not work here.
func (o *Options) listWarnings(s *settings.Settings, f projectFiles) []string {
	var all []string
	const unsimulated = "'s credentials do not begin with sim_, so it does not work here: nothing goes to real platforms from dev"
	if s.WhatsApp != nil && !s.WhatsApp.Simulated {
		all = append(all, "spec.whatsapp"+unsimulated)
	}
	if s.Telegram != nil && !s.Telegram.Simulated {
		all = append(all, "spec.telegram"+unsimulated)
	}
	if f.keyFile == "" {
		all = append(all, "no API key of the project has both scopes, so the page cannot start verifications")
	}
	if s.Webhook != nil {
		if to, err := url.Parse(s.Webhook.URL); err == nil && to.Hostname() != "localhost" && !isLoopback(to.Hostname()) {
			all = append(all, "spec.webhook.url is not on this machine, so no events are sent: simulated ones must not leave it")
		}
	}
	if s.Webhook != nil && s.Webhook.TestURL != "" {
		if to, err := url.Parse(s.Webhook.TestURL); err == nil && to.Hostname() != "localhost" && !isLoopback(to.Hostname()) {
			all = append(all, "spec.webhook.testURL is not on this machine, so no events of test keys are sent")
		}
	}
	if s.Webhook != nil && s.Webhook.TestUnsigned {
		all = append(all, "spec.webhook.testURL is set without testSecretRef, so no events of test keys are sent")
	}
	if s.Database != nil {
		all = append(all, "spec.storage is ignored: dev keeps requests in memory")
	}
	for _, p := range s.Problems {
		all = append(all, p.String())
	}
	return all
}
