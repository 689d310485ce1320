package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// authorize returns the API key of the request if it may do what scope names. It runs before anything of the body is
// read, and it reads nothing but memory: junk keys cost the store nothing.
func (x *exchange) authorize(scope settings.Scope) (settings.Key, error) {
	presented, err := bearerToken(x.r.Header)
	if err != nil {
		return settings.Key{}, err
	}
	key, err := x.settings.Keys.Find(presented, x.api.clock.Now())
	switch {
	case errors.Is(err, settings.ErrKeyExpired):
		return settings.Key{}, errExpiredKey
	case err != nil:
		return settings.Key{}, errUnknownKey
	}
	x.keyName = key.Name
	if !key.Has(scope) {
		if scope == settings.ScopeInit {
			return settings.Key{}, errScopeInit
		}
		return settings.Key{}, errScopeStatus
	}
	return key, nil
}

// bearer returns the token of the one Authorization header. Two headers are refused: a proxy may have judged the other.
func bearerToken(h http.Header) (string, error) {
	values := h["Authorization"]
	switch {
	case len(values) == 0:
		return "", errMissingKey
	case len(values) > 1:
		return "", errMalformedKey
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || !isVisibleASCII(token) {
		return "", errMalformedKey
	}
	return token, nil
}

// visible tells whether s has only visible ASCII characters, and at least one. API keys may be any Secret's value, so
// this is wider than RFC 6750's token and still lets no space, control character or look-alike through.
func isVisibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != ""
}
