package httpapi

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) from memory, without allocating but for strings that are kept. Every method starts
// where the last one ended.
type scanner struct {
	data []byte
	at   int
}

func newScanner(data []byte) (*scanner, error) {
	switch {
	case len(data) == 0:
		return nil, jsonError("it is empty")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return nil, jsonError("it starts with a byte order mark")
	case !utf8.Valid(data):
		return nil, jsonError("it is not UTF-8")
	}
	return &scanner{data: data}, nil
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// object reads an object; member reads each value.
func (s *scanner) object(member func(name string) error) error {
	s.at++ // the brace, which the caller saw
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return jsonError("a field name in double quotes is missing")
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return jsonError("a colon is missing after a field name")
		}
		s.at++
		if err := member(name); err != nil {
			return err
		}
		more, err := s.more('}')
		if err != nil || !more {
			return err
		}
	}
}

// more reads what stands between two values: a comma, or the end of the object or array.
func (s *scanner) more(end byte) (bool, error) {
	switch s.peek() {
	case ',':
		s.at++
		return true, nil
	case end:
		s.at++
		return false, nil
	case 0:
		return false, jsonError("it ends too early")
	default:
		return false, jsonError("a comma or a closing bracket is missing")
	}
}

// skipValue reads a value that nobody wants, which must be JSON all the same. depth counts what is open around it.
func (s *scanner) skipValue(depth int) error {
	switch c := s.peek(); {
	case depth > maxNesting:
		return jsonError("it is nested too deeply")
	case c == '{':
		return s.object(func(string) error { return s.skipValue(depth + 1) })
	case c == '[':
		return s.array(depth)
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || isDigit(c):
		return s.number()
	case c == 0:
		return jsonError("it ends too early")
	default:
		return s.word()
	}
}

func (s *scanner) array(depth int) error {
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := s.skipValue(depth + 1); err != nil {
			return err
		}
		more, err := s.more(']')
		if err != nil || !more {
			return err
		}
	}
}

func (s *scanner) word() error {
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.at:], []byte(word)) {
			s.at += len(word)
			return nil
		}
	}
	return jsonError("a value is neither string, number, object, array, true, false nor null")
}

// number reads a number by the grammar. Its size does not matter: nobody computes with it.
func (s *scanner) number() error {
	if s.data[s.at] == '-' {
		s.at++
	}
	start := s.at
	whole := s.digits()
	leadingZero := whole > 1 && s.data[start] == '0'
	ok := whole > 0 && !leadingZero
	if s.has('.') {
		s.at++
		ok = s.digits() > 0 && ok
	}
	if s.has('e') || s.has('E') {
		s.at++
		if s.has('+') || s.has('-') {
			s.at++
		}
		ok = s.digits() > 0 && ok
	}
	if !ok {
		return jsonError("a number is malformed")
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.data) && isDigit(s.data[s.at]) {
		s.at++
	}
	return s.at - start
}

func (s *scanner) has(c byte) bool { return s.at < len(s.data) && s.data[s.at] == c }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// text reads a string.
func (s *scanner) text() (string, error) {
	s.at++ // the quote, which the caller saw
	start := s.at
	for s.at < len(s.data) {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return string(s.data[start : s.at-1]), nil
		case c == '\\':
			return s.escapedText(start)
		case c < ' ':
			return "", jsonError("a control character stands in a string")
		}
		s.at++
	}
	return "", jsonError("a string has no end")
}

// escapedText goes on with a string at its first backslash.
func (s *scanner) escapedText(start int) (string, error) {
	text := bytes.Clone(s.data[start:s.at])
	for s.at < len(s.data) {
		c := s.data[s.at]
		s.at++
		switch {
		case c == '"':
			return string(text), nil
		case c < ' ':
			return "", jsonError("a control character stands in a string")
		case c != '\\':
			text = append(text, c)
		default:
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			text = utf8.AppendRune(text, r)
		}
	}
	return "", jsonError("a string has no end")
}

// escape reads what follows a backslash.
func (s *scanner) escape() (rune, error) {
	if s.at == len(s.data) {
		return 0, jsonError("a string has no end")
	}
	c := s.data[s.at]
	s.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return s.unicodeEscape()
	default:
		return 0, jsonError("a string holds an unknown escape")
	}
}

// unicodeEscape reads the digits of \u, and the second half of a surrogate pair. Half a pair is no character: readers
// differ in what they make of it.
func (s *scanner) unicodeEscape() (rune, error) {
	r, ok := s.hex4()
	if !ok {
		return 0, jsonError(`a string holds an incomplete \u escape`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if s.has('\\') && s.at+1 < len(s.data) && s.data[s.at+1] == 'u' {
		s.at += 2
		if low, ok := s.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, jsonError("a string holds half a surrogate pair")
}

func (s *scanner) hex4() (rune, bool) {
	if s.at+4 > len(s.data) {
		return 0, false
	}
	var r rune
	for _, c := range s.data[s.at : s.at+4] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.at += 4
	return r, true
}
