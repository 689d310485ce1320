package httpapi

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/json"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// initBody holds the fields of the init body that are used.
type initBody struct {
	PhoneNumber textField     `json:"phoneNumber"`
	Method      textField     `json:"method"`
	Subject     textField     `json:"subject"`
	Reference   textField     `json:"reference"`
	Locale      textField     `json:"locale"`
	ReturnURL   textField     `json:"returnURL"`
	Assurance   textField     `json:"assurance"`
	Purpose     textField     `json:"purpose"`
	Browser     textField     `json:"browser"`
	Deliver     textField     `json:"deliver"`
	Metadata    metadataField `json:"metadata"`
}

// The names of the fields.
const (
	fieldPhoneNumber = "phoneNumber"
	fieldMethod      = "method"
	fieldSubject     = "subject"
	fieldReference   = "reference"
	fieldLocale      = "locale"
	fieldReturnURL   = "returnURL"
	fieldAssurance   = "assurance"
	fieldPurpose     = "purpose"
	fieldBrowser     = "browser"
	fieldDeliver     = "deliver"
	fieldMetadata    = "metadata"
	fieldCode        = "code"
	fieldRequestID   = "requestId"
)

// confirmBody holds the fields of the confirm body that are used.
type confirmBody struct {
	ID   textField `json:"requestId"`
	Code textField `json:"code"`
}

// textField is a field whose value is a string.
type textField struct {
	value    string
	given    bool // as a string
	halfPair bool // the string has an escape of half a surrogate pair
	kind     byte // the first byte of the value; 0 if there is none
}

// UnmarshalJSON accepts any value, so that checkTypes can name the field of a wrong one.
func (f *textField) UnmarshalJSON(value []byte) error {
	f.kind = value[0]
	f.given = f.kind == '"'
	if !f.given {
		return nil
	}
	f.halfPair = hasHalfPair(value)
	return json.UnmarshalCaseSensitivePreserveInts(value, &f.value) //nolint:wrapcheck // it names the position
}

// metadataField is a field whose value is an object of strings.
type metadataField struct {
	pairs    map[string]textField
	repeated bool // a key is there twice
	halfPair bool // a key or a value has an escape of half a surrogate pair
	kind     byte // the first byte of the value; 0 if there is none
}

// UnmarshalJSON accepts any value, so that checkTypes can name the field of a wrong one. What is nested in the object is not
// decoded.
func (f *metadataField) UnmarshalJSON(value []byte) error {
	f.kind = value[0]
	if f.kind == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0 {
		f.kind = 'n' // how PHP encodes an empty map
	}
	if f.kind != '{' {
		return nil
	}
	f.halfPair = hasHalfPair(value)
	duplicates, err := json.UnmarshalStrict(value, &f.pairs, json.DisallowDuplicateFields)
	f.repeated = len(duplicates) > 0
	return err //nolint:wrapcheck // it names the position
}

// decodeInit reads the body of init. It is stricter than encoding/json, because all readers of a body (a proxy, a log,
// this server) must read the same values: names match by exact case, a known name and a key of metadata occur at most once
// however they are escaped, known fields have their type (optional ones may be null, because many clients send null for a
// missing value), nothing follows the object, and text is UTF-8 without lone surrogates. Unknown fields are ignored.
func decodeInit(data []byte) (initBody, error) {
	var body initBody
	if err := decodeObject(data, &body, isInitField); err != nil {
		return initBody{}, err
	}
	if err := body.checkTypes(); err != nil {
		return initBody{}, err
	}
	return body, nil
}

func isInitField(name string) bool {
	switch name {
	case fieldPhoneNumber, fieldMethod, fieldSubject, fieldReference, fieldLocale, fieldReturnURL, fieldAssurance, fieldPurpose,
		fieldBrowser, fieldDeliver, fieldMetadata:
		return true
	default:
		return false
	}
}

// decodeConfirm reads the body of confirm, as strictly as decodeInit. Neither of its fields may be null.
func decodeConfirm(data []byte) (confirmBody, error) {
	var body confirmBody
	err := decodeObject(data, &body, func(name string) bool { return name == fieldRequestID || name == fieldCode })
	if err != nil {
		return confirmBody{}, err
	}
	for _, known := range [...]namedField{{fieldRequestID, &body.ID}, {fieldCode, &body.Code}} {
		if err := known.field.checkType(known.name, false); err != nil {
			return confirmBody{}, err
		}
	}
	return body, nil
}

// requestIDBody holds the field of the bodies of cancel and redeliver that is used.
type requestIDBody struct {
	ID textField `json:"requestId"`
}

