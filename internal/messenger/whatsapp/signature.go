package whatsapp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
)

const (
	// signatureHeader carries HMAC-SHA256(app secret, body). X-Hub-Signature, with SHA-1, is its predecessor and counts for
	// nothing here.
	signatureHeader = "X-Hub-Signature-256"
	signaturePrefix = "sha256="
)

// The purposes that keys and tokens are derived for, so that none can stand for another.
const (
	purposeVerifyToken = "phoneproof/whatsapp/verify-token\x00"
	purposeBinding     = "phoneproof/whatsapp/binding\x00"
	// The binding of a sender who is asked to confirm, and the token of the button that the sender is shown.
	purposeConfirmed    = "phoneproof/whatsapp/confirmed\x00"
	purposeConfirmation = "phoneproof/whatsapp/confirmation\x00"
	// The binding of a sender whose number is hidden, and the token of the buttons that the claimed number is shown.
	purposeEchoSender = "phoneproof/whatsapp/echo-sender\x00"
	purposeEcho       = "phoneproof/whatsapp/echo\x00"
	// The token of the button that a prover is shown.
	purposeNotMe = "phoneproof/whatsapp/not-me\x00"
)

// readSignature returns the MAC that the request claims; false unless there is exactly one header in exactly the form that
// Meta sends. What deviates is not from Meta.
func readSignature(h http.Header) ([sha256.Size]byte, bool) {
	var mac [sha256.Size]byte
	values := h[signatureHeader]
	if len(values) != 1 {
		return mac, false
	}
	digits, ok := strings.CutPrefix(values[0], signaturePrefix)
	if !ok || len(digits) != hex.EncodedLen(sha256.Size) || strings.ToLower(digits) != digits {
		return mac, false
	}
	_, err := hex.Decode(mac[:], []byte(digits))
	return mac, err == nil
}

// isSigned reports whether mac is that of body under one of the app secrets. Meta signs the payload as it sends it, with
// escaped unicode ("Create a webhook endpoint"): only the bytes as received will do.
func isSigned(body []byte, mac [sha256.Size]byte, appSecrets [][]byte) bool {
	found := false
	for _, secret := range appSecrets {
		if len(secret) == 0 { // HMAC would take it
			continue
		}
		// Every secret is tried, so that the time does not reveal which one it was.
		if hmac.Equal(hmacOf(secret, body), mac[:]) {
			found = true
		}
	}
	return found
}

// VerifyToken returns the token that Meta presents when it checks our callback URL. It is made of the app secret, so it
// needs no storage, and differs from project to project, so none can answer for another.
func VerifyToken(project string, appSecret []byte) string {
	return hex.EncodeToString(hmacOf(appSecret, []byte(purposeVerifyToken+project)))
}

// isVerifyToken reports whether token is the project's, by any app secret that is accepted at now.
func isVerifyToken(token, project string, appSecret settings.Secret, now time.Time) bool {
	return messenger.MatchesSecret(token, appSecret.Accepted(now), func(secret []byte) string { return VerifyToken(project, secret) })
}

// senderBindings returns the keyed hashes that a sender without a number may be known by, the one to store first. There are
// several while the app secret is being replaced.
func senderBindings(account *settings.WhatsApp, userID string, now time.Time) []string {
	return keyedHashes(account.AppSecret.Accepted(now), purposeBinding+account.PhoneNumberID+"\x00"+userID)
}

// keyedHashes returns the hash of data under each secret: 128 bits in hex.
func keyedHashes(secrets [][]byte, data string) []string {
	all := make([]string, len(secrets))
	for i, secret := range secrets {
		all[i] = hex.EncodeToString(hmacOf(secret, []byte(data))[:16])
	}
	return all
}

func hmacOf(key, data []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(data)
	return mac.Sum(nil)
}
