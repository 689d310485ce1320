package httpapi

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// readClientData checks what the client stores with the request.
func (x *exchange) readClientData(body *initBody) (verification.ClientData, error) {
	data := verification.ClientData{Reference: body.Reference.value}
	if body.Reference.given && !isReference(data.Reference) {
		return verification.ClientData{}, errReference
	}
	var err error
	if data.Metadata, err = readMetadata(body.Metadata.pairs); err != nil {
		return verification.ClientData{}, err
	}
	if body.Locale.given {
		if !isLocale(body.Locale.value) {
			return verification.ClientData{}, errLocale
		}
		data.Locale = x.settings.MatchLocale(body.Locale.value)
	}
	if body.ReturnURL.given {
		if x.settings.Page == nil {
			return verification.ClientData{}, errNoPage
		}
		if !x.settings.Page.AllowsReturn(body.ReturnURL.value) {
			return verification.ClientData{}, newReturnURLError(x.settings.Page.ReturnURLs)
		}
		data.ReturnURL = body.ReturnURL.value
	}
	return data, nil
}

// isReference reports whether a text is one line that looks everywhere as it is: it may stand in lists and in messages.
func isReference(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= maxReference && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || // the separators of lines and paragraphs
			r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' // what changes the direction of text
	})
}

// metadataKey matches the keys of metadata.
var metadataKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// readMetadata returns the pairs, or nil if there are none.
func readMetadata(pairs map[string]textField) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	if len(pairs) > maxMetadataPairs {
		return nil, errMetadataPairs
	}
	metadata := make(map[string]string, len(pairs))
	size := 0
	for key, field := range pairs {
		if !metadataKey.MatchString(key) {
			return nil, errMetadataKey
		}
		if strings.ContainsFunc(field.value, unicode.IsControl) {
			return nil, errMetadataValue
		}
		size += len(key) + len(field.value)
		metadata[key] = field.value
	}
	if size > maxMetadataBytes {
		return nil, errMetadataSize
	}
	return metadata, nil
}

// languageTag matches the tags of BCP 47 that begin with a language. Of the others, such as x-private, none has texts.
var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$`)

// isLocale reports whether a text has the form of a language tag. The language need not exist.
func isLocale(text string) bool {
	if len(text) > maxLocale || !languageTag.MatchString(text) {
		return false
	}
	_, err := language.Parse(text)
	var unknown language.ValueError
	return err == nil || errors.As(err, &unknown)
}

// appendClientData appends the fields of status that the client gave to init, the metadata in the order of their keys.
func appendClientData(body []byte, request *verification.Request) []byte {
	if request.Reference != "" {
		body = append(body, `,"reference":`...)
		body = appendString(body, request.Reference)
	}
	if len(request.Metadata) == 0 {
		return body
	}
	body = append(body, `,"metadata":`...)
	before := byte('{')
	for _, key := range slices.Sorted(maps.Keys(request.Metadata)) {
		body = append(body, before)
		body = appendString(body, key)
		body = append(body, ':')
		body = appendString(body, request.Metadata[key])
		before = ','
	}
	return append(body, '}')
}
