package request

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestParseRedelivery(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		id         string
	}{
		"request id":              {"vr0123456789abcdefghjkmnpq/1", "vr0123456789abcdefghjkmnpq"},
		"manual request":          {"by-hand.7/2027-01-31T09:30:00Z", "by-hand.7"},
		"nonce with slashes":      {"a/b/c", "a"},
		"nonce with spaces":       {"a/Sun Jan 31 09:30:00 UTC 2027", "a"},
		"as long as can be":       {"a/" + strings.Repeat("x", maxRedelivery-2), "a"},
		"longer":                  {"a/" + strings.Repeat("x", maxRedelivery-1), ""},
		"nothing":                 {"", ""},
		"no slash":                {"vr0123456789abcdefghjkmnpq", ""},
		"no id":                   {"/1", ""},
		"no nonce":                {"a/", ""},
		"neither":                 {"/", ""},
		"id of no object":         {"+4915112345678/1", ""},
		"id in upper case":        {"A/1", ""},
		"id out of the folder":    {"../1", ""},
		"line feed":               {"a/1\n2", ""},
		"line feed at the end":    {"a/1\n", ""},
		"NUL":                     {"a/\x00", ""},
		"escape":                  {"a/\x1b[2J", ""},
		"DEL":                     {"a/\x7f", ""},
		"control character in id": {"a\t/1", ""},
		"invisible character":     {"a/1\u200b", ""},
		"no UTF-8":                {"a/\xff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			id, ok := parseRedelivery(tc.annotation)
			g.Expect(ok).To(Equal(tc.id != ""))
			if ok {
				g.Expect(id).To(Equal(tc.id))
				g.Expect(redeliveryMark(tc.annotation)).To(Equal(tc.annotation))
				return
			}
			_, isRedelivery := parseRedelivery(redeliveryMark(tc.annotation))
			g.Expect(isRedelivery).To(BeFalse(), "no valid annotation looks like the mark of a malformed one")
		})
	}
}

func FuzzParseRedelivery(f *testing.F) {
	for _, seed := range []string{"a/1", "", "/", "a/", "a/\x00", "vr0123456789abcdefghjkmnpq/x/y", strings.Repeat("a/", maxRedelivery)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		id, ok := parseRedelivery(annotation)
		if !ok {
			return
		}
		if len(annotation) > maxRedelivery || !strings.HasPrefix(annotation, id+"/") || strings.ContainsAny(annotation, "\x00\n\r\x1b\x7f") {
			t.Errorf("%q is well formed, with id %q", annotation, id)
		}
	})
}

func TestDescribeRedelivery(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		answer  error
		granted bool
		message string
		fails   bool
	}{
		"granted": {granted: true, message: "the event of request a is sent once more"},
		"no event": {
			answer:  verification.ErrNoEvent,
			message: "request a has no event to send: it is pending, or spec.webhook.events does not name its event",
		},
		"not found":  {answer: verification.ErrNotFound, message: "no such request is stored, so its event cannot be sent again"},
		"content":    {answer: verification.ErrContent, message: "request a cannot be changed"},
		"store down": {answer: verification.Unavailable(broken), fails: true},
		"conflict":   {answer: verification.ErrConflict, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			granted, message, err := describeRedelivery("a", tc.answer)
			g.Expect(granted).To(Equal(tc.granted))
			g.Expect(message).To(Equal(tc.message))
			if tc.fails {
				g.Expect(err).To(MatchError(tc.answer))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}
