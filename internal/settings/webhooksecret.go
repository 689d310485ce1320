package settings

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// webhookPrefix begins a secret in the form of Standard Webhooks: base64 of the key follows.
const webhookPrefix = "whsec_"

// The sizes of a webhook secret's key. Standard Webhooks asks for 24 to 64 bytes; a longer key does no harm.
const (
	minWebhookKey = 24
	newWebhookKey = 32
)

// errNotBase64 does not quote the value, as the errors of package base64 would in part.
var errNotBase64 = errors.New("what follows " + webhookPrefix + " in the webhook secret is not base64")

// NewWebhookSecret makes a webhook secret of 256 random bits: whsec_ and base64, as Standard Webhooks has them.
func NewWebhookSecret(random io.Reader) (string, error) {
	var key [newWebhookKey]byte
	if _, err := io.ReadFull(random, key[:]); err != nil {
		return "", fmt.Errorf("read random bits for a webhook secret: %w", err)
	}
	return webhookPrefix + base64.StdEncoding.EncodeToString(key[:]), nil
}

// WebhookKey returns the key of a webhook secret's Standard Webhooks signatures: the decoded base64 after whsec_, or the
// bytes of any other value. Base64 that receivers' libraries would not decode is an error.
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

// acceptWebhook returns a webhook secret as it is. A value without whsec_ may be any bytes, but not few.
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
