package simulator

import (
	"net/http"
	"regexp"
	"slices"
	"time"
)

// codeRule is what becomes of a code in place of its delivery.
type codeRule struct {
	// Platform is whatsapp or telegram; whatsapp if empty.
	Platform string `json:"platform,omitempty"`
	// To is the number, in E.164; every one if empty.
	To string `json:"to,omitempty"`
	// Error is the code of Meta's error; 0 for none, and the code is delivered.
	Error int `json:"error,omitempty"`
	// GatewayError is the error of Telegram's Gateway, such as BALANCE_NOT_ENOUGH; empty for none.
	GatewayError string `json:"gatewayError,omitempty"`
	// Failed has the platform take the code. Meta reports the error in a status failed after that time, such as 2s; Telegram never delivers
	// the code, and refunds it after its ttl. Empty for a refusal at once.
	Failed string `json:"failed,omitempty"`
	// WaID is what the answer calls the number, in digits, or none; what the platform calls it if empty.
	WaID string `json:"waID,omitempty"`
	// Delay is how long the answer takes. What it is about has happened before.
	Delay string `json:"delay,omitempty"`
	// LoseAnswer ends the connection in place of the answer.
	LoseAnswer bool `json:"loseAnswer,omitempty"`
	// Times is how often; once if zero.
	Times int `json:"times,omitempty"`

	failed, delay time.Duration
}

// noWaID is the WaID of an answer that has none.
const noWaID = "none"

// gatewayError is the form of an error of Telegram's Gateway.
var gatewayError = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// addCodeRule has the next codes be played by a rule.
func (h *hub) addCodeRule(rule codeRule) *failure {
	if rule.Platform == "" {
		rule.Platform = onWhatsApp
	}
	f := rule.validate()
	if f != nil {
		return f
	}
	if rule.failed, f = durationOf("failed", rule.Failed); f != nil {
		return f
	}
	if rule.delay, f = durationOf("delay", rule.Delay); f != nil {
		return f
	}
	rule.Times = max(1, rule.Times)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.codeRules) >= maxFaults {
		return tooMany(maxFaults, "rules of codes")
	}
	h.codeRules = append(h.codeRules, &rule)
	return nil
}

// validate returns what is wrong with a rule, but for its times.
func (rule *codeRule) validate() *failure {
	isGateway := rule.Platform == onTelegram
	switch {
	case !isGateway && rule.Platform != onWhatsApp:
		return badRequest("platform", "want whatsapp or telegram")
	case rule.To != "" && !e164.MatchString(rule.To):
		return badRequest("to", "want the number in E.164, as +4915112345678")
	case rule.Error < 0 || isGateway && rule.Error != 0 || !isGateway && rule.Failed != "" && rule.Error == 0:
		return badRequest("error", "want a positive code of Meta's, and one beside failed")
	case rule.GatewayError != "" && (!isGateway || !gatewayError.MatchString(rule.GatewayError)):
		return badRequest("gatewayError", "want a word of Telegram's Gateway, as BALANCE_NOT_ENOUGH, with platform telegram")
	case rule.WaID != "" && rule.WaID != noWaID && !waDigits.MatchString(rule.WaID):
		return badRequest("waID", "want the digits of a number, or none")
	case rule.Times < 0:
		return badRequest("times", "want at least 0")
	default:
		return nil
	}
}

// takeCodeRule returns the rule of the next code to a number; false if there is none. The lock is held.
func (h *hub) takeCodeRule(platform, digits string, u *user) (codeRule, bool) {
	for i, rule := range h.codeRules {
		if rule.Platform != platform || rule.To != "" && rule.To != "+"+digits && (u == nil || rule.To != u.Phone) {
			continue
		}
		if rule.Times--; rule.Times == 0 {
			h.codeRules = slices.Delete(h.codeRules, i, i+1)
		}
		return *rule, true
	}
	return codeRule{}, false
}

// playAnswer waits as the rule has it, and ends the connection if the answer is to be lost.
func (h *hub) playAnswer(r *http.Request, rule codeRule) {
	if rule.delay > 0 {
		timer := h.clock.NewTimer(rule.delay)
		select {
		case <-timer.C():
		case <-r.Context().Done():
		}
		timer.Stop()
	}
	if rule.LoseAnswer {
		panic(http.ErrAbortHandler) // net/http ends the connection
	}
}
