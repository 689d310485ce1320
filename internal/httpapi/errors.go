package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// The codes of the HTTP API, in addition to those of package verification.
const (
	// codeInvalidJSON (fix): the body is no JSON; the message has the byte.
	codeInvalidJSON verification.ErrorCode = "invalid_json"
	// codeInvalidType (fix): `field` has a value of another type.
	codeInvalidType verification.ErrorCode = "invalid_type"
	// codeMissingField (fix): `field` is required.
	codeMissingField verification.ErrorCode = "missing_field"
	// codeMissingParameter (fix): the query parameter in `field` is required.
	codeMissingParameter verification.ErrorCode = "missing_parameter"
	// codeInvalidParameter (fix): the query parameter in `field` has a wrong value, or there is none of that name.
	codeInvalidParameter verification.ErrorCode = "invalid_parameter"
	// codeIncompleteBody (retry): the body did not arrive as a whole.
	codeIncompleteBody verification.ErrorCode = "incomplete_body"
	// codeMissingKey (fix): the header is `Authorization: Bearer API_KEY`.
	codeMissingKey verification.ErrorCode = "missing_api_key"
	// codeMalformedKey (fix): the header has another form, or the key has a space or line break inside.
	codeMalformedKey verification.ErrorCode = "malformed_authorization"
	// codeUnknownKey (fix): the key is another project's, or was removed.
	codeUnknownKey verification.ErrorCode = "unknown_api_key"
	// codeExpiredKey (fix): the time in the key's `expiresAt` is over.
	codeExpiredKey verification.ErrorCode = "expired_api_key"
	// codeInvalidSignature (fix): `key` must name an entry with `signingSecretRef`, whose secret signed this very body within 300 s; look
	// at both clocks.
	codeInvalidSignature verification.ErrorCode = "invalid_signature"
	// codeInsufficientScope (fix): the message names the scope that the key lacks.
	codeInsufficientScope verification.ErrorCode = "insufficient_scope"
	// codeRouteNotFound (fix): the base address, often with a slash too many, or the path.
	codeRouteNotFound verification.ErrorCode = "not_found"
	// codeMethodNotAllowed (fix): the HTTP method.
	codeMethodNotAllowed verification.ErrorCode = "method_not_allowed"
	// codeBodyTimeout (retry): the body did not arrive in time.
	codeBodyTimeout verification.ErrorCode = "body_timeout"
	// codeBodyTooLarge (fix): at most 8 KiB, or 64 KiB where an identity server signs.
	codeBodyTooLarge verification.ErrorCode = "body_too_large"
	// codeMediaType (fix): JSON in UTF-8, with `Content-Type: application/json`.
	codeMediaType verification.ErrorCode = "unsupported_media_type"
	// codeContentEncoding (fix): not compressed.
	codeContentEncoding verification.ErrorCode = "unsupported_content_encoding"
	// codeInternal (retry): it is not known whether the call was carried out: init with the same `Idempotency-Key` never starts two
	// verifications. If it lasts: fix.
	codeInternal verification.ErrorCode = "internal"
	// codeSuspended (fix): its owner suspended it.
	codeSuspended verification.ErrorCode = "project_suspended"
	// codeKeysUnavailable (retry): the key is unknown, and the Secret of one went within the last ten minutes or awaits a rollout; then
	// 401. With `format`: the entry's Secret cannot be used.
	codeKeysUnavailable verification.ErrorCode = "keys_unavailable"
	// codeInvalidReturnURL (fix): one of `spec.page.returnURLs`.
	codeInvalidReturnURL verification.ErrorCode = "invalid_return_url"
	// codeClientGone is only logged and counted: the client has disconnected and cannot read it.
	codeClientGone verification.ErrorCode = "client_gone"
)

// statusClientGone is the status that access logs use for a client that closed the connection; no standard defines one.
const statusClientGone = 499

