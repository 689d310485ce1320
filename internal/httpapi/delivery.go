package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"

	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// deliveryBody holds the fields of the deliver body that are used.
type deliveryBody struct {
	PhoneNumber textField `json:"phoneNumber"`
	Code        textField `json:"code"`
	Method      textField `json:"method"`
	Locale      textField `json:"locale"`
	Subject     textField `json:"subject"`

	signed bool // by an identity server: PhoneNumber and Code alone
}

// decodeDelivery reads the body of deliver, as strictly as decodeInit.
func decodeDelivery(data []byte) (deliveryBody, error) {
	var body deliveryBody
	err := decodeObject(data, &body, func(name string) bool { return isInitField(name) || name == fieldCode })
	if err != nil {
		return deliveryBody{}, err
	}
	return body, body.checkTypes()
}

// checkTypes returns an error for a field whose value has the wrong type, or text that is not Unicode.
func (b *deliveryBody) checkTypes() error {
	for i, known := range [...]namedField{
		{fieldPhoneNumber, &b.PhoneNumber}, {fieldCode, &b.Code}, {fieldMethod, &b.Method}, {fieldLocale, &b.Locale}, {fieldSubject, &b.Subject},
	} {
		if err := known.field.checkType(known.name, i > 1); err != nil {
			return err
		}
	}
	return nil
}

// serveDeliver answers POST /api/verify/deliver.
func (x *exchange) serveDeliver() error {
	initiated, err := x.startDelivery()
	if err != nil {
		shown, _ := publicError(x.r.Context(), err)
		x.reportRateLimited(shown)
		return err
	}
	x.reportRemaining(initiated.Created)
	body := appendTest(fmt.Appendf(nil, `{"deliveryId":%q`, initiated.Request.ID), &initiated.Request)
	x.sendAnswer(http.StatusAccepted, append(body, "}\n"...))
	return nil
}

// startDelivery stores a delivery, or finds the one that it repeats.
func (x *exchange) startDelivery() (verification.Initiated, error) {
	key, body, err := x.readDelivery()
	if err != nil {
		return verification.Initiated{}, err
	}
	initiation, err := x.checkInitiation(&initBody{
		PhoneNumber: body.PhoneNumber, Method: body.Method, Locale: body.Locale, Subject: body.Subject,
	})
	if err != nil {
		return verification.Initiated{}, err
	}
	pattern := digitCode
	if key.CodeLetters {
		pattern = letterCode
	}
	switch {
	case !body.Code.given:
		return verification.Initiated{}, errMissingDeliveryCode
	case !pattern.MatchString(body.Code.value):
		return verification.Initiated{}, errDeliveryCode
	case initiation.Method == verification.Telegram && !gatewayCode.MatchString(body.Code.value):
		return verification.Initiated{}, errGatewayCode
	}
	initiation.Terms, initiation.OtherMethods = verification.Terms{Deliver: verification.DeliverGiven}, nil
	initiation.Given, initiation.Signed = redact.New(body.Code.value), body.signed
	initiation.Locale = body.Locale.value // that of the template, which may have languages that the project's texts lack
	return x.startFor(key, initiation)
}

// The forms of a code that is delivered.
var (
	digitCode  = regexp.MustCompile(`^[0-9]{4,10}$`)
	letterCode = regexp.MustCompile(`^[A-Z0-9]{4,10}$`)
	// gatewayCode is what Telegram's Gateway takes.
	gatewayCode = regexp.MustCompile(`^[0-9]{4,8}$`)
)

// readDelivery returns what is to be delivered, for the caller's API key or what its server signed.
func (x *exchange) readDelivery() (settings.Key, deliveryBody, error) {
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	if err == nil && len(values["format"]) > 0 {
		return x.readSigned(values)
	}
	key, err := x.authorizeWithoutQuery(settings.ScopeDeliver)
	if err != nil {
		return settings.Key{}, deliveryBody{}, err
	}
	body, err := readBodyAs(x, decodeDelivery)
	return key, body, err
}
