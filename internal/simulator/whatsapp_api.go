package simulator

import (
	"context"
	"crypto/rand"
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

// The Graph API, as far as the Cloud API's phone numbers go: GET and POST /{PHONE_NUMBER_ID}, POST
// /{PHONE_NUMBER_ID}/messages. The errors have the form and the codes of Meta's ("Handling errors", "Error codes").

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
	method := "phone_number"
	switch {
	case edge == "messages":
		method = edge
	case r.Method == http.MethodPost:
		method = "callback"
	}
	b, e := wa.graphAccount(r, id, method)
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
		refuseGraph(w, oauthError(http.StatusBadRequest, 2500, "Unknown path components: /"+edge))
	}
}

// graphAccount returns the account that a call is for. Meta looks at the token first, and answers the same for an id that the
// token may not see and one that does not exist.
func (wa *whatsApp) graphAccount(r *http.Request, id, method string) (*business, *graphError) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.URL.Query().Get("access_token")
	}
	if token == "" {
		return nil, oauthError(http.StatusUnauthorized, 104, "An access token is required to request this resource.")
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if !wa.acceptsCredential(token) {
		return nil, oauthError(http.StatusUnauthorized, 190, "Invalid OAuth access token - Cannot parse access token")
	}
	if f := wa.faultFor(onWhatsApp, method); f != nil {
		return nil, faultError(f)
	}
	if !phoneNumberID.MatchString(id) {
		return nil, &graphError{
			status: http.StatusBadRequest, Type: "GraphMethodException", Code: 100, Subcode: 33,
			Message: "Unsupported " + strings.ToLower(r.Method) + " request. Object with ID '" + id + "' does not exist, cannot be loaded " +
				"due to missing permissions, or does not support this operation.",
		}
	}
	b, f := wa.findOrAddBusiness(id)
	if f != nil {
		return nil, oauthError(http.StatusServiceUnavailable, 2, f.message)
	}
	b.token = token
	if digits, _ := credentialOf(token); b.Number == "" && waDigits.MatchString(digits) {
		b.Number = digits
		wa.publish(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	}
	return b, nil
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
	callbacks := map[string]string{}
	if b.Override != "" {
		callbacks["phone_number"] = b.Override
	}
	if b.App != "" {
		callbacks["application"] = b.App
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
	asked := r.URL.Query().Get("fields")
	if asked == "" {
		asked = "verified_name,display_phone_number,quality_rating"
	}
	out := map[string]any{"id": b.ID}
	for name := range strings.SplitSeq(asked, ",") {
		if v, ok := fields[name]; ok {
			out[name] = v
		} else if name != "id" {
			refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) Tried accessing nonexisting field ("+name+")"))
			return
		}
	}
	answerJSON(w, http.StatusOK, out)
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
