package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// serveInit answers POST /api/verify/init.
func (x *exchange) serveInit() error {
	initiated, err := x.initiate()
	if err != nil {
		shown, _ := publicError(x.r.Context(), err)
		x.countInit(string(shown.Code))
		x.reportRateLimited(shown)
		return err
	}
	if initiated.Existing {
		x.countInit(initReplayed)
	} else {
		x.countInit(initCreated)
	}
	x.reportRemaining(initiated.Created)
	x.answerInit(initiated)
	return nil
}

// countInit counts an init by its result. All of test keys have one of their own, so that no graph or alert takes them for real.
func (x *exchange) countInit(result string) {
	if x.testKey {
		result = initTest
	}
	x.api.metrics.inits.WithLabelValues(result).Inc()
}

// initiate checks the request and starts its verification.
func (x *exchange) initiate() (verification.Initiated, error) {
	key, err := x.authorize(settings.ScopeInit)
	if err != nil {
		return verification.Initiated{}, err
	}
	if x.settings.Suspended && len(x.r.Header["Idempotency-Key"]) == 0 {
		return verification.Initiated{}, errSuspended // whatever the body contains
	}
	initiation, err := x.readInitiation()
	if err != nil {
		return verification.Initiated{}, err
	}
	if initiation.Terms.Deliver != verification.DeliverNothing && !key.Has(settings.ScopeDeliver) {
		return verification.Initiated{}, errScopeDeliver
	}
	return x.startFor(key, initiation)
}

// startFor starts a verification or a delivery for an API key, within the limit of its retries.
func (x *exchange) startFor(key settings.Key, initiation verification.Initiation) (verification.Initiated, error) {
	initiation.KeyName, initiation.KeyHash, initiation.Test = key.Name, key.Hash, key.Test
	initiation.TTL, initiation.Limits, initiation.DisplayName = x.settings.TTL, x.settings.LimitsOf(key.Test), x.settings.DisplayName
	if initiation.Terms.Deliver == verification.DeliverGiven {
		if err := x.limitDeliveries(&initiation); err != nil {
			return verification.Initiated{}, err
		}
		return x.startVerification(initiation)
	}
	if !initiation.IsRepeatable() {
		return x.startVerification(initiation)
	}
	if err := x.limitRetries(key.Name); err != nil {
		return verification.Initiated{}, err
	}
	initiated, err := x.startVerification(initiation)
	if err != nil || initiated.Existing {
		x.chargeRetry(key.Name)
	}
	return initiated, err
}

// startVerification stores a new request, or returns the one that an earlier try with the same Idempotency-Key stored.
func (x *exchange) startVerification(initiation verification.Initiation) (verification.Initiated, error) {
	ctx, cancel := context.WithTimeout(verification.WithCaller(x.r.Context(), verification.Client(initiation.KeyName)), storeTimeout)
	defer cancel()
	initiation.Refusal = x.refuseStart(initiation)
	return x.api.service.Initiate(ctx, initiation)
}

// refuseStart returns why the project does not start this verification now; nil if it does. It does not apply to a retry
// whose first try was stored before the project was changed.
func (x *exchange) refuseStart(initiation verification.Initiation) *verification.Error {
	refusal := x.refuseCode(initiation)
	switch {
	case x.settings.Suspended:
		return errSuspended
	case refusal != nil:
		return refusal
	case initiation.Subject == "" && initiation.Terms.Deliver != verification.DeliverGiven && initiation.Limits.PerSubject.Limited():
		// Without a subject the limit would not apply. Identity servers count their users themselves.
		return errMissingSubject
	case x.settings.Method(initiation.Method) == settings.MethodNotReady && !initiation.Test: // a test needs no messenger
		return errChannelNotReady
	default:
		return nil
	}
}

// readInitiation reads and checks the body and the Idempotency-Key.
func (x *exchange) readInitiation() (verification.Initiation, error) {
	body, err := readBodyAs(x, decodeInit)
	if err != nil {
		return verification.Initiation{}, err
	}
	return x.checkInitiation(&body)
}

// checkInitiation checks a body, and the Idempotency-Key.
func (x *exchange) checkInitiation(body *initBody) (verification.Initiation, error) {
	if !body.PhoneNumber.given {
		return verification.Initiation{}, errMissingNumber
	}
	number, err := phone.Parse(body.PhoneNumber.value)
	if err != nil {
		return verification.Initiation{}, newNumberError(err)
	}
	if x.settings.IsOwnNumber(number) {
		return verification.Initiation{}, errOwnNumber
	}
	method, err := x.chooseMethod(body)
	if err != nil {
		return verification.Initiation{}, err
	}
	if body.Subject.given && !isSubject(body.Subject.value) {
		return verification.Initiation{}, errSubject
	}
	clientData, err := x.readClientData(body)
	if err != nil {
		return verification.Initiation{}, err
	}
	requested, err := x.readTerms(body)
	if err != nil {
		return verification.Initiation{}, err
	}
	if requested.Deliver, err = readDeliver(body); err != nil {
		return verification.Initiation{}, err
	}
	terms := requested
	if x.settings.Level == verification.LevelSession || terms.Deliver == verification.DeliverCode {
		terms.Level = verification.LevelSession
	}
	initiation := verification.Initiation{
		Phone: number, Method: method, Subject: body.Subject.value, ClientData: clientData, RequestedLocale: body.Locale.value,
		Terms: terms, RequestedTerms: requested, OtherMethods: x.settings.PageMethods(method),
	}
	switch keys := x.r.Header["Idempotency-Key"]; len(keys) {
	case 0:
	case 1:
		initiation.IdempotencyKey, initiation.HasIdempotencyKey = keys[0], true
	default:
		return verification.Initiation{}, errIdempotencyRepeated
	}
	return initiation, nil
}

