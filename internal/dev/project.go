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

// projectFiles are the project's file and the folders of its secrets.
type projectFiles struct {
	project string
	// given is the folder that the user gave, which is never written to, and madeUp the one of what it has not. Without a given one both
	// are the same.
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

// makeTemporary makes the folder that is removed at the end, once.
func (f *projectFiles) makeTemporary() (err error) {
	if f.temporary == "" {
		f.temporary, err = os.MkdirTemp("", "phoneproof-dev-")
	}
	return err //nolint:wrapcheck // the callers say what for
}

func (f *projectFiles) removeTemporary() {
	if f.temporary != "" {
		_ = os.RemoveAll(f.temporary) // it is in the folder for temporary files
	}
}

func (f *projectFiles) isMadeUp(ref verifyv1.SecretKeyRef) bool {
	return slices.ContainsFunc(f.made, func(m madeUpSecret) bool { return m.ref == ref })
}

// fileOf returns the file of a secret.
func (f *projectFiles) fileOf(ref verifyv1.SecretKeyRef) string {
	if f.isMadeUp(ref) {
		return filepath.Join(f.madeUp, ref.Name, ref.Key)
	}
	return filepath.Join(f.given, ref.Name, ref.Key)
}

// read returns a secret; nothing if it cannot be read.
func (f *projectFiles) read(ref verifyv1.SecretKeyRef) string {
	content, err := os.ReadFile(f.fileOf(ref))
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
	return f.read(f.keys[0].SecretRef)
}

// findFiles returns the project's files, and makes up what was not given.
func (o *Options) findFiles() (f projectFiles, err error) {
	f = projectFiles{project: o.ProjectFile, given: o.SecretsDir}
	if f.project == "" && f.given != "" {
		return f, errors.New("--secrets-dir needs --project-file")
	}
	if f.given != "" {
		if err := server.CheckSecretsDir(f.given); err != nil {
			return f, err
		}
	}
	err = f.chooseFolder(o.ProjectFile)
	if f.given == "" {
		f.given = f.madeUp
	}
	if err == nil && f.project == "" {
		err = f.makeTemporary()
		f.project = filepath.Join(f.temporary, "project.yaml")
		if err == nil {
			err = os.WriteFile(f.project, fmt.Appendf(nil, madeUpProject, o.api.url(), o.page.url()), 0o600)
		}
	}
	if err == nil {
		err = f.makeUpMissing()
	}
	if err != nil {
		f.removeTemporary()
	}
	return f, err
}

// chooseFolder chooses the folder of the project's made-up secrets: one in the user's cache, so that they are the same at the next
// start, or a temporary one if there can be none.
func (f *projectFiles) chooseFolder(project string) error {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "phoneproof", "dev")
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		err = f.makeTemporary()
		f.madeUp = f.temporary
		return err
	}
	name := "made-up"
	if project != "" {
		if absolute, err := filepath.Abs(project); err == nil {
			project = absolute
		}
		sum := sha256.Sum256([]byte(project))
		name = hex.EncodeToString(sum[:8])
	}
	f.madeUp = filepath.Join(cache, name)
	return nil
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
	f.keys = project.Spec.APIKeys
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
		errs = append(errs, f.makeUpSecret("spec.apiKeys["+key.Name+"].secretRef", &key.SecretRef, settings.NewAPIKey))
	}
	if w := spec.Webhook; w != nil {
		errs = append(errs, f.makeUpSecret("spec.webhook.secretRef", w.SecretRef, settings.NewWebhookSecret),
			f.makeUpSecret("spec.webhook.previousSecretRef", w.PreviousSecretRef, settings.NewWebhookSecret),
			f.makeUpSecret("spec.webhook.testSecretRef", w.TestSecretRef, settings.NewWebhookSecret))
	}
	w := spec.WhatsApp
	switch {
	case w == nil:
	case f.isReal(w.AccessTokenSecretRef) || f.isReal(w.AppSecretRef):
		// With a credential of an earlier start it would be reported as one of both kinds, which says less.
		for _, ref := range []verifyv1.SecretKeyRef{w.AccessTokenSecretRef, w.AppSecretRef} {
			errs = append(errs, os.RemoveAll(filepath.Join(f.madeUp, ref.Name, ref.Key)))
		}
	default:
		credential := simulated(strings.TrimPrefix(w.PhoneNumber, "+"))
		errs = append(errs, f.makeUpSecret("spec.whatsapp.accessTokenSecretRef", &w.AccessTokenSecretRef, credential),
			f.makeUpSecret("spec.whatsapp.appSecretRef", &w.AppSecretRef, credential))
	}
	if t := spec.Telegram; t != nil {
		errs = append(errs, f.makeUpSecret("spec.telegram.botTokenSecretRef", &t.BotTokenSecretRef, simulated(t.BotUsername)))
	}
	return errors.Join(errs...)
}

// simulated returns what makes up the credential of a simulated account.
func simulated(account string) func(io.Reader) (string, error) {
	return func(io.Reader) (string, error) { return messenger.SimulatorPrefix + account, nil }
}

// isGiven reports whether the user gave a secret.
func (f *projectFiles) isGiven(ref verifyv1.SecretKeyRef) bool {
	if f.given == f.madeUp {
		return false
	}
	_, err := os.Stat(filepath.Join(f.given, ref.Name, ref.Key))
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}

// isReal reports whether the user gave a credential that is not the simulator's.
func (f *projectFiles) isReal(ref verifyv1.SecretKeyRef) bool {
	return f.isGiven(ref) && !messenger.Simulated(f.read(ref))
}

// makeUpSecret writes a secret that was not given. The one of an earlier start stays, if it still is what the project needs.
func (f *projectFiles) makeUpSecret(field string, where *verifyv1.SecretKeyRef, newValue func(io.Reader) (string, error)) error {
	if where == nil || f.isGiven(*where) {
		return nil
	}
	ref := *where
	value, err := newValue(rand.Reader)
	if err != nil {
		return fmt.Errorf("make up secret %s: %w", ref.Name, err)
	}
	f.made = append(f.made, madeUpSecret{field, ref})
	kind, _, _ := strings.Cut(value, "_")
	if before := f.read(ref); before == value || !messenger.Simulated(value) && strings.HasPrefix(before, kind+"_") {
		return nil
	}
	path := f.fileOf(ref)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a folder for secret %s: %w", ref.Name, err)
	}
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		return fmt.Errorf("write secret %s: %w", ref.Name, err)
	}
	return nil
}
