package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// format is how an identity server has its codes delivered: with a body and a signature of its own.
type format struct {
	// findTime returns the Unix time that a signature covers, in seconds.
	findTime func(h http.Header) string
	// isSigned reports whether a key signed the body at that time.
	isSigned func(h http.Header, body, key []byte) bool
	decode   func(body []byte) (deliveryBody, error)
	// refusesByBody is set if the server reads a refusal from the body of a 200.
	refusesByBody bool
}

// formats are those of the parameter format.
var formats = map[string]*format{
	"zitadel":  {findTime: findZitadelTime, isSigned: isSignedByZitadel, decode: decodeZitadel},
	"supabase": {findTime: findSupabaseTime, isSigned: isSignedBySupabase, decode: decodeSupabase, refusesByBody: true},
}

// readSigned returns what an identity server signed, and the entry of spec.apiKeys whose secret it signed with. No other entry is tried.
// Strangers' bodies are read only with a time that counts, and the name of such an entry.
func (x *exchange) readSigned(values url.Values) (settings.Key, deliveryBody, error) {
	var method, locale textField
	name := ""
	for parameter, given := range values {
		field := textField{value: given[0], given: true, kind: '"'}
		switch parameter {
		case "format":
		case "key":
			name = field.value
		case fieldMethod:
			method = field
		case fieldLocale:
			locale = field
		default:
			return settings.Key{}, deliveryBody{}, errFormatParameter
		}
		if len(given) > 1 {
			return settings.Key{}, deliveryBody{}, errFormatParameter
		}
	}
	found := formats[values.Get("format")]
	if found == nil || x.api.readUnsigned == nil {
		return settings.Key{}, deliveryBody{}, errFormatParameter
	}
	now := x.api.clock.Now()
	at, err := strconv.ParseInt(found.findTime(x.r.Header), 10, 64)
	if err != nil || time.Unix(at, 0).Sub(now).Abs() > signatureAge {
		return settings.Key{}, deliveryBody{}, errSignature
	}
	key, err := x.settings.Keys.FindSigner(name, now)
	x.keyName = key.Name
	if err != nil {
		return settings.Key{}, deliveryBody{}, x.refuseKey(err, errSignature)
	}
	content, release, err := x.readUnauthenticated()
	defer release()
	if err != nil {
		return settings.Key{}, deliveryBody{}, err
	}
	defer clear(content) // it holds a code
	if !key.IdentifySigner(now, func(secret []byte) bool { return found.isSigned(x.r.Header, content, secret) }) {
		return settings.Key{}, deliveryBody{}, errSignature
	}
	x.testKey, x.refusesByBody = key.Test, found.refusesByBody
	x.r.Header.Del("Idempotency-Key") // no server signs it, so a replay could have another
	body, err := found.decode(content)
	body.Method, body.Locale, body.signed = method, locale, true
	return key, body, err
}

// readUnauthenticated reads a body of at most maxSignedBytes, in the room that the webhooks of messengers share.
func (x *exchange) readUnauthenticated() (content []byte, release func(), err error) {
	if err := x.checkBodyHeaders(maxSignedBytes, errSignedTooLarge); err != nil {
		return nil, func() {}, err
	}
	r := *x.r
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(&x.body, maxSignedBytes+1), &x.body}
	content, release, err = x.api.readUnsigned(x.w, &r)
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // else the one for the body ends the request's context
	switch {
	case errors.Is(err, verification.ErrNoRoom):
		x.route += strangersSuffix
	case err != nil:
		err = classifyBodyError(err)
	case len(content) > maxSignedBytes:
		err = errSignedTooLarge
	}
	return content, release, err
}

// singleHeader returns the value of a header that is given once.
func singleHeader(h http.Header, name string) string {
	if values := h.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// findZitadelTime reads the header ZITADEL-Signature: t=TIME,v1=HEX, with one v1 for each key that ZITADEL signs with.
func findZitadelTime(h http.Header) string {
	given, _, _ := strings.Cut(singleHeader(h, "ZITADEL-Signature"), ",")
	return strings.TrimPrefix(given, "t=")
}

func isSignedByZitadel(h http.Header, body, key []byte) bool {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(findZitadelTime(h) + "."))
	mac.Write(body)
	expected := []byte("v1=" + hex.EncodeToString(mac.Sum(nil)))
	signatures := strings.Split(singleHeader(h, "ZITADEL-Signature"), ",")
	return slices.ContainsFunc(signatures, func(signature string) bool { return hmac.Equal([]byte(signature), expected) })
}

func findSupabaseTime(h http.Header) string {
	return singleHeader(h, standardwebhooks.HeaderWebhookTimestamp)
}

// isSignedBySupabase reads the headers of Standard Webhooks. Supabase joins signatures by a comma and a blank, and the library ignores
// what follows a second comma.
func isSignedBySupabase(h http.Header, body, key []byte) bool {
	given := http.Header{}
	for _, name := range [...]string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		given.Set(name, singleHeader(h, name))
	}
	verifier, err := standardwebhooks.NewWebhookRaw(key)
	return err == nil && verifier.VerifyIgnoringTimestamp(body, given) == nil
}

// decodeZitadel reads the body of an SMS provider of type HTTP. The code of a login has the name oTP, that of a new number code.
func decodeZitadel(data []byte) (deliveryBody, error) {
	var given struct {
		ContextInfo struct {
			Recipient textField `json:"recipientPhoneNumber"`
		} `json:"contextInfo"`
		Args struct {
			Code   textField `json:"code"`
			OTP    textField `json:"oTP"`
			UserID textField `json:"userID"`
		} `json:"args"`
	}
	err := decodeObject(data, &given, isNoField)
	body := deliveryBody{PhoneNumber: given.ContextInfo.Recipient, Code: given.Args.Code, Subject: keepSubject(given.Args.UserID)}
	if body.Code.kind == 0 {
		body.Code = given.Args.OTP
	}
	return body, errors.Join(err, body.checkTypes())
}

// decodeSupabase reads the body of the Send SMS hook. While a user changes the number, user.phone is the former one.
func decodeSupabase(data []byte) (deliveryBody, error) {
	var given struct {
		User struct {
			ID    textField `json:"id"`
			Phone textField `json:"phone"`
		} `json:"user"`
		SMS struct {
			OTP   textField `json:"otp"`
			Phone textField `json:"phone"`
		} `json:"sms"`
	}
	err := decodeObject(data, &given, isNoField)
	body := deliveryBody{PhoneNumber: given.SMS.Phone, Code: given.SMS.OTP, Subject: keepSubject(given.User.ID)}
	if body.PhoneNumber.value == "" {
		body.PhoneNumber = given.User.Phone
	}
	return body, errors.Join(err, body.checkTypes())
}

// isNoField accepts repeated names: what is signed has one reader.
func isNoField(string) bool { return false }

// keepSubject returns a user's id if it can be a subject, else none: a user has no say in it, and gets the code all the same.
func keepSubject(id textField) textField {
	if !isSubject(id.value) {
		return textField{}
	}
	return id
}
