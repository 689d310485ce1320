package httpapi

import (
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// readDeliver returns what the client has sent to the number, without asking whether the project and the key may do that.
func readDeliver(body *initBody) (verification.DeliverKind, error) {
	if !body.Deliver.given {
		return verification.DeliverNothing, nil
	}
	deliver := verification.DeliverKind(body.Deliver.value)
	switch {
	case deliver != verification.DeliverCode:
		return "", errDeliver
	case body.Assurance.value == levelPossession:
		return "", errDeliverAssurance
	default:
		return deliver, nil
	}
}

// refuseCode returns why the project sends no code for this verification; nil if it does, or none is asked for. A test key needs no
// country, because nothing is sent to its numbers.
func (x *exchange) refuseCode(initiation verification.Initiation) *verification.Error {
	if initiation.Terms.Deliver == verification.DeliverNothing {
		return nil
	}
	countries, sent := x.settings.CodeCountries(initiation.Method)
	switch {
	case !sent:
		return verification.ErrNoCodes
	case initiation.Subject == "" && initiation.Terms.Deliver == verification.DeliverCode:
		return errMissingSubject
	case !initiation.Test && !takesCodes(countries, initiation.Phone):
		return errCountryRefused
	case !initiation.Test && !x.settings.CanSendCodes(initiation.Method): // else it would count in limits, and fail
		return errChannelNotReady
	default:
		return nil
	}
}

// takesCodes reports whether codes are sent to a number, by its region and its kind. One whose kind is not
// known is taken, as a Mexican mobile number in its former form.
func takesCodes(countries map[phone.Region]bool, number phone.Number) bool {
	region, kind, found := phone.RegionOf(number)
	if !found || !countries[region] {
		return false
	}
	switch kind {
	case phone.LinePremium, phone.LineSharedCost, phone.LinePager, phone.LineVoIP:
		return false
	default:
		return true
	}
}

// appendCodeLength appends how many digits are sent to the number; nothing if none are.
func appendCodeLength(body []byte, request *verification.Request) []byte {
	if !request.DeliversCode() {
		return body
	}
	body = append(body, `,"codeLength":`...)
	return strconv.AppendInt(body, int64(len(verification.TestDelivered)), 10)
}

// appendCodeDelivery appends how far the sending of the code is; nothing if there is no code, or nothing is known yet.
func appendCodeDelivery(body []byte, request *verification.Request, now time.Time) []byte {
	state := request.CodeDeliveryAt(now)
	if state == "" {
		return body
	}
	body = append(body, `,"codeDelivery":"`...)
	body = append(body, state...)
	return append(body, '"')
}