// decodeRequestID reads the body of cancel and redeliver, as strictly as decodeInit. Its field may not be null.
func decodeRequestID(data []byte) (requestIDBody, error) {
	var body requestIDBody
	if err := decodeObject(data, &body, func(name string) bool { return name == fieldRequestID }); err != nil {
		return requestIDBody{}, err
	}
	return body, body.ID.checkType(fieldRequestID, false)
}

// decodeObject reads a JSON object into body. isKnown reports whether a name is that of one of its fields.
func decodeObject(data []byte, body any, isKnown func(name string) bool) error {
	if err := checkEncoding(data); err != nil {
		return err
	}
	duplicates, err := json.UnmarshalStrict(data, body, json.DisallowDuplicateFields)
	if err != nil {
		return describeDecodeError(err, data)
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); trimmed[0] != '{' {
		return errNotAnObject
	}
	for _, duplicate := range duplicates {
		field, ok := errors.AsType[json.FieldError](duplicate)
		if ok && isKnown(field.FieldPath()) {
			name := field.FieldPath()
			return newError(codeInvalidJSON, name, "The body cannot be read: "+name+" is given more than once.")
		}
	}
	return nil
}

// namedField is a field with its name.
type namedField struct {
	name  string
	field *textField
}

// checkTypes returns an error for a field whose value has the wrong type, or text that is not Unicode.
func (b *initBody) checkTypes() error {
	for _, known := range [...]namedField{
		{fieldPhoneNumber, &b.PhoneNumber}, {fieldMethod, &b.Method}, {fieldSubject, &b.Subject},
		{fieldReference, &b.Reference}, {fieldLocale, &b.Locale}, {fieldReturnURL, &b.ReturnURL},
		{fieldAssurance, &b.Assurance}, {fieldPurpose, &b.Purpose}, {fieldBrowser, &b.Browser},
		{fieldDeliver, &b.Deliver},
	} {
		if err := known.field.checkType(known.name, known.name != fieldPhoneNumber); err != nil {
			return err
		}
	}
	return b.Metadata.checkType()
}

// checkType returns an error for a value that is not a string of Unicode. For an optional field null is the same as none.
func (f *textField) checkType(name string, optional bool) error {
	switch {
	case f.kind == 'n' && optional:
		return nil
	case f.kind != 0 && !f.given:
		return newError(codeInvalidType, name, name+" must be a string.")
	case f.halfPair:
		return newHalfPairError(name)
	default:
		return nil
	}
}

// checkType returns an error for a value that is not an object of strings with different keys.
func (f *metadataField) checkType() error {
	switch {
	case f.kind == 0, f.kind == 'n':
		return nil
	case f.kind != '{':
		return errMetadataType
	case f.repeated:
		return errMetadataRepeated
	case f.halfPair:
		return newHalfPairError(fieldMetadata)
	}
	for _, value := range f.pairs {
		if !value.given {
			return errMetadataType
		}
	}
	return nil
}

// hasHalfPair reports whether JSON has the escape of half a surrogate pair, which decoders replace by another character.
func hasHalfPair(text []byte) bool {
	for at := bytes.IndexByte(text, '\\'); at >= 0; at = bytes.IndexByte(text, '\\') {
		text = text[at:]
		r, size := decodeEscape(text)
		if utf16.IsSurrogate(r) {
			second, _ := decodeEscape(text[size:])
			if utf16.DecodeRune(r, second) == utf8.RuneError {
				return true
			}
			size *= 2
		}
		text = text[size:]
	}
	return false
}

// decodeEscape returns the code unit of the \u escape that valid JSON begins with, and its size in bytes; 0 if it begins with
// anything else, which then has two bytes if it is another escape.
func decodeEscape(text []byte) (unit rune, size int) {
	const short, long = len(`\n`), len(`\u0000`)
	if len(text) < long || text[0] != '\\' || text[1] != 'u' {
		return 0, min(short, len(text))
	}
	value, err := strconv.ParseUint(string(text[short:long]), 16, 16)
	if err != nil {
		return 0, short
	}
	return rune(value), long
}

// checkEncoding returns an error for data that is empty or is not text in UTF-8.
func checkEncoding(data []byte) error {
	switch {
	case len(data) == 0:
		return newJSONError("it is empty")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return newJSONError("it starts with a byte order mark")
	case !utf8.Valid(data):
		return newJSONError("it is not UTF-8 from byte " + strconv.Itoa(countValid(data)+1) + " on")
	default:
		return nil
	}
}

var errNotAnObject = newJSONError("it must be one JSON object")

// newJSONError returns the error for a body that is not JSON. why must not contain any of the body.
func newJSONError(why string) *verification.Error {
	return newError(codeInvalidJSON, "", "The body cannot be read: "+why+".")
}

// newHalfPairError returns the error for a field with half a surrogate pair.
func newHalfPairError(field string) *verification.Error {
	return newError(codeInvalidJSON, field, "The body cannot be read: "+field+" holds half a surrogate pair.")
}
