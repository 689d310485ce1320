package dev

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
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
    scopes: [Init, Status, Deliver]
    secretRef: {name: dev, key: api-key}
  webhook:
    url: %[2]s/receiver
    secretRef: {name: dev, key: webhook}
  whatsapp:
    phoneNumber: "+4915112345670"
    phoneNumberID: "1234567890"
    hiddenNumbers: SharedContact
    accessTokenSecretRef: {name: dev, key: whatsapp}
    appSecretRef: {name: dev, key: whatsapp}
    codes: {templateName: sign_in, languages: [en], allowedCountries: [BR, DE, IL, MX], maxPerDay: 400}
  telegram:
    botUsername: adas_bookshop_bot
    botTokenSecretRef: {name: dev, key: telegram}
    codes: {gatewayTokenSecretRef: {name: dev, key: gateway}, allowedCountries: [BR, DE, IL, MX], maxPerDay: 100}
  rateLimit:
    perPhoneNumber: {requests: 100, period: 1m}
    perSubject: {requests: 100, period: 1m}
    perPrefix: {digits: 6, requests: 100, period: 1m}
`

// projectFiles are the project's file and the folders of its secrets.
type projectFiles struct {
	project string
	// given is the folder that the user gave, which is never written to, and madeUp the one of what it has not.
	given, madeUp string
	temporary     string // is removed at the end
	keys          []verifyv1.APIKey
	made          []madeUpSecret
}

// madeUpSecret is a secret that the user did not give.
type madeUpSecret struct {
	field string
	ref   verifyv1.SecretKeyRef
}

// isPageKey reports whether a key can do what the page and the printed lines do: start verifications of any number, and read them.
func isPageKey(k verifyv1.APIKey) bool {
	scopes := k.EffectiveScopes()
	return !k.IsTest() && slices.Contains(scopes, verifyv1.ScopeInit) && slices.Contains(scopes, verifyv1.ScopeStatus)
}

// findSecret returns the file of a secret, and whether the user gave it.
func (f *projectFiles) findSecret(ref verifyv1.SecretKeyRef) (path string, given bool) {
	if f.given != "" {
		path = filepath.Join(f.given, ref.Name, ref.Key)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return path, true
		}
	}
	return filepath.Join(f.madeUp, ref.Name, ref.Key), false
}

// readSecret returns the content of a file; nothing if it cannot be read.
func readSecret(path string) string {
	content, err := os.ReadFile(path) //nolint:gosec // of a secret that the project refers to
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// hasPageKey reports whether the first key is one of isPageKey.
func (f *projectFiles) hasPageKey() bool { return len(f.keys) > 0 && isPageKey(f.keys[0]) }

// readPageKey returns the API key that the page uses; nothing without one.
func (f *projectFiles) readPageKey() string {
	if !f.hasPageKey() {
		return ""
	}
	path, _ := f.findSecret(f.keys[0].SecretRef)
	return readSecret(path)
}

// findFiles returns the project's files, and makes up what was not given. The temporary folder is there with an error, too.
func (o *Options) findFiles() (f projectFiles, err error) {
	f = projectFiles{project: o.ProjectFile, given: o.SecretsDir, madeUp: makeCacheFolder(o.ProjectFile)}
	if f.project == "" && f.given != "" {
		return f, errors.New("--secrets-dir needs --project-file")
	}
	if f.given != "" {
		if err := server.CheckSecretsDir(f.given); err != nil {
			return f, err
		}
	}
	if f.madeUp == "" || f.project == "" {
		if f.temporary, err = os.MkdirTemp("", "phoneproof-dev-"); err != nil {
			return f, fmt.Errorf("make a temporary folder: %w", err)
		}
	}
	if f.madeUp == "" {
		f.madeUp = f.temporary
	}
	if f.project == "" {
		f.project = filepath.Join(f.temporary, "project.yaml")
		if err := os.WriteFile(f.project, fmt.Appendf(nil, madeUpProject, o.api.url(), o.page.url()), 0o600); err != nil {
			return f, fmt.Errorf("write the project file: %w", err)
		}
	}
	return f, f.makeUpMissing()
}

// makeCacheFolder makes a folder for the project's made-up secrets in the user's cache, so that they are the same at the next start. It
// returns its path; nothing if there can be none.
func makeCacheFolder(project string) string {
	cache, err := os.UserCacheDir()
	if err == nil && project != "" {
		project, err = filepath.Abs(project)
	}
	sum := sha256.Sum256([]byte(project))
	folder := filepath.Join(cache, "phoneproof", "dev", hex.EncodeToString(sum[:8]))
	if err != nil || os.MkdirAll(folder, 0o700) != nil {
		return ""
	}
	return folder
}

// makeUpMissing reads the project, makes up the secrets that were not given, and finds the API keys, first one to begin with.
func (f *projectFiles) makeUpMissing() error {
	content, err := os.ReadFile(f.project)
	if err != nil {
		return fmt.Errorf("read the project file: %w", err)
	}
	project, err := verifyv1.DecodeProject(content)
	if err == nil {
		project.Default()
	}
	if err != nil || len(project.Validate()) > 0 {
		return nil //nolint:nilerr // the server reports what is wrong, without its values
	}
	f.keys = slices.DeleteFunc(slices.Clone(project.Spec.APIKeys), func(k verifyv1.APIKey) bool { return k.SigningSecretRef != nil })
	if i := slices.IndexFunc(f.keys, isPageKey); i > 0 {
		f.keys = slices.Concat(f.keys[i:i+1], f.keys[:i], f.keys[i+1:])
	}
	return f.makeUp(&project.Spec)
}

// makeUp writes a secret for every place of the project that refers to one that was not given.
func (f *projectFiles) makeUp(spec *verifyv1.VerificationProjectSpec) error {
	var errs []error
	for i := range spec.APIKeys {
		key := &spec.APIKeys[i]
		if key.SigningSecretRef != nil {
			errs = append(errs, f.makeUpSecret("spec.apiKeys["+key.Name+"].signingSecretRef", key.SigningSecretRef, settings.NewWebhookSecret))
			continue
		}
		errs = append(errs, f.makeUpSecret("spec.apiKeys["+key.Name+"].secretRef", &key.SecretRef, settings.NewAPIKey))
	}
	if w := spec.Webhook; w != nil {
		errs = append(errs, f.makeUpSecret("spec.webhook.secretRef", w.SecretRef, settings.NewWebhookSecret),
			f.makeUpSecret("spec.webhook.previousSecretRef", w.PreviousSecretRef, settings.NewWebhookSecret),
			f.makeUpSecret("spec.webhook.testSecretRef", w.TestSecretRef, settings.NewWebhookSecret))
	}
	if w := spec.WhatsApp; w != nil {
		credential := newCredential(strings.TrimPrefix(w.PhoneNumber, "+"))
		if f.isReal(w.AccessTokenSecretRef) || f.isReal(w.AppSecretRef) {
			credential = nil // half of an account would be reported as one of both kinds, which says less
		}
		errs = append(errs, f.makeUpSecret("spec.whatsapp.accessTokenSecretRef", &w.AccessTokenSecretRef, credential),
			f.makeUpSecret("spec.whatsapp.appSecretRef", &w.AppSecretRef, credential))
	}
	if t := spec.Telegram; t != nil {
		errs = append(errs, f.makeUpSecret("spec.telegram.botTokenSecretRef", &t.BotTokenSecretRef, newCredential(t.BotUsername)))
		if t.Codes != nil {
			errs = append(errs, f.makeUpSecret("spec.telegram.codes.gatewayTokenSecretRef", &t.Codes.GatewayTokenSecretRef,
				newCredential("gateway")))
		}
	}
	return errors.Join(errs...)
}

// newCredential returns what makes up the credential of a simulated account.
func newCredential(account string) func(io.Reader) (string, error) {
	return func(io.Reader) (string, error) { return settings.SimulatorPrefix + account, nil }
}

// isReal reports whether the user gave a credential that is not the simulator's.
func (f *projectFiles) isReal(ref verifyv1.SecretKeyRef) bool {
	path, given := f.findSecret(ref)
	return given && !settings.Simulated(readSecret(path))
}

// makeUpSecret writes a secret that was not given, or removes it if newValue is nil. The one of an earlier start stays, if it still is what
// the project needs.
func (f *projectFiles) makeUpSecret(field string, ref *verifyv1.SecretKeyRef, newValue func(io.Reader) (string, error)) error {
	if ref == nil {
		return nil
	}
	path, given := f.findSecret(*ref)
	switch {
	case given:
		return nil
	case newValue == nil:
		return os.RemoveAll(path)
	}
	value, err := newValue(rand.Reader)
	if err != nil {
		return fmt.Errorf("make up secret %s: %w", ref.Name, err)
	}
	f.made = append(f.made, madeUpSecret{field, *ref})
	kind, _, _ := strings.Cut(value, "_")
	if before := readSecret(path); before == value || !settings.Simulated(value) && strings.HasPrefix(before, kind+"_") {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a folder for secret %s: %w", ref.Name, err)
	}
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		return fmt.Errorf("write secret %s: %w", ref.Name, err)
	}
	return nil
}
