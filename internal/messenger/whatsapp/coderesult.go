package whatsapp

import (
	"cmp"
	"errors"
	"slices"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The reasons of results of more than one code of Meta's.
const (
	reasonToken = "token"
	reasonOther = "other"
)

// notSentReasons has Meta's codes for messages that are not sent and that depend on the business alone, never on the number ("Error
// codes"). All others count as sent, so that no result shows who has WhatsApp.
var notSentReasons = map[int]string{
	132000: "template_parameters", 132001: "template_missing", 132005: "template_too_long", 132007: "template_policy",
	132012: "template_format", 132015: "template_paused", 132016: "template_disabled",
	3: reasonToken, 10: reasonToken, 102: reasonToken, 190: reasonToken,
	131042: "payment",
	368:    "account", 131005: "account", 131031: "account", 131037: "account", 131045: "account",
	133000: "account", 133004: "account", 133005: "account", 133010: "account",
	131016: "outage", 131057: "outage",
	4: "limit", 80007: "limit", 130429: "limit", 131048: "limit",
}

// sentReasons names the codes that may depend on the number.
var sentReasons = map[int]string{
	codeUndeliverable: "undeliverable", codeNoWindow: "no_window",
	131030: "not_in_test_list", 131049: "held_back", 131056: "pair_limit",
}

// judgeCode returns the result of sending a code to the number asked, from what SendCode returned. Its state is empty if that is unknown.
func judgeCode(err error, answered, asked phone.Number) verification.CodeResult {
	failure, called := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return messenger.NewCodeSent(answered, asked)
	case !called:
		return messenger.NewCodeNotSent(messenger.CodeNotConfigured)
	case failure.Code != 0:
		return judgeErrorCodes([]int{failure.Code})
	case failure.Unsent && failure.Class == messenger.CallCredentials: // the secret of the token is gone
		return messenger.NewCodeNotSent(reasonToken)
	case failure.Unsent:
		return messenger.NewCodeNotSent(messenger.CodeUnreachable)
	default:
		return verification.CodeResult{Reason: messenger.CodeNoAnswer}
	}
}

// judgeErrorCodes returns the result of a message that failed with Meta's codes. It is NOT_SENT only if every code is in
// notSentReasons, or is one of permissions.
func judgeErrorCodes(codes []int) verification.CodeResult {
	result := verification.CodeResult{State: verification.CodeSent, Reason: reasonOther}
	for _, code := range codes {
		reason, listed := notSentReasons[code]
		if !listed && code >= 200 && code <= 299 { // permissions
			reason, listed = reasonToken, true
		}
		if !listed {
			return verification.CodeResult{State: verification.CodeSent, Reason: cmp.Or(sentReasons[code], reasonOther)}
		}
		result = messenger.NewCodeNotSent(reason)
	}
	return result
}

// CodeReasons implements messenger.CodePlatform.
func (c *Client) CodeReasons() []string {
	reasons := []string{reasonOther, reasonToken}
	for _, table := range []map[int]string{notSentReasons, sentReasons} {
		for _, reason := range table {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return slices.Compact(reasons)
}