// statuses maps codes to statuses. A test checks that api/openapi.yaml has the same codes.
var statuses = map[verification.ErrorCode]int{
	codeInvalidJSON:                       http.StatusBadRequest,
	codeInvalidType:                       http.StatusBadRequest,
	codeMissingField:                      http.StatusBadRequest,
	codeMissingParameter:                  http.StatusBadRequest,
	codeInvalidParameter:                  http.StatusBadRequest,
	codeIncompleteBody:                    http.StatusBadRequest,
	verification.CodeInvalidPhoneNumber:   http.StatusBadRequest,
	verification.CodeOwnNumber:            http.StatusBadRequest,
	verification.CodeNoTestNumber:         http.StatusBadRequest,
	verification.CodeInvalidMethod:        http.StatusBadRequest,
	verification.CodeMethodNotConfigured:  http.StatusBadRequest,
	verification.CodeInvalidSubject:       http.StatusBadRequest,
	verification.CodeInvalidReference:     http.StatusBadRequest,
	verification.CodeInvalidMetadata:      http.StatusBadRequest,
	verification.CodeInvalidLocale:        http.StatusBadRequest,
	codeInvalidReturnURL:                  http.StatusBadRequest,
	verification.CodeInvalidAssurance:     http.StatusBadRequest,
	verification.CodeInvalidPurpose:       http.StatusBadRequest,
	verification.CodeInvalidBrowser:       http.StatusBadRequest,
	verification.CodeInvalidCode:          http.StatusBadRequest,
	verification.CodeInvalidDeliver:       http.StatusBadRequest,
	verification.CodeCodesNotConfigured:   http.StatusBadRequest,
	verification.CodeCountryRefused:       http.StatusBadRequest,
	verification.CodeInvalidIdempotency:   http.StatusBadRequest,
	codeMissingKey:                        http.StatusUnauthorized,
	codeMalformedKey:                      http.StatusUnauthorized,
	codeUnknownKey:                        http.StatusUnauthorized,
	codeExpiredKey:                        http.StatusUnauthorized,
	codeInvalidSignature:                  http.StatusUnauthorized,
	codeInsufficientScope:                 http.StatusForbidden,
	codeRouteNotFound:                     http.StatusNotFound,
	verification.CodeNotFound:             http.StatusNotFound,
	codeMethodNotAllowed:                  http.StatusMethodNotAllowed,
	codeBodyTimeout:                       http.StatusRequestTimeout,
	verification.CodeNotProven:            http.StatusConflict,
	verification.CodeAlreadyConfirmed:     http.StatusConflict,
	verification.CodeRequestExpired:       http.StatusConflict,
	verification.CodeNoConfirmation:       http.StatusConflict,
	verification.CodeAlreadyVerified:      http.StatusConflict,
	verification.CodeNoEvent:              http.StatusConflict,
	codeBodyTooLarge:                      http.StatusRequestEntityTooLarge,
	codeMediaType:                         http.StatusUnsupportedMediaType,
	codeContentEncoding:                   http.StatusUnsupportedMediaType,
	verification.CodeIdempotencyKeyReused: http.StatusUnprocessableEntity,
	verification.CodeWrongCode:            http.StatusUnprocessableEntity,
	verification.CodeRateLimited:          http.StatusTooManyRequests,
	verification.CodeTooManyStored:        http.StatusTooManyRequests,
	verification.CodeCodesLimited:         http.StatusTooManyRequests,
	codeInternal:                          http.StatusInternalServerError,
	verification.CodeStoreUnavailable:     http.StatusServiceUnavailable,
	verification.CodeChannelNotReady:      http.StatusServiceUnavailable,
	verification.CodeCodesBusy:            http.StatusServiceUnavailable,
	codeSuspended:                         http.StatusServiceUnavailable,
	codeKeysUnavailable:                   http.StatusServiceUnavailable,
}

