package settings

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// webhookPrefix is the prefix of a Standard Webhooks secret. The base64 of its key follows.
const webhookPrefix = "whsec_"

// supabasePrefix begins a secret of Supabase before webhookPrefix.
const supabasePrefix = "v1,"

// The sizes in bytes of a webhook secret's key. Standard Webhooks requires 24 to 64; a longer key does no harm.
const (
	minWebhookKey = 24
	newWebhookKey = 32
)

// errNotBase64 replaces the errors of package base64, which may contain a part of the secret.
var errNotBase64 = errors.New("what follows " + webhookPrefix + " in the webhook secret is not base64")

// NewWebhookSecret returns a webhook secret of 256 random bits in the format of Standard Webhooks: whsec_ and base64.
func NewWebhookSecret(random io.Reader) (string, error) {
	var key [newWebhookKey]byte
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return "", fmt.Errorf("read random bits for a webhook secret: %w", err)
	}
	return webhookPrefix + base64.StdEncoding.EncodeToString(key[:]), nil
}

// WebhookKey returns the key that a webhook secret signs with: the decoded base64 after whsec_, or the bytes of any other value.
// It returns an error for base64 that receivers' libraries would not decode.
func WebhookKey(secret []byte) ([]byte, error) {
	encoded, standard := bytes.CutPrefix(secret, []byte(webhookPrefix))
	if !standard {
		return secret, nil
	}
	key, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err != nil || bytes.ContainsAny(encoded, "\r\n") { // Go skips line breaks, other libraries do not
		return nil, errNotBase64
	}
	return key, nil
}

// acceptWebhook returns a webhook secret unchanged. A value without whsec_ may have any bytes, but needs the minimum length.
func acceptWebhook(value []byte) ([]byte, Reason) {
	key, err := WebhookKey(value)
	switch {
	case err != nil:
		return nil, ReasonNotBase64
	case len(key) < minWebhookKey:
		return nil, ReasonWebhookSecretTooShort
	default:
		return value, ""
	}
}
