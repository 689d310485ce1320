package verification

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
)

const (
	// sessionDigits is how many digits a user types. With MaxConfirmTries a guess succeeds once in 200,000 requests.
	sessionDigits = 6
	// deliveredDigits is how many digits are sent to the number. With MaxDeliveredTries a guess succeeds once in 33 million requests.
	deliveredDigits = 8
	// returnCodeBytes is the length of what a link carries: 128 bits.
	returnCodeBytes = 16
)

// The purposes that session codes are derived for, so that none can stand for another.
const (
	purposeDigits     = "phoneproof/session/digits\x00"
	purposeReturnCode = "phoneproof/session/return\x00"
	purposeDelivered  = "phoneproof/session/delivered\x00"
	purposeGateway    = "phoneproof/session/delivered/telegram\x00"
)

var returnCodeEncoding = base64.RawURLEncoding.Strict()

// TestDigits are the digits of every request of a test key, so that a client's tests need no phone.
const TestDigits = "000000"

// TestDelivered are the delivered digits of every request of a test key.
const TestDelivered = "00000000"

// TestSecrets are what the session codes of test keys are made with, in place of the secret of a messenger's account.
func TestSecrets() [][]byte { return [][]byte{[]byte("phoneproof test requests")} }

// SessionCodes are what a client redeems to confirm a proven request; either will do. They follow from the request and a secret, so any
// replica says the same, and nothing is stored.
type SessionCodes struct {
	// Digits are six decimal digits, which the user types.
	Digits redact.Value[string]
	// Return is 22 characters of base64url, 128 bits, which a link carries.
	Return redact.Value[string]
}

// SessionCodes returns the codes of a request under a secret that only the project's servers know.
func (space CodeSpace) SessionCodes(secret []byte, r *Request) SessionCodes {
	digits := fmt.Sprintf("%0*d", sessionDigits, binary.BigEndian.Uint64(space.deriveBytes(secret, r, purposeDigits))%1_000_000)
	if r.Test {
		digits = TestDigits
	}
	return SessionCodes{
		Digits: redact.New(digits),
		Return: redact.New(returnCodeEncoding.EncodeToString(space.deriveBytes(secret, r, purposeReturnCode)[:returnCodeBytes])),
	}
}

// DeliveredCode returns the eight digits that are sent to the number of a request with DeliverCode, under the secret of the project's
// account at its Method.
func (space CodeSpace) DeliveredCode(secret []byte, r *Request) redact.Value[string] {
	if r.Test {
		return redact.New(TestDelivered)
	}
	purpose := purposeDelivered
	if r.Method == Telegram {
		purpose = purposeGateway
	}
	codes := uint64(math.Pow10(space.deliveredDigits))
	number := binary.BigEndian.Uint64(space.deriveBytes(secret, r, purpose)) % codes
	return redact.New(fmt.Sprintf("%0*d", space.deliveredDigits, number))
}

// deriveBytes returns 32 bytes that only the secret's owner can make of a request, for one purpose.
func (space CodeSpace) deriveBytes(secret []byte, r *Request, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	// Neither a project's name nor an id has a NUL. The time distinguishes requests that have the same id one after the other.
	mac.Write([]byte(purpose + space.name + "\x00" + r.ID + "\x00" + strconv.FormatInt(r.CreatedAt.UnixMicro(), 10)))
	return mac.Sum(nil)
}

// codeKind is the kind of a code by its form.
type codeKind int

const (
	// kindDigits are the six of SessionCodes, and kindDelivered the eight of DeliveredCode.
	kindDigits codeKind = iota
	kindDelivered
	kindReturn
)

// SessionCode is a code that was entered to confirm a request.
type SessionCode struct {
	redact.Value[string]

	kind codeKind
}

// ParseSessionCode returns the code in a text: six or eight digits of any script, however they are spaced, or what a link carries. It is
// false for a text that cannot be a code.
func ParseSessionCode(text string) (SessionCode, bool) {
	// DecodeString ignores line feeds, which no code has.
	if decoded, err := returnCodeEncoding.DecodeString(text); err == nil && len(decoded) == returnCodeBytes &&
		len(text) == returnCodeEncoding.EncodedLen(returnCodeBytes) {
		return SessionCode{redact.New(text), kindReturn}, true
	}
	var digits strings.Builder
	for _, r := range text {
		digit, isDigit := phone.ASCIIDigit(r)
		switch {
		case isDigit && digits.Len() < deliveredDigits:
			digits.WriteByte(digit)
		case isDigit, !unicode.IsSpace(r) && r != '-':
			return SessionCode{}, false
		}
	}
	switch digits.Len() {
	case sessionDigits:
		return SessionCode{redact.New(digits.String()), kindDigits}, true
	case deliveredDigits:
		return SessionCode{redact.New(digits.String()), kindDelivered}, true
	default:
		return SessionCode{}, false
	}
}

// IsReturnCode reports whether a text is the return code of the request under one of the secrets, in a time that does not depend on it.
func (space CodeSpace) IsReturnCode(r *Request, text string, secrets [][]byte) bool {
	found := 0
	for _, secret := range secrets {
		found |= subtle.ConstantTimeCompare([]byte(text), []byte(space.SessionCodes(secret, r).Return.Reveal()))
	}
	return found == 1
}

// matchCode returns which code of the request was entered, under one of the secrets of its kind, in a time that does not depend on it.
// Nothing is compared if the request has no code of that kind (yet), or the secrets are gone: ErrNotProven, ErrNoDelivered, errNoSecret.
// The chat's digits never confirm what the delivered ones proved.
func (space CodeSpace) matchCode(r *Request, entered SessionCode, secrets CodeSecrets) (CodeMatch, error) {
	match, known := MatchesSession, secrets.Session
	if entered.kind == kindDelivered {
		match, known = MatchesDelivered, secrets.Delivered
	}
	switch {
	case entered.kind == kindDelivered && !r.DeliversCode():
		return NoMatch, ErrNoDelivered
	case entered.kind != kindDelivered && !r.IsProven(), entered.kind == kindDigits && r.Via == ViaCode:
		return NoMatch, ErrNotProven
	case len(known) == 0:
		return NoMatch, errNoSecret
	}
	found := 0
	for _, secret := range known {
		found |= subtle.ConstantTimeCompare([]byte(entered.Reveal()), []byte(space.makeCode(secret, r, entered.kind).Reveal()))
	}
	// The reader of a code that went astray has another number; the one of a test number to which none was sent has no reader.
	isAstray := r.Code.Reason == CodeReasonOtherNumber && (entered.kind == kindDelivered || r.Via == ViaCode)
	isUnsent := r.Test && entered.kind == kindDelivered && r.testCodeState() == CodeNotSent
	if found == 0 || isAstray || isUnsent {
		return NoMatch, nil
	}
	return match, nil
}

// makeCode returns the code of a kind under a secret.
func (space CodeSpace) makeCode(secret []byte, r *Request, kind codeKind) redact.Value[string] {
	switch kind {
	case kindDelivered:
		return space.DeliveredCode(secret, r)
	case kindReturn:
		return space.SessionCodes(secret, r).Return
	default:
		return space.SessionCodes(secret, r).Digits
	}
}