// isSubject reports whether a text can be a subject.
func isSubject(text string) bool { return text != "" && utf8.RuneCountInString(text) <= maxSubject }

// readTerms returns what the client asks of the verification, if the project can do it.
func (x *exchange) readTerms(body *initBody) (verification.Terms, error) {
	terms := verification.Terms{Purpose: body.Purpose.value, Browser: body.Browser.value}
	if body.Assurance.given {
		switch body.Assurance.value {
		case levelSession:
			terms.Level = verification.LevelSession
		case levelPossession:
			terms.Level = verification.LevelPossession
		default:
			return verification.Terms{}, errAssurance
		}
		switch {
		case terms.Level == verification.LevelPossession && x.settings.Level == verification.LevelSession:
			return verification.Terms{}, errLowerAssurance
		case terms.Level == verification.LevelSession && !x.settings.AllowsSession():
			return verification.Terms{}, errNoReplies
		}
	}
	if _, found := x.settings.Purposes[terms.Purpose]; body.Purpose.given && !found {
		return verification.Terms{}, newPurposeError(x.settings.Purposes)
	}
	if body.Browser.given && verification.BrowserName(terms.Browser) == "" {
		return verification.Terms{}, errBrowser
	}
	return terms, nil
}

// The levels, as the field assurance of init names them.
const (
	levelSession    = "SESSION"
	levelPossession = "POSSESSION"
)

// chooseMethod returns the messenger that the client asks for, if the project has an account there.
func (x *exchange) chooseMethod(body *initBody) (verification.Method, error) {
	method := verification.WhatsApp
	if body.Method.given {
		method = verification.Method(body.Method.value)
	}
	if method != verification.WhatsApp && method != verification.Telegram {
		return "", errMethod
	}
	if x.settings.Method(method) == settings.MethodNotConfigured { // Also refused for a retry, because the link needs the account.
		return "", refuseMethod(x.settings)
	}
	return method, nil
}

// refuseMethod returns the refusal of a method that the project has no account for. It names the method that works.
func refuseMethod(s *settings.Settings) *verification.Error {
	switch {
	case s.Telegram != nil:
		return errOnlyTelegram
	case s.WhatsApp != nil:
		return errOnlyWhatsApp
	default:
		return errMethodNotConfigured
	}
}

// answerInit answers with the stored request and the link that opens the messenger.
func (x *exchange) answerInit(initiated verification.Initiated) {
	request := initiated.Request
	invitation := x.api.invite(x.settings, &request, initiated.Code)
	link := `","waLink":`
	if request.Method == verification.Telegram {
		link = `","tgLink":`
	}
	buffer := takeBuffer()
	body := *buffer
	body = append(body, `{"requestId":"`...)
	body = append(body, request.ID...)
	body = append(body, link...)
	body = appendString(body, invitation.Link)
	body = append(body, `,"expectedText":`...)
	body = appendString(body, invitation.ExpectedText)
	if invitation.PageURL != "" {
		body = append(body, `,"pageURL":`...)
		body = appendString(body, invitation.PageURL)
	}
	end := endOf(&request)
	body = append(body, `,"expiresIn":"`...)
	body = strconv.AppendInt(body, int64(x.expiresIn(initiated, end)/time.Second), 10)
	body = append(body, `s","expiresAt":`...)
	body = appendTime(body, end)
	body = appendCodeLength(body, &request)
	body = appendTest(body, &request)
	body = append(body, "}\n"...)
	x.sendAnswer(http.StatusOK, body)
	releaseBuffer(buffer, body)
}

// endOf returns when a request expires, or when it did: one that was declined or canceled, before its time.
func endOf(request *verification.Request) time.Time {
	end := request.EndsAt()
	if request.Phase == verification.Expired && request.Event().At.Before(end) {
		return request.Event().At
	}
	return end
}

// expiresIn returns the time until the request expires at end. For a new request this is its whole lifetime, so that a difference
// between the local clock and the store clock does not show; for a retry it is the time that is left.
func (x *exchange) expiresIn(initiated verification.Initiated, end time.Time) time.Duration {
	life := end.Sub(initiated.Request.CreatedAt)
	if !initiated.Existing {
		return life
	}
	if initiated.Request.Phase == verification.Expired {
		return 0
	}
	return min(max(end.Sub(x.api.clock.Now()), 0), life)
}
