package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// authorize returns the API key of the request if the key has the scope. It runs before the body is read and uses memory
// only, so invalid keys cause no load on the store.
func (x *exchange) authorize(scope settings.Scope) (settings.Key, error) {
	presented, err := bearerToken(x.r.Header)
	if err != nil {
		return settings.Key{}, err
	}
	key, err := x.settings.Keys.Find(presented, x.api.clock.Now())
	if err != nil {
		return settings.Key{}, x.refuseKey(err, errUnknownKey)
	}
	x.keyName, x.testKey = key.Name, key.Test
	if !key.Has(scope) {
		return settings.Key{}, scopeErrors[scope]
	}
	return key, nil
}

// refuseKey returns the answer to an error of settings.Keys, which for ErrKeyUnknown is unknown.
func (x *exchange) refuseKey(err, unknown error) error {
	switch {
	case errors.Is(err, settings.ErrKeyExpired):
		return errExpiredKey
	case errors.Is(err, settings.ErrKeysUnavailable):
		x.route += strangersSuffix
		return errKeysUnavailable
	default:
		return unknown
	}
}

// authorizeWithoutQuery does what authorize does, for paths that take no query parameters. The refusal names none, because a name that a
// client made up may be as personal as a value.
func (x *exchange) authorizeWithoutQuery(scope settings.Scope) (settings.Key, error) {
	key, err := x.authorize(scope)
	if err != nil {
		return settings.Key{}, err
	}
	values, err := url.ParseQuery(x.r.URL.RawQuery)
	switch {
	case err != nil:
		return settings.Key{}, errQuery
	case len(values) > 0:
		return settings.Key{}, errNoParameters
	}
	return key, nil
}

// bearerToken returns the token of the Authorization header. Two such headers are refused: a proxy may have checked the other.
func bearerToken(h http.Header) (string, error) {
	values := h["Authorization"]
	switch {
	case len(values) == 0:
		return "", errMissingKey
	case len(values) > 1:
		return "", errMalformedKey
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ") // RFC 9110, 11.4: one or more
	if !ok || !strings.EqualFold(scheme, "Bearer") || !isVisibleASCII(token) {
		return "", errMalformedKey
	}
	return token, nil
}

// isVisibleASCII reports whether s is not empty and has only visible ASCII characters. API keys may be the value of any
// Secret, so this accepts more than the token of RFC 6750, but no space, control character or look-alike.
func isVisibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
