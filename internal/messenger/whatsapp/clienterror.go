package whatsapp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// Error is a failed call. It holds numbers only: what net/http says names the URL, and what Meta says may name numbers and
// ids.
type Error struct {
	messenger.CallError

	// Status is that of HTTP; 0 without an answer.
	Status int
	// Code and Subcode are Meta's ("Error codes"); 0 if there are none, as in the page of a proxy.
	Code    int
	Subcode int
}

// Error describes the failure by its numbers.
func (e *Error) Error() string {
	text := "WhatsApp Graph API: " + string(e.Class)
	if e.Status != 0 {
		text += fmt.Sprintf(", HTTP %d", e.Status)
	}
	if e.Code != 0 {
		text += fmt.Sprintf(", code %d", e.Code)
	}
	if e.Subcode != 0 {
		text += fmt.Sprintf(", subcode %d", e.Subcode)
	}
	return text
}

// Undeliverable reports whether Meta would refuse the same message to the same user for ever, such as one to a user who
// cannot receive it (131026) or outside of the 24 hours (131047). What can be corrected is not that: an expired token
// (190), a locked or unpaid account. Nor is an answer without a code, which a proxy may have given.
func (e *Error) Undeliverable() bool {
	return e.Class == messenger.CallRefused && e.Code != 0 && !slices.Contains(accountCodes, e.Code)
}

// accountCodes are refusals that are about the business and its account, and end when that is put in order (Cloud API, "Error
// codes"): a policy or an account restricted, access denied, display name, locked, payment, certificate, maintenance, not
// registered.
var accountCodes = []int{368, 131005, 131031, 131037, 131042, 131045, 131057, 133000, 133004, 133005, 133010}

// refusalError classifies an answer. Meta's own codes come first: many of its limits are answered with 400 (Graph API, "Rate
// limits", codes 4, 17, 32, 613; Cloud API, "Error codes", 80007, 130429, 131048, 131056).
func refusalError(a messenger.Answer) error {
	var body struct {
		Error struct {
			Code    int `json:"code"`
			Subcode int `json:"error_subcode"`
		} `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &body) // a gateway's page has no codes
	// Dates are not taken: no clock but ours is to be trusted with a wait.
	seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
	return &Error{
		CallError: messenger.CallError{
			Class: failureClass(a.Status, body.Error.Code), RetryAfter: messenger.Wait(int64(seconds), maxRetryAfter),
		},
		Status: a.Status, Code: body.Error.Code, Subcode: body.Error.Subcode,
	}
}

func failureClass(status, code int) messenger.CallFailure {
	switch code {
	case 4, 17, 32, 613, 80007, 130429, 131048, 131056:
		return messenger.CallRateLimited
	case 0:
	case 1, 2, 131000, 131016: // unknown and temporary
		return messenger.CallPlatformError
	case 3, 10, 102, 190:
		return messenger.CallCredentials
	}
	if code >= 200 && code <= 299 { // permissions
		return messenger.CallCredentials
	}
	switch {
	case status == http.StatusTooManyRequests:
		return messenger.CallRateLimited
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return messenger.CallCredentials
	case status >= http.StatusInternalServerError:
		return messenger.CallPlatformError
	default:
		return messenger.CallRefused
	}
}
