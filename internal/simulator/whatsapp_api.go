package simulator

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The Graph API, as far as the Cloud API's phone numbers and business accounts go: GET and POST /{PHONE_NUMBER_ID}, POST
// /{PHONE_NUMBER_ID}/messages, GET, POST and DELETE /{WABA_ID}/subscribed_apps, GET /{WABA_ID}/phone_numbers and /message_templates, GET
// /debug_token.
// The errors have the form and the codes of Meta's ("Handling errors", "Error codes").

var graphVersion = regexp.MustCompile(`^v[0-9]{1,3}\.[0-9]$`)

// graphError is an answer that says no.
type graphError struct {
	status  int
	Message string            `json:"message"`
	Type    string            `json:"type"`
	Code    int               `json:"code"`
	Subcode int               `json:"error_subcode,omitempty"`
	Data    map[string]string `json:"error_data,omitempty"`
	Trace   string            `json:"fbtrace_id"`
}

func oauthError(status, code int, message string) *graphError {
	return &graphError{status: status, Message: message, Type: "OAuthException", Code: code}
}

func parameterError(message string) *graphError {
	e := oauthError(http.StatusBadRequest, 100, "(#100) "+message)
	e.Data = map[string]string{"messaging_product": "whatsapp", "details": message}
	return e
}

func refuseGraph(w http.ResponseWriter, e *graphError) {
	e.Trace = rand.Text()[:23]
	if e.Code == 190 {
		w.Header().Set("WWW-Authenticate", `OAuth "Facebook Platform" "invalid_token" "`+e.Message+`"`)
	}
	answerJSON(w, e.status, map[string]any{"error": e})
}

func (wa *whatsApp) serveGraph(w http.ResponseWriter, r *http.Request, path string) {
	id, edge, _ := strings.Cut(path, "/")
	token, e := wa.authenticateCall(r, graphOperation(r.Method, id, edge))
	if e != nil {
		refuseGraph(w, e)
		return
	}
	switch {
	case id == debugToken && edge == "" && r.Method == http.MethodGet:
		wa.debugToken(w, r)
	case edge == subscribedApps || edge == phoneNumbers || edge == messageTemplates:
		wa.serveBusinessAccount(w, r, id, edge, token)
	default:
		wa.servePhoneNumber(w, r, id, edge, token)
	}
}

// The edges of a business account, and the endpoint that describes a token.
const (
	subscribedApps   = "subscribed_apps"
	phoneNumbers     = "phone_numbers"
	messageTemplates = "message_templates"
	debugToken       = "debug_token"
)

// graphOperation returns what faults call a call.
func graphOperation(method, id, edge string) string {
	switch {
	case id == debugToken && edge == "":
		return debugToken
	case edge == "messages" || edge == subscribedApps || edge == phoneNumbers || edge == messageTemplates:
		return edge
	case method == http.MethodPost:
		return "callback"
	default:
		return "phone_number"
	}
}

func (wa *whatsApp) servePhoneNumber(w http.ResponseWriter, r *http.Request, id, edge, token string) {
	b, e := wa.findPhoneNumber(r, id, token)
	if e != nil {
		refuseGraph(w, e)
		return
	}
	switch {
	case edge == "" && r.Method == http.MethodGet:
		wa.getPhoneNumber(w, r, b)
	case edge == "" && r.Method == http.MethodPost:
		wa.setCallback(w, r, b)
	case edge == "messages" && r.Method == http.MethodPost:
		wa.postMessage(w, r, b)
	default:
		refuseGraph(w, unknownEdge(edge))
	}
}

func unknownEdge(edge string) *graphError {
	return oauthError(http.StatusBadRequest, 2500, "Unknown path components: /"+edge)
}

// authenticateCall returns the token of a call. Meta looks at it first.
func (wa *whatsApp) authenticateCall(r *http.Request, operation string) (string, *graphError) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.URL.Query().Get("access_token")
	}
	if token == "" {
		return "", oauthError(http.StatusUnauthorized, 104, "An access token is required to request this resource.")
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if !wa.acceptsCredential(token) {
		return "", oauthError(http.StatusUnauthorized, 190, invalidToken)
	}
	if f := wa.faultFor(onWhatsApp, operation); f != nil {
		return "", faultError(f)
	}
	return token, nil
}

const invalidToken = "Invalid OAuth access token - Cannot parse access token" //nolint:gosec // Meta's words

