package whatsapp

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestJudgeCode: only what does not depend on the number is not sent, only what surely was not sent, and nothing else.
func TestJudgeCode(t *testing.T) {
	refused := func(code int) error {
		return fmt.Errorf("send: %w", &Error{CallError: messenger.CallError{Class: messenger.CallRefused}, Status: 400, Code: code})
	}
	failed := func(class messenger.CallFailure, status int, unsent bool) error {
		return &Error{CallError: messenger.CallError{Class: class, Unsent: unsent}, Status: status}
	}
	for name, c := range map[string]struct {
		err      error
		answered string
		want     string
	}{
		"accepted":                      {nil, user, "SENT "},
		"accepted, without a number":    {nil, "", "SENT "},
		"accepted, for another number":  {nil, "16505551235", "SENT other_number"},
		"no connection":                 {failed(messenger.CallUnreachable, 0, true), "", "NOT_SENT unreachable"},
		"no connection in time":         {failed(messenger.CallTimeout, 0, true), "", "NOT_SENT unreachable"},
		"no answer":                     {failed(messenger.CallUnreachable, 0, false), "", " no_answer"},
		"no answer in time":             {failed(messenger.CallTimeout, 0, false), "", " no_answer"},
		"an answer that cannot be read": {failed(messenger.CallUnreadable, 200, false), "", " no_answer"},
		"the page of a gateway":         {failed(messenger.CallPlatformError, 502, false), "", " no_answer"},
		"a refusal without a code":      {failed(messenger.CallRefused, 400, false), "", " no_answer"},
		"no token":                      {failed(messenger.CallCredentials, 0, true), "", "NOT_SENT token"},
		"no simulator":                  {messenger.ErrNoSimulator, "", "NOT_SENT not_configured"},
	} {
		var answered phone.Number
		if c.answered != "" {
			answered = numberOf(t, c.answered)
		}
		got := judgeCode(c.err, answered, numberOf(t, user))
		NewWithT(t).Expect(string(got.State)+" "+got.Reason).To(Equal(c.want), name)
	}
	for code, want := range map[int]string{
		132000: "NOT_SENT template_parameters", 132001: "NOT_SENT template_missing", 132005: "NOT_SENT template_too_long",
		132007: "NOT_SENT template_policy", 132012: "NOT_SENT template_format", 132015: "NOT_SENT template_paused",
		132016: "NOT_SENT template_disabled", 3: "NOT_SENT token", 10: "NOT_SENT token", 102: "NOT_SENT token", 190: "NOT_SENT token",
		200: "NOT_SENT token", 299: "NOT_SENT token", 131042: "NOT_SENT payment",
		368: "NOT_SENT account", 131005: "NOT_SENT account", 131031: "NOT_SENT account", 131037: "NOT_SENT account", 131045: "NOT_SENT account",
		133000: "NOT_SENT account", 133004: "NOT_SENT account", 133005: "NOT_SENT account", 133010: "NOT_SENT account",
		131016: "NOT_SENT outage", 131057: "NOT_SENT outage",
		4: "NOT_SENT limit", 80007: "NOT_SENT limit", 130429: "NOT_SENT limit", 131048: "NOT_SENT limit",

		131026: "SENT undeliverable", 131030: "SENT not_in_test_list", 131047: "SENT no_window", 131049: "SENT held_back",
		131056: "SENT pair_limit", 1: "SENT other", 2: "SENT other", 100: "SENT other", 131000: "SENT other", 131008: "SENT other",
		131009: "SENT other", 131021: "SENT other", 131062: "SENT other", 130497: "SENT other", 199: "SENT other", 300: "SENT other",
		999999: "SENT other",
	} {
		got := judgeCode(refused(code), phone.Number{}, numberOf(t, user))
		NewWithT(t).Expect(string(got.State)+" "+got.Reason).To(Equal(want), "%d", code)
	}
	for pair, want := range map[string]string{ // asked, answered
		"5531987654321 553187654321": "", "5215512345678 525512345678": "", "525512345678 5215512345678": "",
		"5491112345678 541112345678": "", "5511787654321 551187654321": "other_number", "16505551234 1650555123": "other_number",
	} {
		asked, answered, _ := strings.Cut(pair, " ")
		got := judgeCode(nil, numberOf(t, answered), numberOf(t, asked))
		NewWithT(t).Expect(got.Reason).To(Equal(want), pair)
	}
}

// TestJudgeErrorCodes has several codes in one failure: one that may depend on the number decides.
func TestJudgeErrorCodes(t *testing.T) {
	g := NewWithT(t)
	g.Expect(judgeErrorCodes(nil)).To(Equal(verification.CodeResult{State: verification.CodeSent, Reason: "other"}))
	for _, codes := range [][]int{{131042, 131026}, {131026, 131042}} {
		g.Expect(judgeErrorCodes(codes)).To(Equal(verification.CodeResult{State: verification.CodeSent, Reason: "undeliverable"}))
	}
	g.Expect(judgeErrorCodes([]int{131042, 132015})).To(HaveField("State", verification.CodeNotSent))
	for _, reason := range (*Client)(nil).CodeReasons() {
		g.Expect(reason).To(MatchRegexp(`^[a-z]+(_[a-z]+)*$`))
	}
}
