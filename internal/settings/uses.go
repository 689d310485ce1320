package settings

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"regexp"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxSecret is the size limit in bytes of all secrets but API keys. The largest known is a URI of a few hundred characters.
const maxSecret = 64 << 10

// use is a reference to a secret in a project.
type use struct {
	field string // the path, which identifies the use
	ref   verifyv1.SecretKeyRef
	kind  kind
}

// kind is the purpose of a secret.
type kind int

const (
	kindAPIKey kind = iota
	kindSigning
	kindWebhook
	kindPreviousWebhook
	kindTestWebhook
	kindWhatsApp // an access token
	kindAppSecret
	kindTelegram
	kindGateway // an access token
	kindDatabase
	kindAuthority
)

// The fields that refer to secrets; for API keys, see fieldAPIKey.
const (
	fieldWebhookSecret   = "spec.webhook.secretRef" //nolint:gosec // a path
	fieldWebhookPrevious = "spec.webhook.previousSecretRef"
	fieldWebhookTest     = "spec.webhook.testSecretRef"
	fieldAccessToken     = "spec.whatsapp.accessTokenSecretRef"
	fieldAppSecret       = "spec.whatsapp.appSecretRef"
	fieldBotToken        = "spec.telegram.botTokenSecretRef"           //nolint:gosec // a path
	fieldGatewayToken    = "spec.telegram.codes.gatewayTokenSecretRef" //nolint:gosec // a path
	fieldDatabaseURI     = "spec.storage.postgresql.uriSecretRef"
	fieldDatabaseCA      = "spec.storage.postgresql.caSecretRef"
)

func fieldAPIKey(name string) string { return "spec.apiKeys[" + name + "].secretRef" }

func fieldSigning(name string) string { return "spec.apiKeys[" + name + "].signingSecretRef" }

// listUses returns all references to secrets in a project, in the order of the spec.
func listUses(spec *verifyv1.VerificationProjectSpec) []use {
	var all []use
	for _, k := range spec.APIKeys {
		if k.SigningSecretRef != nil {
			all = append(all, use{fieldSigning(k.Name), *k.SigningSecretRef, kindSigning})
			continue
		}
		all = append(all, use{fieldAPIKey(k.Name), k.SecretRef, kindAPIKey})
	}
	if w := spec.Webhook; w != nil {
		if w.SecretRef != nil {
			all = append(all, use{fieldWebhookSecret, *w.SecretRef, kindWebhook})
		}
		if w.PreviousSecretRef != nil {
			all = append(all, use{fieldWebhookPrevious, *w.PreviousSecretRef, kindPreviousWebhook})
		}
		if w.TestSecretRef != nil {
			all = append(all, use{fieldWebhookTest, *w.TestSecretRef, kindTestWebhook})
		}
	}
	if w := spec.WhatsApp; w != nil {
		all = append(all, use{fieldAccessToken, w.AccessTokenSecretRef, kindWhatsApp}, use{fieldAppSecret, w.AppSecretRef, kindAppSecret})
	}
	if t := spec.Telegram; t != nil {
		all = append(all, use{fieldBotToken, t.BotTokenSecretRef, kindTelegram})
		if t.Codes != nil {
			all = append(all, use{fieldGatewayToken, t.Codes.GatewayTokenSecretRef, kindGateway})
		}
	}
	if p := spec.Storage.PostgreSQL; p != nil && spec.Storage.Type == verifyv1.StoragePostgreSQL {
		all = append(all, use{fieldDatabaseURI, p.URISecretRef.Ref(), kindDatabase})
		if p.CASecretRef != nil {
			all = append(all, use{fieldDatabaseCA, p.CASecretRef.Ref(), kindAuthority})
		}
	}
	return all
}

// isMessenger reports whether a secret of that kind belongs to a messenger's account, so that it may be simulated.
func (k kind) isMessenger() bool {
	return k == kindWhatsApp || k == kindAppSecret || k == kindTelegram || k == kindGateway
}

// signsLive reports whether the events of live keys are signed with a secret of that kind.
func (k kind) signsLive() bool { return k == kindWebhook || k == kindPreviousWebhook }

// isShared reports whether clients, an identity server or a receiver know a secret of that kind.
func (k kind) isShared() bool {
	return k == kindAPIKey || k == kindSigning || k == kindTestWebhook || k.signsLive()
}

// isMistake reports whether a value of that kind is refused for what can only be a mistake, and no revocation.
func (k kind) isMistake(reason Reason) bool {
	switch k {
	case kindWebhook, kindTestWebhook:
		return reason == ReasonNotBase64 || reason == ReasonWebhookSecretTooShort || reason == ReasonPlaceholder || reason == ReasonSignsLive
	case kindSigning:
		return reason == ReasonNotBase64 || reason == ReasonWebhookSecretTooShort || reason == ReasonPlaceholder || reason == ReasonKnownToOthers
	case kindAppSecret:
		return reason == ReasonNotAppSecret || reason == ReasonKnownToOthers || reason == ReasonPlaceholder
	default:
		return false
	}
}

// acceptValue returns the part of a value to keep, or the reason why it cannot be used.
func (k kind) acceptValue(value []byte) ([]byte, Reason) {
	if len(value) == 0 {
		return nil, ReasonEmpty
	}
	if bytes.HasPrefix(value, []byte(placeholder)) {
		return nil, ReasonPlaceholder
	}
	switch k {
	case kindAPIKey:
		return acceptAPIKey(value)
	case kindAppSecret:
		return acceptAppSecret(value)
	case kindTelegram:
		if !Simulated(value) && !botToken.Match(value) {
			return nil, ReasonInvalid
		}
	case kindGateway:
		if botToken.Match(value) { // the likeliest mistake
			return nil, ReasonInvalid
		}
	case kindWebhook, kindTestWebhook:
		return acceptWebhook(value)
	case kindSigning:
		return acceptWebhook(bytes.TrimPrefix(value, []byte(supabasePrefix)))
	case kindPreviousWebhook:
		return value, "" // it may be older than the rules for webhook secrets, and must keep signing during the rotation
	case kindAuthority:
		return acceptAuthority(value)
	default:
	}
	// The other kinds are used in headers, URLs and connection strings.
	if !isGraphic(value) {
		return nil, ReasonInvalid
	}
	return value, ""
}

// placeholder is the prefix of every value in the Secrets of config/samples, which are public.
const placeholder = "REPLACE-"

// acceptAPIKey returns the SHA-256 of an API key; nothing else of it is kept.
func acceptAPIKey(value []byte) ([]byte, Reason) {
	switch {
	case len(value) > maxAPIKey:
		return nil, ReasonTooLong
	case !isGraphic(value):
		return nil, ReasonInvalid
	case len(value) < minAPIKey:
		return nil, ReasonTooShort
	case CheckFormat(value) != nil: // no client could present it
		return nil, ReasonInvalid
	}
	hash := sha256.Sum256(value)
	return hash[:], ""
}

// acceptAuthority returns PEM certificates unchanged. One readable certificate is enough: bundles often contain other text.
func acceptAuthority(value []byte) ([]byte, Reason) {
	if !x509.NewCertPool().AppendCertsFromPEM(value) {
		return nil, ReasonNoCertificate
	}
	return value, ""
}

// botToken is the documented format of Telegram. The check keeps other content of a Secret out of request paths.
var botToken = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]+$`)

// isGraphic reports whether a value has only visible ASCII characters: headers, and so clients, can send no others.
func isGraphic(value []byte) bool {
	for _, c := range value {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}
