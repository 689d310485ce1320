package httpapi

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/json"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// initBody holds the fields of the init body that are used.
type initBody struct {
	PhoneNumber textField `json:"phoneNumber"`
	Method      textField `json:"method"`
	Subject     textField `json:"subject"`
}

// The names of the fields.
const (
	fieldPhoneNumber = "phoneNumber"
	fieldMethod      = "method"
	fieldSubject     = "subject"
)

// textField is a field whose value is a string.
type textField struct {
	value string
	given bool // as a string
	kind  byte // the first byte of the value; 0 if there is none
}

// UnmarshalJSON accepts any value, so that decodeInit can name the field of a wrong one.
func (f *textField) UnmarshalJSON(value []byte) error {
	f.kind = value[0]
	f.given = f.kind == '"'
	if !f.given {
		return nil
	}
	return json.UnmarshalCaseSensitivePreserveInts(value, &f.value) //nolint:wrapcheck // it names the position
}

// decodeInit reads the body of init. It is stricter than encoding/json, because all readers of a body (a proxy, a log,
// this server) must read the same values: names match by exact case, a known name occurs at most once however it is
// escaped, known fields are strings (optional ones may be null, because many clients send null for a missing value), nothing
// follows the object, and text is UTF-8 without lone surrogates. Unknown fields are ignored.
func decodeInit(data []byte) (initBody, error) {
	var body initBody
	if err := checkEncoding(data); err != nil {
		return initBody{}, err
	}
	duplicates, err := json.UnmarshalStrict(data, &body, json.DisallowDuplicateFields)
	if err != nil {
		return initBody{}, describeDecodeError(err, len(data))
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); trimmed[0] != '{' {
		return initBody{}, errNotAnObject
	}
	for _, duplicate := range duplicates {
		field, ok := errors.AsType[json.FieldError](duplicate)
		if !ok {
			continue
		}
		switch name := field.FieldPath(); name {
		case fieldPhoneNumber, fieldMethod, fieldSubject:
			return initBody{}, newError(codeInvalidJSON, name, "The body cannot be read: "+name+" is given more than once.")
		}
	}
	for _, known := range [...]struct {
		name  string
		field *textField
	}{{fieldPhoneNumber, &body.PhoneNumber}, {fieldMethod, &body.Method}, {fieldSubject, &body.Subject}} {
		field := known.field
		switch {
		case field.kind == 'n' && known.name != fieldPhoneNumber: // null is the same as none
		case field.kind != 0 && !field.given:
			return initBody{}, newError(codeInvalidType, known.name, known.name+" must be a string.")
		case strings.ContainsRune(field.value, utf8.RuneError) && !bytes.ContainsRune(data, utf8.RuneError):
			return initBody{}, newJSONError("a string holds half a surrogate pair")
		}
	}
	return body, nil
}

// checkEncoding returns an error for data that is empty or is not text in UTF-8.
func checkEncoding(data []byte) error {
	switch {
	case len(data) == 0:
		return newJSONError("it is empty")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return newJSONError("it starts with a byte order mark")
	case !utf8.Valid(data):
		return newJSONError("it is not UTF-8")
	default:
		return nil
	}
}

var errNotAnObject = newJSONError("it must be one JSON object")

// describeDecodeError returns the position at which a body of that length stops being JSON, without any of its content.
func describeDecodeError(err error, length int) error {
	isSyntax, offset := json.SyntaxErrorOffset(err)
	switch {
	case !isSyntax:
		return errNotAnObject
	case offset >= int64(length):
		return newJSONError("it ends too early")
	default:
		return newJSONError("it is no JSON from byte " + strconv.FormatInt(offset, 10) + " on")
	}
}

// newJSONError returns the error for a body that is not JSON. why must not contain any of the body.
func newJSONError(why string) *verification.Error {
	return newError(codeInvalidJSON, "", "The body cannot be read: "+why+".")
}