// Errors whose text never changes, allocated once.
var (
	errMissingKey = newError(codeMissingKey, "",
		"No API key was presented. Send the header Authorization: Bearer API_KEY. A key in the URL is not accepted.")
	errMalformedKey = newError(codeMalformedKey, "",
		"The Authorization header cannot be read. Send exactly one, with the word Bearer, a space and the API key.")
	errUnknownKey = newError(codeUnknownKey, "",
		"The API key is not known to this project. Check that it is complete, belongs to this address and was not revoked.")
	errKeysUnavailable = newRetryableError(codeKeysUnavailable, retryChannel,
		"The API key is not known, and may be one whose Secret is missing or not in the server's pods yet. Try again later.")
	errExpiredKey = newError(codeExpiredKey, "",
		"The API key is expired. Use a newer one.")
	errScopeInit = newError(codeInsufficientScope, "",
		"The API key may not start, confirm or cancel verifications: its scopes lack Init.")
	errScopeStatus = newError(codeInsufficientScope, "",
		"The API key may not read the status of verifications: its scopes lack Status.")
	errScopeRead = newError(codeInsufficientScope, "",
		"The API key may not list verifications: its scopes lack Read.")
	errScopeManual = newError(codeInsufficientScope, fieldRequestID,
		"The API key may not change verifications that init did not start: its scopes lack Read.")
	errScopeRedeliver = newError(codeInsufficientScope, "",
		"The API key may not send events once more: its scopes lack Redeliver.")

	errScopeDeliver = newError(codeInsufficientScope, fieldDeliver,
		"The API key may not have codes sent: its scopes lack Deliver. Leave deliver out, or use a key with that scope.")

	errScopeDelivery = newError(codeInsufficientScope, "",
		"The API key may not have codes sent: its scopes lack Deliver.")
	errSignature = newError(codeInvalidSignature, "",
		"The call is not signed with the secret of the API key that the parameter key names, or was signed more than 300 seconds ago.")
	errFormatParameter = newError(codeInvalidParameter, "format",
		"With format, which is zitadel or supabase, the query has key, and may have method and locale, each once and nothing else.")
	errMissingDeliveryCode = newError(codeMissingField, fieldCode,
		"code is required: the code that is to be sent to the number.")
	errDeliveryCode = newError(verification.CodeInvalidCode, fieldCode,
		"code must have 4 to 10 digits. With codeLetters: true for the API key it may have capital letters from A to Z, too.")
	errKeyDeliveryRate = newRetryableError(verification.CodeRateLimited, retryStatus,
		"This API key has codes delivered too often. Wait for the time in Retry-After.")
	errDeliveryRate = verification.CodesLimited(verification.LimitCodeNumber, retryDelivery) // as for any other code to the number
	errGatewayCode  = newError(verification.CodeInvalidCode, fieldCode,
		"Telegram delivers codes of 4 to 8 digits, and no letters.")

	errRouteNotFound = newError(codeRouteNotFound, "",
		"Nothing is served at this path. The operations are in /openapi.json; paths must match exactly.")
	errMethodNotAllowed = newError(codeMethodNotAllowed, "",
		"This path does not take this HTTP method. The header Allow names what it takes.")

	errMediaType = newError(codeMediaType, "Content-Type",
		"The body must be JSON. Send the header Content-Type: application/json, with no charset but utf-8.")
	errContentEncoding = newError(codeContentEncoding, "Content-Encoding",
		"Compressed bodies are not accepted. Send the JSON as it is, without Content-Encoding.")
	errBodyTooLarge = newError(codeBodyTooLarge, "",
		"The body is larger than 8 KiB.")
	errSignedTooLarge = newError(codeBodyTooLarge, "",
		"The body is larger than 64 KiB.")
	errBodyTimeout = newError(codeBodyTimeout, "",
		"The body did not arrive in time.")
	errIncompleteBody = newError(codeIncompleteBody, "",
		"The body ended before its announced length, or its chunks cannot be read.")

	errMissingNumber = newError(codeMissingField, "phoneNumber",
		"phoneNumber is required: a phone number with its country code. Field names are case-sensitive.")
	errMissingSubject = newError(codeMissingField, "subject",
		"subject is required by this project: your user's id, or the IPv4 address or IPv6 /64 that your own proxy saw.")
	errSubject = newError(verification.CodeInvalidSubject, "subject",
		"subject must have 1 to 128 characters.")
	errReference = newError(verification.CodeInvalidReference, fieldReference,
		"reference must be one line of 1 to 128 characters, without control characters or marks of text direction.")
	errNoPage = newError(codeInvalidReturnURL, fieldReturnURL,
		"This project has no page that could lead back: it needs spec.page.")
	errAssurance = newError(verification.CodeInvalidAssurance, fieldAssurance,
		"assurance must be SESSION or POSSESSION, in capitals. Leave it out for what the project asks for.")
	errLowerAssurance = newError(verification.CodeInvalidAssurance, fieldAssurance,
		"This project asks for SESSION, which init cannot lower. Leave assurance out.")
	errNoReplies = newError(verification.CodeInvalidAssurance, fieldAssurance,
		"This project sends no replies, which bring the session code. Have replies.send set to Always or OnTrouble, or leave assurance out.")
	errBrowser = newError(verification.CodeInvalidBrowser, fieldBrowser,
		"browser must be one of those that the OpenAPI document lists, such as CHROME/WINDOWS.")
	errDeliver = newError(verification.CodeInvalidDeliver, fieldDeliver,
		"deliver must be CODE, in capitals. Leave it out to have nothing sent to the number.")
	errDeliverAssurance = newError(verification.CodeInvalidAssurance, fieldAssurance,
		"With deliver the assurance is SESSION, which init cannot lower. Leave assurance out.")
	errCountryRefused = newError(verification.CodeCountryRefused, fieldPhoneNumber,
		"This project sends no codes to numbers of this country, or of this kind.")
	errMetadataType = newError(codeInvalidType, fieldMetadata,
		"metadata must be an object whose values are strings.")
	errMetadataRepeated = newError(codeInvalidJSON, fieldMetadata,
		"The body cannot be read: metadata has a key more than once.")
	errMetadataPairs = newError(verification.CodeInvalidMetadata, fieldMetadata,
		"metadata must have at most 16 pairs.")
	errMetadataKey = newError(verification.CodeInvalidMetadata, fieldMetadata,
		"metadata must have keys of 1 to 64 of the characters A-Z a-z 0-9 _ . -.")
	errMetadataValue = newError(verification.CodeInvalidMetadata, fieldMetadata,
		"metadata must have values without control characters, such as line feeds.")
	errMetadataSize = newError(verification.CodeInvalidMetadata, fieldMetadata,
		"metadata must have at most 1,024 bytes of UTF-8 in all keys and values together.")
	errLocale = newError(verification.CodeInvalidLocale, fieldLocale,
		"locale must be a language tag (BCP 47) of at most 35 characters, such as es or pt-BR.")
	errMethod = newError(verification.CodeInvalidMethod, "method",
		"method must be WHATSAPP or TELEGRAM, in capitals. Leave it out for WHATSAPP.")
	errMethodNotConfigured = newError(verification.CodeMethodNotConfigured, "method",
		"This project has no account for this method. Choose the other one, or have the account added to the project.")
	errOnlyTelegram = newError(verification.CodeMethodNotConfigured, "method",
		`This project does not use WHATSAPP; send "method": "TELEGRAM".`)
	errOnlyWhatsApp = newError(verification.CodeMethodNotConfigured, "method",
		`This project does not use TELEGRAM; send "method": "WHATSAPP".`)
	errOwnNumber = newError(verification.CodeOwnNumber, "phoneNumber",
		"phoneNumber is the number that this project itself receives messages at. Give the number of your user.")
	errChannelNotReady = newRetryableError(verification.CodeChannelNotReady, retryChannel,
		"The project's account for this method cannot be used right now. Try again later, or choose the other method.")
	errStoreTimeout = newRetryableError(verification.CodeStoreUnavailable, retryStore,
		"The service's storage did not answer in time. Try again; an Idempotency-Key makes that safe for init.")
	errSuspended = newRetryableError(codeSuspended, retrySuspended,
		"This project is suspended and starts no verifications.")
	errIdempotencyRepeated = newError(verification.CodeInvalidIdempotency, "Idempotency-Key",
		"Send the Idempotency-Key header only once.")

	errMissingRequestID = newError(codeMissingField, fieldRequestID,
		"requestId is required: the requestId that init answered.")
	errMissingCode = newError(codeMissingField, fieldCode,
		"code is required: the digits that your user typed, or the code that came with the return to you.")
	errInvalidCode = newError(verification.CodeInvalidCode, fieldCode,
		"code must be six digits, eight if a code was sent to the number, or the 22 characters of the parameter code of the return. "+
			"It was not counted as a try.")

	errListStatus = newError(codeInvalidParameter, "status",
		"status must be PENDING, VERIFIED or EXPIRED, in capitals, and may be given once.")
	errListReference = newError(codeInvalidParameter, "reference",
		"reference must be one line of 1 to 128 characters, as init takes it, and may be given once.")
	errListSince = newError(codeInvalidParameter, "since",
		"since must be a time in RFC 3339, such as 2027-01-31T09:30:00Z, and may be given once.")
	errListKind = newError(codeInvalidParameter, "kind",
		"kind must be DELIVERY, in capitals, and may be given once. Leave it out for verifications.")
	errListLimit = newError(codeInvalidParameter, "limit",
		"limit must be a whole number from 1 to 200, and may be given once.")
	errListCursor = newError(codeInvalidParameter, "cursor",
		"cursor must be the nextCursor of an answer with the same filters, and may be given once.")
	errListParameter = newError(codeInvalidParameter, "",
		"The query has a parameter that this path does not know. It knows status, reference, since, kind, limit and cursor. "+
			"To look for a phone number send it to POST /api/verify/requests/find.")
	errNoParameters = newError(codeInvalidParameter, "",
		"The query has a parameter, and this path takes none.")
	errListRate = newRetryableError(verification.CodeRateLimited, retryStatus,
		"This API key reads too often. Wait for the time in Retry-After; a list counts as ten reads.")

	errMissingID = newError(codeMissingParameter, "id",
		"The query parameter id is required: the requestId that init answered.")
	errRepeatedID = newError(codeInvalidParameter, "id",
		"The query parameter id was given more than once.")
	errStatusRate = newRetryableError(verification.CodeRateLimited, retryStatus,
		"This API key reads too often. Wait for the time in Retry-After; wait=20s needs fewer reads.")
	errRedeliveryRate = newRetryableError(verification.CodeRateLimited, retryStatus,
		"This API key redelivers too often. Wait for the time in Retry-After; ten events a second are sent once more.")
	errRetryRate = newRetryableError(verification.CodeRateLimited, retryStatus,
		"This API key retries too often. Wait for the time in Retry-After; a first try that was answered needs no other.")
	errWait = newError(codeInvalidParameter, "wait",
		"wait must be whole seconds from 0s to 30s, such as 20s, and may be given once.")
	errHint = newError(codeInvalidParameter, "hint",
		"hint must be the hint of an answer, such as OTHER_NUMBER, or empty for none, and may be given once.")
	errQuery = newError(codeInvalidParameter, "",
		"The query cannot be read: a percent sign must be followed by two hexadecimal digits.")

	errInternal   = newError(codeInternal, "", "Something went wrong on our side. Try again; if it lasts, quote the X-Request-Id.")
	errClientGone = newError(codeClientGone, "", "The client closed the connection.")
)

