package httpapi

import (
	"context"
	"fmt"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveConfirm answers POST /api/verify/confirm.
func (x *exchange) serveConfirm() error {
	key, err := x.authorizeWithoutQuery(settings.ScopeInit)
	if err != nil {
		return err
	}
	id, code, err := x.readConfirmation()
	if err != nil {
		return fmt.Errorf("read confirmation: %w", err)
	}
	if err := x.limitStatus(key.Name); err != nil {
		return fmt.Errorf("limit confirmations: %w", err)
	}
	request, err := x.confirmRequest(id, code)
	if err != nil {
		return fmt.Errorf("redeem session code: %w", err)
	}
	x.answerStatus(request)
	return nil
}

// readConfirmation reads and checks the body.
func (x *exchange) readConfirmation() (id string, code verification.SessionCode, err error) {
	body, err := readBodyAs(x, decodeConfirm)
	if err != nil {
		return "", verification.SessionCode{}, err
	}
	if !body.ID.given {
		return "", verification.SessionCode{}, errMissingRequestID
	}
	if !body.Code.given {
		return "", verification.SessionCode{}, errMissingCode
	}
	code, ok := verification.ParseSessionCode(body.Code.value)
	if !ok {
		return "", verification.SessionCode{}, errInvalidCode
	}
	return body.ID.value, code, nil
}

// confirmRequest redeems the code, for at most storeTimeout. The event of the verification follows from the settings of now.
func (x *exchange) confirmRequest(id string, code verification.SessionCode) (verification.Request, error) {
	ctx, cancel := context.WithTimeout(verification.WithCaller(x.r.Context(), verification.Client(x.keyName)), storeTimeout)
	defer cancel()
	secrets := func(r *verification.Request) verification.CodeSecrets {
		return x.settings.CodeSecrets(r, x.api.clock.Now())
	}
	return x.api.service.ConfirmSession(ctx, id, x.testKey, code, secrets, x.settings.EventKinds())
}
