package page

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The purposes that keys are derived for, so that none can stand for another.
const (
	purposeSeal  = "phoneproof/page/seal\x00"
	purposeNonce = "phoneproof/page/nonce\x00"
)

const (
	nonceBytes = 12
	codeBytes  = 16
	idBytes    = 24
	tagBytes   = 16
)

// idPrefix begins the ids of requests, and is left out of tickets.
const idPrefix = "vr"

var ticketEncoding = base64.RawURLEncoding.Strict()

// URL returns the page of the request that a code belongs to; empty if the project has none.
func URL(s *settings.Settings, m verification.Method, code verification.Code, now time.Time) string {
	if s.Page == nil || s.BaseURL == "" {
		return ""
	}
	ticket := sealTicket(s, m, code, now)
	if ticket == "" {
		return ""
	}
	return s.BaseURL + Prefix + ticket
}

// ProvenURL returns the page of a proven request for the chat, where the code of the request is not known; empty if the project has no
// page. It leads to no messenger.
func ProvenURL(s *settings.Settings, r *verification.Request, now time.Time) string {
	if s.Page == nil || s.BaseURL == "" {
		return ""
	}
	ticket := seal(s, r.UsedMethod(), strings.TrimPrefix(r.ID, idPrefix), now)
	if ticket == "" {
		return ""
	}
	return s.BaseURL + Prefix + ticket
}

// sealTicket returns the ticket of a code. It is the same for the same code and secret, so that the retry of init answers what its first
// try did. It is empty if the account of the method has no secret.
func sealTicket(s *settings.Settings, m verification.Method, code verification.Code, now time.Time) string {
	return seal(s, m, strings.ReplaceAll(code.Grouped(), "-", ""), now)
}

// seal returns a text in a ticket, under the secret of a method's account that all replicas know.
func seal(s *settings.Settings, m verification.Method, plain string, now time.Time) string {
	secret := s.AccountSecret(m).Shared(now)
	if len(secret) == 0 {
		return ""
	}
	// A nonce that follows from the text repeats for the same text alone, which has the same ticket then.
	sealed := deriveKey(secret, purposeNonce, s.Project+"\x00"+plain)[:nonceBytes:nonceBytes]
	sealed = newSealer(secret).Seal(sealed, sealed, []byte(plain), []byte(s.Project))
	return ticketEncoding.EncodeToString(sealed)
}

// ticketTarget is what a ticket leads to: a request and, but for tickets of ProvenURL, its code.
type ticketTarget struct {
	id      string
	code    verification.Code
	hasCode bool
}

// openTicket returns what a ticket leads to that this project made, under a secret that is accepted at now; false for any other text.
func openTicket(s *settings.Settings, ticket string, now time.Time) (ticketTarget, bool) {
	sealed, err := ticketEncoding.DecodeString(ticket)
	if size := len(sealed) - nonceBytes - tagBytes; err != nil || size != codeBytes && size != idBytes {
		return ticketTarget{}, false
	}
	for _, method := range [...]verification.Method{verification.WhatsApp, verification.Telegram} {
		for _, secret := range s.AccountSecret(method).Accepted(now) {
			plain, err := newSealer(secret).Open(nil, sealed[:nonceBytes], sealed[nonceBytes:], []byte(s.Project))
			if err != nil {
				continue
			}
			if len(plain) == idBytes {
				id := idPrefix + string(plain)
				return ticketTarget{id: id}, verification.IsRequestID(id)
			}
			space := verification.NewCodeSpace(s.Project)
			code, found := space.Extract(string(plain))
			if !found {
				return ticketTarget{}, false
			}
			return ticketTarget{id: space.RequestID(code), code: code, hasCode: true}, true
		}
	}
	return ticketTarget{}, false
}

// newSealer returns AES-256-GCM under a key of its own.
func newSealer(secret []byte) cipher.AEAD {
	block, err := aes.NewCipher(deriveKey(secret, purposeSeal, ""))
	if err == nil {
		var sealer cipher.AEAD
		if sealer, err = cipher.NewGCM(block); err == nil {
			return sealer
		}
	}
	panic(fmt.Sprintf("AES-GCM with a key of 32 bytes: %v", err)) // cannot happen
}

func deriveKey(secret []byte, purpose, data string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose + data))
	return mac.Sum(nil)
}
