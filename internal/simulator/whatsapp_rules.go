package simulator

import (
	"cmp"
	"slices"
	"strings"
)

// WhatsAppRules are how the platform treats an account: what its owner sets in Meta's dashboards, and where the platform itself
// differs by time or place. What is left empty stays as it is.
type WhatsAppRules struct {
	// Subscribed is whether the app of the access token is subscribed to the business account; true if never set. No webhook of
	// a message or a status is posted while it is not.
	Subscribed *bool `json:"subscribed,omitempty"`
	// OtherApp is whether another app is subscribed to the business account, which changes nothing for this one.
	OtherApp *bool `json:"otherApp,omitempty"`
	// Token is what the access token may do: one of the Token constants; TokenFull if never set.
	Token string `json:"token,omitempty"`
	// Billable is whether free-form messages are billed, as since 1 October 2026; true if never set.
	Billable *bool `json:"billable,omitempty"`
	// Category is what a status callback calls their price; service if never set.
	Category string `json:"category,omitempty"`
	// WindowByBSUIDOnly is whether a message of a user who hides the number opens the window for the user id alone: one to the
	// number fails then. Meta's documentation does not say; false if never set.
	WindowByBSUIDOnly *bool `json:"windowByBSUIDOnly,omitempty"`
	// NumberAfterMessage is whether a user who hides the number has it shown to the business once that wrote to it, as the
	// platform does for 30 days; false if never set.
	NumberAfterMessage *bool `json:"numberAfterMessage,omitempty"`
	// SendFailures is how a message that cannot be delivered fails: by FailByStatus, as usual, or by FailByAnswer.
	SendFailures string `json:"sendFailures,omitempty"`
	// FailWith is the code with which every message fails, such as 131030 for a number that is not in the list of Meta's test number;
	// 0, as if never set, for none.
	FailWith *int `json:"failWith,omitempty"`
}

// What an access token may do with the business account of its number.
const (
	TokenFull = "full"
	// TokenNoManagement lacks the permission whatsapp_business_management: code 10.
	TokenNoManagement = "noManagement"
	// TokenNoAccess has it, for another business account only: code 200.
	TokenNoAccess = "noAccess"
	// TokenNoTargets has its permissions for every business account, so debug_token names none.
	TokenNoTargets = "noTargets"
	// TokenTwoTargets has them for two, the other one first.
	TokenTwoTargets = "twoTargets"
)

// How a message that cannot be delivered fails.
const (
	// FailByStatus is an answer as if it could be, and a webhook with the status failed.
	FailByStatus = "status"
	// FailByAnswer is an answer with the error.
	FailByAnswer = "answer"
)

// defaultRules are those of an account of which nothing is known.
func defaultRules() WhatsAppRules {
	return WhatsAppRules{
		Subscribed: new(true), OtherApp: new(false), Token: TokenFull, Billable: new(true), Category: "service",
		WindowByBSUIDOnly: new(false), NumberAfterMessage: new(false), SendFailures: FailByStatus, FailWith: new(0),
	}
}

// validateRules returns what is wrong.
func (r *WhatsAppRules) validateRules() *failure {
	for _, choice := range []struct {
		field, value string
		values       []string
	}{
		{"token", r.Token, []string{TokenFull, TokenNoManagement, TokenNoAccess, TokenNoTargets, TokenTwoTargets}},
		{"category", r.Category, []string{
			"service", "utility", "authentication", "authentication_international", "marketing", "marketing_lite", "referral_conversion",
		}},
		{"sendFailures", r.SendFailures, []string{FailByStatus, FailByAnswer}},
	} {
		if choice.value != "" && !slices.Contains(choice.values, choice.value) {
			return badRequest(choice.field, "want one of "+strings.Join(choice.values, ", "))
		}
	}
	if r.FailWith != nil && *r.FailWith < 0 {
		return badRequest("failWith", "want a positive code, or 0 for none")
	}
	return nil
}

// changeRules sets what is given.
func (r *WhatsAppRules) changeRules(to WhatsAppRules) {
	r.Subscribed = cmp.Or(to.Subscribed, r.Subscribed)
	r.OtherApp = cmp.Or(to.OtherApp, r.OtherApp)
	r.Token = cmp.Or(to.Token, r.Token)
	r.Billable = cmp.Or(to.Billable, r.Billable)
	r.Category = cmp.Or(to.Category, r.Category)
	r.WindowByBSUIDOnly = cmp.Or(to.WindowByBSUIDOnly, r.WindowByBSUIDOnly)
	r.NumberAfterMessage = cmp.Or(to.NumberAfterMessage, r.NumberAfterMessage)
	r.SendFailures = cmp.Or(to.SendFailures, r.SendFailures)
	r.FailWith = cmp.Or(to.FailWith, r.FailWith)
}
