package httpapi

import (
	"github.com/phoneproof/phoneproof/internal/verification"
)

// initBody is what of the body of init counts.
type initBody struct {
	phoneNumber    string
	hasPhoneNumber bool
	method         string
	hasMethod      bool
	subject        string
	hasSubject     bool
}

// decodeInit reads the body of init. It is stricter than encoding/json, because two readers of one body (a proxy, a
// log, this server) must not see two things: names are matched by exact case, a known name stands at most once however
// it is escaped, known fields are strings (only an optional one may be null, as many clients write what they do not
// have), nothing follows the object, and text is UTF-8 without lone surrogates. Fields it does not know are checked to
// be JSON and ignored.
func decodeInit(data []byte) (initBody, error) {
	var body initBody
	var subjectIsNull bool
	s, err := newScanner(data)
	if err != nil {
		return initBody{}, err
	}
	if s.peek() != '{' {
		return initBody{}, jsonError("it must be one JSON object")
	}
	err = s.object(func(name string) error {
		switch name {
		case "phoneNumber":
			return s.stringField(name, &body.phoneNumber, &body.hasPhoneNumber)
		case "method":
			return s.stringField(name, &body.method, &body.hasMethod)
		case "subject":
			return s.nullableField(name, &body.subject, &body.hasSubject, &subjectIsNull)
		default:
			return s.skipValue(1)
		}
	})
	if err != nil {
		return initBody{}, err
	}
	if s.peek() != 0 || s.at < len(s.data) {
		return initBody{}, jsonError("something follows the JSON object")
	}
	body.hasSubject = body.hasSubject && !subjectIsNull
	return body, nil
}

// nullableField reads the string of a known field that may be null, which is then present all the same: a second one is
// refused.
func (s *scanner) nullableField(name string, value *string, present, null *bool) error {
	if *present || s.peek() != 'n' {
		return s.stringField(name, value, present)
	}
	*present, *null = true, true
	return s.word()
}

// stringField reads the string of a known field.
func (s *scanner) stringField(name string, value *string, present *bool) error {
	if *present {
		return refuse(codeInvalidJSON, name, "The body cannot be read: "+name+" is given more than once.")
	}
	if s.peek() != '"' {
		if err := s.skipValue(1); err != nil { // A broken value is no wrong type.
			return err
		}
		return refuse(codeInvalidType, name, name+" must be a string.")
	}
	*present = true
	text, err := s.text()
	*value = text
	return err
}

// jsonError refuses a body that is no JSON as we read it. why holds nothing of the body.
func jsonError(why string) *verification.Error {
	return refuse(codeInvalidJSON, "", "The body cannot be read: "+why+".")
}