func newError(code verification.ErrorCode, field, message string) *verification.Error {
	return &verification.Error{Code: code, Field: field, Message: message}
}

func newRetryableError(code verification.ErrorCode, after time.Duration, message string) *verification.Error {
	return &verification.Error{Code: code, Message: message, RetryAfter: after}
}

// scopeErrors are the answers to keys that lack a scope.
var scopeErrors = map[settings.Scope]*verification.Error{
	settings.ScopeInit: errScopeInit, settings.ScopeStatus: errScopeStatus,
	settings.ScopeRead: errScopeRead, settings.ScopeRedeliver: errScopeRedeliver, settings.ScopeDeliver: errScopeDelivery,
}

// newPurposeError returns the error for a purpose that is none of the project's.
func newPurposeError(allowed map[string]settings.Purpose) *verification.Error {
	message := "This project has no spec.purposes. Leave purpose out."
	if len(allowed) > 0 {
		message = "purpose must be one of spec.purposes of the project: " + listAllowed(slices.Collect(maps.Keys(allowed))) + "."
	}
	return newError(verification.CodeInvalidPurpose, fieldPurpose, message)
}

// newReturnURLError returns the error for a URL that the page may not lead back to.
func newReturnURLError(allowed []string) *verification.Error {
	message := "This project has no spec.page.returnURLs. Leave returnURL out."
	if len(allowed) > 0 {
		message = "returnURL must be a URL of ASCII characters without a fragment that is one of spec.page.returnURLs of the project, " +
			"or below an origin of them: " + listAllowed(allowed) + "."
	}
	return newError(codeInvalidReturnURL, fieldReturnURL, message)
}

