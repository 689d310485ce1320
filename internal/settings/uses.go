package settings

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"regexp"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger"
)

// maxSecret bounds every secret but API keys. The largest that is known is a URI of a few hundred characters.
const maxSecret = 64 << 10

// use is one place of a project that refers to a secret.
type use struct {
	field string // its path, which identifies it
	ref   verifyv1.SecretKeyRef
	kind  kind
}

// kind is what a secret is used as.
type kind int

const (
	kindAPIKey kind = iota
	kindWebhook
	kindPreviousWebhook
	kindWhatsApp
	kindTelegram
	kindDatabase
	kindAuthority
)

// The fields that refer to secrets; API keys have fields of their own.
const (
	fieldWebhookSecret   = "spec.webhook.secretRef" //nolint:gosec // a path
	fieldWebhookPrevious = "spec.webhook.previousSecretRef"
	fieldAccessToken     = "spec.whatsapp.accessTokenSecretRef"
	fieldAppSecret       = "spec.whatsapp.appSecretRef"
	fieldBotToken        = "spec.telegram.botTokenSecretRef" //nolint:gosec // a path
	fieldDatabaseURI     = "spec.storage.postgresql.uriSecretRef"
	fieldDatabaseCA      = "spec.storage.postgresql.caSecretRef"
)

func fieldAPIKey(name string) string { return "spec.apiKeys[" + name + "].secretRef" }

// uses returns every place of a project that refers to a secret, in the order of the spec.
func uses(spec *verifyv1.VerificationProjectSpec) []use {
	var all []use
	for _, k := range spec.APIKeys {
		all = append(all, use{fieldAPIKey(k.Name), k.SecretRef, kindAPIKey})
	}
	if w := spec.Webhook; w != nil {
		if w.SecretRef != nil {
			all = append(all, use{fieldWebhookSecret, *w.SecretRef, kindWebhook})
		}
		if w.PreviousSecretRef != nil {
			all = append(all, use{fieldWebhookPrevious, *w.PreviousSecretRef, kindPreviousWebhook})
		}
	}
	if w := spec.WhatsApp; w != nil {
		all = append(all, use{fieldAccessToken, w.AccessTokenSecretRef, kindWhatsApp}, use{fieldAppSecret, w.AppSecretRef, kindWhatsApp})
	}
	if t := spec.Telegram; t != nil {
		all = append(all, use{fieldBotToken, t.BotTokenSecretRef, kindTelegram})
	}
	if p := spec.Storage.PostgreSQL; p != nil && spec.Storage.Type == verifyv1.StoragePostgreSQL {
		all = append(all, use{fieldDatabaseURI, p.URISecretRef.Ref(), kindDatabase})
		if p.CASecretRef != nil {
			all = append(all, use{fieldDatabaseCA, p.CASecretRef.Ref(), kindAuthority})
		}
	}
	return all
}

// messenger tells whether a secret of that kind is a credential of a messenger's account, so that it may be simulated.
func (k kind) messenger() bool { return k == kindWhatsApp || k == kindTelegram }

// accept returns what to keep of a value, or the reason why it cannot be used.
func (k kind) accept(value []byte) ([]byte, Reason) {
	if len(value) == 0 {
		return nil, ReasonEmpty
	}
	if bytes.HasPrefix(value, []byte(placeholder)) {
		return nil, ReasonPlaceholder
	}
	switch k {
	case kindAPIKey:
		return acceptAPIKey(value)
	case kindTelegram:
		if !messenger.Simulated(value) && !botToken.Match(value) {
			return nil, ReasonInvalid
		}
	case kindWebhook:
		return acceptWebhook(value)
	case kindPreviousWebhook:
		return value, "" // it may come from before the rule for secrets, which receivers are to leave in their own time
	case kindAuthority:
		return acceptAuthority(value)
	default:
	}
	// They go into headers, URLs and connection strings.
	if !graphic(value) {
		return nil, ReasonInvalid
	}
	return value, ""
}

// placeholder begins every value in the Secrets of config/samples. They are published, so as a secret each is worth nothing.
const placeholder = "REPLACE-"

// acceptAPIKey returns the SHA-256 of an API key, which is all that is kept of it.
func acceptAPIKey(value []byte) ([]byte, Reason) {
	switch {
	case len(value) > maxAPIKey:
		return nil, ReasonTooLong
	case !graphic(value):
		return nil, ReasonInvalid
	case len(value) < minAPIKey:
		return nil, ReasonTooShort
	case CheckFormat(value) != nil: // nobody could present it
		return nil, ReasonInvalid
	}
	hash := sha256.Sum256(value)
	return hash[:], ""
}

// acceptAuthority returns certificates in PEM form as they are. Beside one that can be read anything may stand, as in the
// bundles that people write by hand.
func acceptAuthority(value []byte) ([]byte, Reason) {
	if !x509.NewCertPool().AppendCertsFromPEM(value) {
		return nil, ReasonNoCertificate
	}
	return value, ""
}

// botToken is the form that Telegram documents. It keeps whatever else a Secret may hold out of request paths.
var botToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]+$`)

// graphic tells whether there are only visible ASCII characters: a header, and so a client, can carry no others.
func graphic(value []byte) bool {
	for _, c := range value {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
