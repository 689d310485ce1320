package boundedhttp

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestHeader_ends(t *testing.T) {
	for name, test := range map[string]struct {
		header, rest string
	}{
		"carriage returns":    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "body\r\n\r\n"},
		"line feeds":          {"GET / HTTP/1.1\nHost: a\n\n", "\n"},
		"both":                {"GET / HTTP/1.1\r\nHost: a\n\r\n", "x"},
		"a field of one CR":   {"GET / HTTP/1.1\r\n\r\r\n\r\n", ""},
		"a continuation line": {"GET / HTTP/1.1\r\nA: b\r\n \r\n\r\n", "c"},
		"nothing":             {"\r\n", "GET / HTTP/1.1\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var whole header
			g.Expect(whole.countBytes([]byte(test.header + test.rest))).To(Equal(len(test.header)))
			g.Expect(whole.ended).To(BeTrue())
			var split header
			for i := range len(test.header) {
				g.Expect(split.ended).To(BeFalse())
				g.Expect(split.countBytes([]byte(test.header[i : i+1]))).To(Equal(1))
			}
			g.Expect(split).To(Equal(whole), "the size of the reads must not matter")
		})
	}
}

func TestHeader_limits(t *testing.T) {
	const line = "GET / HTTP/1.1\r\n"
	for name, test := range map[string]struct {
		sent           string
		long, tooLarge bool
	}{
		"nothing":                     {"", false, false},
		"few fields":                  {line + strings.Repeat("a:\n", longHeaderFields) + "\n", false, false},
		"many fields":                 {line + strings.Repeat("a:\n", longHeaderFields+1) + "\n", true, false},
		"all fields":                  {line + strings.Repeat("a:\n", MaxHeaderFields) + "\n", true, false},
		"all and one byte read ahead": {line + strings.Repeat("a:\n", MaxHeaderFields) + "\n\n", true, false},
		"a field too many":            {line + strings.Repeat("a:\n", MaxHeaderFields+1), true, true},
		"all bytes":                   {line + strings.Repeat("a", MaxHeaderBytes-len(line)), true, false},
		"a byte too many":             {line + strings.Repeat("a", MaxHeaderBytes-len(line)+1), true, true},
		"blank lines":                 {strings.Repeat("\n", MaxHeaderFields+10), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var h header
			for sent := []byte(test.sent); len(sent) > 0; {
				sent = sent[h.countBytes(sent):]
			}
			g.Expect([]bool{h.isLong(), h.isTooLarge()}).To(Equal([]bool{test.long, test.tooLarge}))
		})
	}
}
