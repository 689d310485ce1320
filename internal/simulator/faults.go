package simulator

import (
	"slices"
	"strings"
)

// fault is an answer that is given in place of the true one.
type fault struct {
	// Platform is whatsapp, telegram or receiver.
	Platform string `json:"platform"`
	// Method is the Bot API's, or messages, callback or phone_number of the Graph API; all if empty.
	Method string `json:"method,omitempty"`
	Status int    `json:"status"`
	// RetryAfter is what a 429 asks for, in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Times is how often; once if zero.
	Times int `json:"times,omitempty"`
}

func (s *Simulator) addFault(f fault) *failure {
	switch {
	case f.Platform != onWhatsApp && f.Platform != onTelegram && f.Platform != receiverName:
		return badRequest("platform", "want whatsapp, telegram or receiver")
	case f.Status < 400 || f.Status > 599:
		return badRequest("status", "want 400 to 599")
	case f.RetryAfter < 0 || f.RetryAfter > 3600 || f.Times < 0:
		return badRequest("retryAfter", "want 0 to 3600 seconds, and times of at least 0")
	}
	f.Times = max(1, f.Times)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) >= maxFaults {
		return tooMany("faults")
	}
	s.faults = append(s.faults, &f)
	return nil
}

// faultFor returns the fault that a call meets; nil for none. s.mu is held.
func (s *Simulator) faultFor(platform, method string) *fault {
	for i, f := range s.faults {
		if f.Platform != platform || f.Method != "" && !strings.EqualFold(f.Method, method) {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return f
	}
	return nil
}
