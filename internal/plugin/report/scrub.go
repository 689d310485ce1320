package report

import (
	_ "embed" // the words
	"regexp"
	"strings"
)

// hidden stands for what was taken out.
const hidden = "***"

// words are those that texts of a report may hold: what the sources of this program consist of, in words.txt, one a line. A secret, a code
// or a name of a person is not among them.
//
//go:embed words.txt
var words string

// foreign are words of errors and Events that other programs write: Go's libraries, Kubernetes, PostgreSQL.
//
//go:embed foreign.txt
var foreign string

// scrubber takes everything out of a text but what it knows.
type scrubber struct {
	known map[string]bool
}

// newScrubber returns a scrubber that also knows some names, such as those of objects.
func newScrubber(names ...string) *scrubber {
	s := &scrubber{known: map[string]bool{}}
	for word := range strings.FieldsSeq(words + foreign) {
		s.known[word] = true
	}
	for _, name := range names {
		s.known[name] = true
	}
	return s
}

var (
	// tokens are times, and what stands between blanks and punctuation.
	tokens = regexp.MustCompile(`[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})` +
		`|[^\s"'` + "`" + `{}\[\](),;=:<>|\\]+|\\.`)
	// times are those tokens that are a time.
	times = regexp.MustCompile(`^[0-9]{4}-[01][0-9]-[0-3][0-9]T`)
	// numbers that are shown: a status, a count, a duration. Codes and phone numbers have more digits.
	numbers = regexp.MustCompile(`^([0-9]{1,4}|[0-9]{1,3}\.[0-9]{1,2}|[0-9]{1,4}(\.[0-9]{1,3})?(ns|us|µs|ms|s|m|h|MiB|KiB|%))$`)
	// digitGroups are numbers in several groups, which may be one phone number.
	digitGroups = regexp.MustCompile(`^(\+?[0-9]+(?:(?:\\[a-z]|[^\p{L}0-9\n])+[0-9]+)+|\+[0-9]+)`)
	// digitsWithin finds digits that begin behind a separator within a token.
	digitsWithin = regexp.MustCompile(`[^\p{L}0-9][0-9]`)
	// requestIDs are ids that the program makes. They say nothing about a person, and logs name requests by them.
	requestIDs = regexp.MustCompile(`^vr[a-z2-7]{24}$`)
	// addresses are tokens of URLs, with their credentials, and names with a dot, such as hosts: each of their words may be known.
	addresses = regexp.MustCompile(`^//|@|[A-Za-z]\.[A-Za-z]`)
	// parts separate what a token consists of.
	parts = regexp.MustCompile(`[-_./@%+~#$!*&?]+`)
)

// scrub returns a text without everything that is not known.
func (s *scrubber) scrub(text string) string {
	var clean strings.Builder
	rest := text
	for rest != "" {
		at := tokens.FindStringIndex(rest)
		if at == nil {
			clean.WriteString(rest)
			break
		}
		clean.WriteString(rest[:at[0]])
		token := rest[at[0]:at[1]]
		rest = rest[at[1]:]
		if group := s.takeDigits(token, rest); group > 0 {
			rest = rest[group-len(token):]
			clean.WriteString(hidden)
			continue
		}
		if within := digitsWithin.FindStringIndex(token); within != nil && !s.isKnown(token) {
			begin := within[1] - 1
			if group := s.takeDigits(token[begin:], rest); group > 0 {
				rest = rest[group-len(token[begin:]):]
				clean.WriteString(s.scrubToken(token[:begin]) + hidden)
				continue
			}
		}
		clean.WriteString(s.scrubToken(token))
	}
	return clean.String()
}

// takeDigits returns how long a number in several groups is that begins with the token; 0 if there is none.
func (s *scrubber) takeDigits(token, rest string) int {
	if times.MatchString(token) {
		return 0
	}
	end := len(digitGroups.FindString(token + rest))
	if end < len(token) || end == len(token) && numbers.MatchString(token) {
		return 0
	}
	return end
}

// scrubToken returns a token if it, or each of its parts, is known.
func (s *scrubber) scrubToken(token string) string {
	if s.isKnown(token) {
		return token
	}
	end := strings.TrimRight(token, ".!?-") // punctuation of a sentence
	if s.isKnown(end) {
		return token
	}
	if addresses.MatchString(end) {
		return hidden + token[len(end):]
	}
	groups, digits := 0, 0
	for _, part := range parts.Split(end, -1) {
		if part != "" && !s.isKnown(part) {
			return hidden + token[len(end):]
		}
		if isDigits(part) {
			groups, digits = groups+1, digits+len(part)
		}
	}
	if groups > 1 && digits > mostDigits {
		return hidden + token[len(end):]
	}
	return token
}

// mostDigits is how many digits a number that is shown has at most.
const mostDigits = 4

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func (s *scrubber) isKnown(token string) bool {
	return token == "" || s.known[token] || s.known[strings.ToLower(token)] || times.MatchString(token) || numbers.MatchString(token) ||
		requestIDs.MatchString(token) || !hasLetterOrDigit(token)
}

func hasLetterOrDigit(token string) bool {
	return strings.ContainsFunc(token, func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80
	})
}