// findPhoneNumber returns the account that a call is for.
func (wa *whatsApp) findPhoneNumber(r *http.Request, id, token string) (*business, *graphError) {
	if !phoneNumberID.MatchString(id) {
		return nil, unknownObject(r.Method, id)
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	b, f := wa.findOrAddBusiness(id)
	if f != nil {
		return nil, oauthError(http.StatusServiceUnavailable, 2, f.message)
	}
	wa.presentToken(b, token)
	if proof := r.URL.Query().Get("appsecret_proof"); proof != "" && !b.isProof(proof, token) {
		return nil, &graphError{
			status: http.StatusBadRequest, Type: "GraphMethodException", Code: 100,
			Message: "Invalid appsecret_proof provided in the API argument",
		}
	}
	return b, nil
}

// isProof reports whether a proof was made of the token with the secret of the app ("Secure Graph API calls").
func (b *business) isProof(proof, token string) bool {
	mac := hmac.New(sha256.New, []byte(b.secret()))
	mac.Write([]byte(token))
	return hmac.Equal([]byte(proof), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// unknownObject is Meta's answer both for an id that the token may not see and for one that does not exist.
func unknownObject(method, id string) *graphError {
	return &graphError{
		status: http.StatusBadRequest, Type: "GraphMethodException", Code: 100, Subcode: 33,
		Message: "Unsupported " + strings.ToLower(method) + " request. Object with ID '" + id + "' does not exist, cannot be loaded " +
			"due to missing permissions, or does not support this operation.",
	}
}

func faultError(f *fault) *graphError {
	switch {
	case f.Status == http.StatusTooManyRequests:
		return oauthError(http.StatusBadRequest, 130429, "(#130429) Rate limit hit")
	case f.Status == http.StatusUnauthorized:
		return oauthError(http.StatusUnauthorized, 190, "Error validating access token: Session has expired")
	case f.Status >= http.StatusInternalServerError:
		return oauthError(f.Status, 131000, "(#131000) Something went wrong")
	default:
		return oauthError(f.Status, 100, "(#100) Invalid parameter")
	}
}

// getPhoneNumber answers the fields that are asked for.
func (wa *whatsApp) getPhoneNumber(w http.ResponseWriter, r *http.Request, b *business) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	out, e := b.readFields(r.URL.Query().Get("fields"))
	if e != nil {
		refuseGraph(w, e)
		return
	}
	answerJSON(w, http.StatusOK, out)
}

// readFields returns the fields of a phone number that a list with commas names, and its id.
func (b *business) readFields(asked string) (map[string]any, *graphError) {
	callbacks := map[string]string{}
	for level, to := range map[string]string{
		"phone_number": b.Override, "whatsapp_business_account": b.WABAOverride, "application": b.App,
	} {
		if to != "" {
			callbacks[level] = to
		}
	}
	fields := map[string]any{
		"display_phone_number":     "+" + b.Number,
		"verified_name":            b.title(),
		"quality_rating":           "GREEN",
		"status":                   "CONNECTED",
		"code_verification_status": "VERIFIED",
		"platform_type":            "CLOUD_API",
		"webhook_configuration":    callbacks,
	}
	out := map[string]any{"id": b.ID}
	for name := range strings.SplitSeq(cmp.Or(asked, "verified_name,display_phone_number,quality_rating"), ",") {
		if v, ok := fields[name]; ok {
			out[name] = v
		} else if name != "id" {
			return nil, oauthError(http.StatusBadRequest, 100, "(#100) Tried accessing nonexisting field ("+name+")")
		}
	}
	return out, nil
}

// setCallback sets or removes the override of the number, after the handshake that Meta makes.
func (wa *whatsApp) setCallback(w http.ResponseWriter, r *http.Request, b *business) {
	var in struct {
		Configuration *struct {
			URL   string `json:"override_callback_uri"`
			Token string `json:"verify_token"`
		} `json:"webhook_configuration"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&in); err != nil || in.Configuration == nil {
		refuseGraph(w, parameterError("The parameter webhook_configuration is required."))
		return
	}
	to := in.Configuration.URL
	if to != "" {
		if e := wa.checkCallback(r.Context(), to, in.Configuration.Token); e != nil {
			refuseGraph(w, e)
			return
		}
	}
	wa.mu.Lock()
	b.Override = to
	wa.publish(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	wa.mu.Unlock()
	answerJSON(w, http.StatusOK, map[string]bool{"success": true})
}

func (wa *whatsApp) checkCallback(ctx context.Context, to, token string) *graphError {
	switch {
	case !isCallbackURL(to) || !strings.HasPrefix(to, "https://") || len(to) > 200:
		return parameterError("override_callback_uri must be an https URL of at most 200 characters.")
	case token == "":
		return parameterError("The parameter verify_token is required.")
	}
	if why := wa.shakeHands(ctx, to, token); why != nil {
		return oauthError(http.StatusBadRequest, 2200, "(#2200) Callback verification failed with the following errors: "+why.Error())
	}
	return nil
}

// shakeHands asks a callback for the challenge (Meta, "Create a webhook endpoint").
func (wa *whatsApp) shakeHands(ctx context.Context, to, token string) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	challenge := strconv.FormatInt(wa.clock.Now().UnixNano()%int64(10*time.Second), 10)
	if to = wa.redirect(to); to == "" {
		return errors.New(notReachableReason)
	}
	u, err := url.Parse(to)
	if err != nil {
		return errors.New("the URL cannot be read")
	}
	query := u.Query()
	query.Set("hub.mode", "subscribe")
	query.Set("hub.challenge", challenge)
	query.Set("hub.verify_token", token)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return errors.New("the URL cannot be read")
	}
	request.Header.Set("User-Agent", "facebookplatform/1.0 (+http://developers.facebook.com)")
	response, err := wa.client.Do(request)
	if err != nil {
		return errors.New(describeError(err))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	switch {
	case err != nil:
		return errors.New(describeError(err))
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("HTTP Status Code = %d; HTTP Message = %s", response.StatusCode, http.StatusText(response.StatusCode))
	case string(body) != challenge:
		return errors.New("Response does not match challenge") //nolint:staticcheck // Meta's words
	default:
		return nil
	}
}
