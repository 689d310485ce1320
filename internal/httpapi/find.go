package httpapi

import (
	"fmt"
	"net/url"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveFind answers POST /api/verify/requests/find. The number is in a body because URLs are written to the logs of proxies.
func (x *exchange) serveFind() error {
	key, err := x.authorizeWithoutQuery(settings.ScopeRead)
	if err != nil {
		return err
	}
	body, err := readBodyAs(x, decodeFind)
	if err != nil {
		return fmt.Errorf("read filters: %w", err)
	}
	query, err := body.listQuery(x.settings.ProjectID)
	if err != nil {
		return fmt.Errorf("check filters: %w", err)
	}
	return x.servePage(key, query)
}

// findBody holds the fields of the find body that are used.
type findBody struct {
	PhoneNumber textField `json:"phoneNumber"`
	Status      textField `json:"status"`
	Since       textField `json:"since"`
	Kind        textField `json:"kind"`
	Cursor      textField `json:"cursor"`
	Limit       rawField  `json:"limit"`
}

// rawField is the JSON of a field; empty if it is missing or null.
type rawField string

// UnmarshalJSON accepts any value.
func (f *rawField) UnmarshalJSON(value []byte) error {
	if *f = rawField(value); *f == "null" {
		*f = ""
	}
	return nil
}

// textFields returns the fields that are strings, the required one first.
func (b *findBody) textFields() [5]namedField {
	return [...]namedField{
		{fieldPhoneNumber, &b.PhoneNumber}, {"status", &b.Status}, {"since", &b.Since}, {"kind", &b.Kind}, {"cursor", &b.Cursor},
	}
}

// decodeFind reads the body of find, as strictly as decodeInit.
func decodeFind(data []byte) (findBody, error) {
	var body findBody
	err := decodeObject(data, &body, func(name string) bool {
		switch name {
		case fieldPhoneNumber, "status", "since", "kind", "cursor", "limit":
			return true
		default:
			return false
		}
	})
	if err != nil {
		return findBody{}, err
	}
	for i, known := range body.textFields() {
		if err := known.field.checkType(known.name, i > 0); err != nil {
			return findBody{}, err
		}
	}
	return body, nil
}

// listQuery returns what the body asks for. The filters are those of a list.
func (b *findBody) listQuery(project string) (verification.ListQuery, error) {
	query := verification.ListQuery{Limit: defaultPage}
	if !b.PhoneNumber.given {
		return query, errMissingNumber
	}
	number, err := phone.Parse(b.PhoneNumber.value)
	if err != nil {
		return query, newNumberError(err)
	}
	query.Phone = number
	values := url.Values{}
	for _, known := range b.textFields() {
		if known.field.given {
			values.Set(known.name, known.field.value)
		}
	}
	if b.Limit != "" {
		values.Set("limit", string(b.Limit))
	}
	return query, readListParameters(values, project, &query)
}