// maxListed limits the values that an error lists.
const maxListed = 10

// listAllowed returns the values in order, and how many there are beyond maxListed.
func listAllowed(values []string) string {
	listed := slices.Sorted(slices.Values(values))
	if more := len(listed) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(listed[:maxListed], ", "), more)
	}
	return strings.Join(listed, ", ")
}

// newNumberError returns the error for an invalid phone number, with the reason of internal/phone.
func newNumberError(err error) error {
	refused := newError(verification.CodeInvalidPhoneNumber, "phoneNumber", "phoneNumber cannot be verified.")
	if reason, ok := errors.AsType[*phone.Error](err); ok {
		refused.Message, refused.Reason = "phoneNumber: "+reason.Error()+".", string(reason.Reason)
	}
	return refused
}

// publicError returns the error to answer for err, and the cause to log; the cause is nil if there is nothing to log.
func publicError(ctx context.Context, err error) (shown *verification.Error, cause error) {
	var known *verification.Error
	isKnown := errors.As(err, &known) && statuses[known.Code] != 0
	switch {
	case isKnown && statuses[known.Code] < http.StatusInternalServerError:
		return known, nil
	case ctx.Err() != nil: // The client disconnected, which cancelled the operation.
		return errClientGone, nil
	case isKnown:
		return known, known.Err
	case errors.Is(err, context.DeadlineExceeded): // The store did not answer within storeTimeout.
		return errStoreTimeout, err
	default:
		return errInternal, err
	}
}

// statusOf returns the HTTP status of a code.
func statusOf(code verification.ErrorCode) int {
	if code == codeClientGone {
		return statusClientGone
	}
	return statuses[code]
}
