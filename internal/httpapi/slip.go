package httpapi

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/json"
)

// Slips that the decoder does not distinguish from others.
const (
	slipComma = "a closing bracket follows a comma"
	slipQuote = "a single quote stands where JSON has double quotes"
)

// slips maps a part of the decoder's error, which quotes a byte of the body, to what clients read. The first that matches counts.
var slips = [...]struct{ decoder, slip string }{
	{"looking for beginning of object key string", "a field name in double quotes is expected"},
	{"looking for beginning of value", "a value is expected: text in double quotes, a number, true, false, null, an array or an object"},
	{"after top-level value", "nothing may follow the object"},
	{"after object key:value pair", "a comma or a closing brace is expected"},
	{"after object key", "a colon is expected"},
	{"after array element", "a comma or a closing bracket is expected"},
	{"in string literal", "a text has a control character, such as a line feed: write it as an escape"},
	{"escape", "a text has an escape that JSON does not have"},
	{"numeric literal", "a number is not written as in JSON"},
	{"in literal", "a word is neither true, false nor null"},
}

// describeDecodeError returns an error with the position and the kind of the first slip in data, and without any of their content.
func describeDecodeError(err error, data []byte) error {
	isSyntax, offset := json.SyntaxErrorOffset(err)
	if !isSyntax {
		return errNotAnObject
	}
	text := err.Error()
	// At the end of data the decoder says so, or refuses a space that it adds.
	atEnd := text == "unexpected end of JSON input" || strings.HasPrefix(text, "invalid character ' ' ")
	if atEnd && offset >= int64(len(data)) {
		return newJSONError(fmt.Sprintf("it ends too early, after byte %d", len(data)))
	}
	return newJSONError(fmt.Sprintf("it is no JSON from byte %d on: %s", offset, findSlip(text, data[:offset])))
}

// findSlip returns the kind of slip at the last byte of data.
func findSlip(text string, data []byte) string {
	last := len(data) - 1
	before := bytes.TrimRight(data[:last], " \t\r\n")
	switch {
	case !strings.Contains(text, "looking for"):
	case data[last] == '\'':
		return slipQuote
	case (data[last] == '}' || data[last] == ']') && bytes.HasSuffix(before, []byte(",")):
		return slipComma
	}
	for _, known := range slips {
		if strings.Contains(text, known.decoder) {
			return known.slip
		}
	}
	return "it is nested too deep"
}

// countValid returns the number of bytes before the first that is not UTF-8.
func countValid(data []byte) int {
	valid := 0
	for valid < len(data) {
		r, size := utf8.DecodeRune(data[valid:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		valid += size
	}
	return valid
}
