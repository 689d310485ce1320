package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// format is how an identity server has its codes delivered: with a body and a signature of its own.
type format struct {
	// signedAt returns the Unix time that the signature under a key covers, in seconds; false if the key signed nothing of it.
	signedAt func(h http.Header, body, key []byte) (int64, bool)
	decode   func(body []byte) (deliveryBody, error)
	// refusesByBody is set if the server reads a refusal from the body of a 200.
	refusesByBody bool
}

// formats are those of the parameter format.
var formats = map[string]*format{
	"zitadel":  {signedAt: signedByZitadel, decode: decodeZitadel},
	"supabase": {signedAt: signedBySupabase, decode: decodeSupabase, refusesByBody: true},
}

// readSigned returns what an identity server signed, and the entry of spec.apiKeys whose secret it signed with. No other entry is tried.
func (x *exchange) readSigned(values url.Values, from **format) (settings.Key, deliveryBody, error) {
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
	content, release, err := x.readUnauthenticated()
	defer release()
	if err != nil {
		return settings.Key{}, deliveryBody{}, err
	}
	defer clear(content) // it holds a code
	now := x.api.clock.Now()
	key, err := x.settings.Keys.FindSigner(name, now, func(secret []byte) bool {
		at, isSigned := found.signedAt(x.r.Header, content, secret)
		return isSigned && time.Unix(at, 0).Sub(now).Abs() <= signatureAge
	})
	if err != nil {
		return settings.Key{}, deliveryBody{}, errSignature
	}
	x.keyName, x.testKey = key.Name, key.Test
	*from = found
	body, err := found.decode(content)
	body.Method, body.Locale = method, locale
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
	case errors.Is(err, verification.Unavailable(nil)):
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

// signedByZitadel reads the header ZITADEL-Signature: t=TIME,v1=HEX, with one v1 for each key that ZITADEL signs with.
func signedByZitadel(h http.Header, body, key []byte) (int64, bool) {
	given, signatures, _ := strings.Cut(singleHeader(h, "ZITADEL-Signature"), ",")
	given, hasTime := strings.CutPrefix(given, "t=")
	at, err := strconv.ParseInt(given, 10, 64)
	if !hasTime || err != nil {
		return 0, false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(given + "."))
	mac.Write(body)
	expected := []byte("v1=" + hex.EncodeToString(mac.Sum(nil)))
	for signature := range strings.SplitSeq(signatures, ",") {
		if hmac.Equal([]byte(signature), expected) {
			return at, true
		}
	}
	return 0, false
}

// signedBySupabase reads the headers of Standard Webhooks. Supabase joins signatures by a comma and a blank, and the library ignores what
// follows a second comma.
func signedBySupabase(h http.Header, body, key []byte) (int64, bool) {
	given := http.Header{}
	for _, name := range [...]string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		given.Set(name, singleHeader(h, name))
	}
	at, err := strconv.ParseInt(given.Get(standardwebhooks.HeaderWebhookTimestamp), 10, 64)
	if err != nil {
		return 0, false
	}
	verifier, err := standardwebhooks.NewWebhookRaw(key)
	return at, err == nil && verifier.VerifyIgnoringTimestamp(body, given) == nil
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
	body := deliveryBody{PhoneNumber: given.ContextInfo.Recipient, Code: given.Args.Code, Subject: given.Args.UserID}
	if body.Code.value == "" {
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
	body := deliveryBody{PhoneNumber: given.SMS.Phone, Code: given.SMS.OTP, Subject: given.User.ID}
	if body.PhoneNumber.value == "" {
		body.PhoneNumber = given.User.Phone
	}
	return body, errors.Join(err, body.checkTypes())
}

// isNoField accepts repeated names: what is signed has one reader.
func isNoField(string) bool { return false }

// refuseByBody answers a refusal as Supabase shows it to its user. A 503 is none: Supabase repeats one with Retry-After.
func (x *exchange) refuseByBody(e *verification.Error) {
	if e.RetryAfter > 0 {
		x.w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(e.RetryAfter), 10))
	}
	x.code = e.Code
	body := appendString(fmt.Appendf(nil, `{"error":{"http_code":%d,"message":`, statusOf(e.Code)), e.Message)
	x.sendAnswer(http.StatusOK, append(body, "}}\n"...))
}
