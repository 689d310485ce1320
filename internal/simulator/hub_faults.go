package simulator

import (
	"slices"
	"strings"
)

// fault is an answer that is given in place of the true one.
type fault struct {
	// Platform is whatsapp, telegram, receiver or, with WrapAPI, api.
	Platform string `json:"platform"`
	// Method is the Bot API's, messages, callback or phone_number of the Graph API, or what is behind /api/verify/; all if empty.
	Method string `json:"method,omitempty"`
	Status int    `json:"status"`
	// RetryAfter is what a 429 asks for, in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Times is how often; once if zero.
	Times int `json:"times,omitempty"`
}

func (h *hub) addFault(f fault) *failure {
	switch {
	case f.Platform == apiName && h.resetLimits == nil:
		return badRequest("platform", "api has faults in phoneproof dev alone")
	case f.Platform != apiName && f.Platform != onWhatsApp && f.Platform != onTelegram && f.Platform != receiverName:
		return badRequest("platform", "want whatsapp, telegram, receiver or, in phoneproof dev, api")
	case f.Status < 400 || f.Status > 599:
		return badRequest("status", "want 400 to 599")
	case f.RetryAfter < 0 || f.RetryAfter > 3600 || f.Times < 0:
		return badRequest("retryAfter", "want 0 to 3600 seconds, and times of at least 0")
	}
	f.Times = max(1, f.Times)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.faults) >= maxFaults {
		return tooMany(maxFaults, "faults")
	}
	h.faults = append(h.faults, &f)
	return nil
}

// faultFor returns the fault that a call meets; nil for none. The lock is held.
func (h *hub) faultFor(platform, method string) *fault {
	for i, f := range h.faults {
		if f.Platform != platform || f.Method != "" && !strings.EqualFold(f.Method, method) {
			continue
		}
		if f.Times--; f.Times == 0 {
			h.faults = slices.Delete(h.faults, i, i+1)
		}
		return f
	}
	return nil
}
