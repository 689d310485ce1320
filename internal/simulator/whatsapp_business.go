package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// A WhatsApp Business account (WABA) here has one phone number. Messages reach an app only while it is subscribed to the account
// (Meta, "Manage webhooks"); what a token may do there, debug_token says (Meta, "Permissions", "Manage accounts").

const (
	permissionManagement = "whatsapp_business_management"
	permissionMessaging  = "whatsapp_business_messaging"
)

func (wa *whatsApp) serveBusinessAccount(w http.ResponseWriter, r *http.Request, id, edge, token string) {
	b, e := wa.findBusinessAccount(r, id, token)
	if e != nil {
		refuseGraph(w, e)
		return
	}
	switch {
	case edge == phoneNumbers && r.Method == http.MethodGet:
		wa.listPhoneNumbers(w, r, b)
	case edge == messageTemplates && r.Method == http.MethodGet:
		wa.listTemplates(w, r)
	case edge == subscribedApps && r.Method == http.MethodGet:
		wa.listSubscribedApps(w, b)
	case edge == subscribedApps && r.Method == http.MethodPost:
		wa.subscribeApp(w, r, b)
	case edge == subscribedApps && r.Method == http.MethodDelete:
		wa.changeSubscription(w, b, false, "")
	default:
		refuseGraph(w, unknownEdge(edge))
	}
}

// findBusinessAccount returns the account of the id of its business account.
func (wa *whatsApp) findBusinessAccount(r *http.Request, id, token string) (*business, *graphError) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	b := wa.findBusinessByWABA(id)
	if number, ok := strings.CutPrefix(id, wabaPrefix); b == nil && ok && phoneNumberID.MatchString(number) {
		made, f := wa.findOrAddBusiness(number)
		if f != nil {
			return nil, oauthError(http.StatusServiceUnavailable, 2, f.message)
		}
		if made.WABA == id {
			b = made
		}
	}
	if b == nil {
		return nil, unknownObject(r.Method, id)
	}
	wa.presentToken(b, token)
	return b, nil
}

// listPhoneNumbers answers the phone number of a business account.
func (wa *whatsApp) listPhoneNumbers(w http.ResponseWriter, r *http.Request, b *business) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	number, e := b.readFields(r.URL.Query().Get("fields"))
	if e != nil {
		refuseGraph(w, e)
		return
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"data": []any{number}, "paging": map[string]any{"cursors": map[string]string{"before": "QVFIUk", "after": "QVFIUm"}},
	})
}

// listSubscribedApps answers the apps that get the account's webhooks.
func (wa *whatsApp) listSubscribedApps(w http.ResponseWriter, b *business) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	apps := []any{}
	if b.Subscribed {
		id := b.appID()
		app := map[string]any{"whatsapp_business_api_data": map[string]string{
			"id": id, "name": b.title(), "link": "https://www.facebook.com/games/?app_id=" + id,
		}}
		if b.WABAOverride != "" {
			app["override_callback_uri"] = b.WABAOverride
		}
		apps = append(apps, app)
	}
	answerJSON(w, http.StatusOK, map[string]any{"data": apps})
}

// subscribeApp subscribes the app of the token, whose webhooks go to the override of the call, if it has one.
func (wa *whatsApp) subscribeApp(w http.ResponseWriter, r *http.Request, b *business) {
	var in struct {
		URL   string `json:"override_callback_uri"`
		Token string `json:"verify_token"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&in)
	if err != nil && !errors.Is(err, io.EOF) {
		refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) The body is not valid JSON."))
		return
	}
	if in.URL != "" {
		if e := wa.checkCallback(r.Context(), in.URL, in.Token); e != nil {
			refuseGraph(w, e)
			return
		}
	}
	wa.changeSubscription(w, b, true, in.URL)
}

func (wa *whatsApp) changeSubscription(w http.ResponseWriter, b *business, on bool, override string) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	b.Subscribed, b.WABAOverride = on, override
	wa.publish(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	answerJSON(w, http.StatusOK, map[string]bool{"success": true})
}

// appID returns the id of the app of the access token. A token that is rotated belongs to the same app.
func (b *business) appID() string {
	if account, ok := credentialOf(b.token); ok {
		return appIDOf(account)
	}
	return appIDOf(b.Number)
}

// appIDOf returns the id of the app whose tokens name an account.
func appIDOf(account string) string {
	sum := sha256.Sum256([]byte("app\x00" + account))
	const first = 100_000_000_000_000 // fifteen digits, as Meta's
	return strconv.FormatUint(first+binary.BigEndian.Uint64(sum[:])%(9*first), 10)
}

// granularScope is a permission and the business accounts that it was granted for; none for all of them.
type granularScope struct {
	Scope   string   `json:"scope"`
	Targets []string `json:"target_ids,omitempty"`
}

// debugToken answers what a token may do.
func (wa *whatsApp) debugToken(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("input_token")
	if token == "" {
		refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) The parameter input_token is required"))
		return
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if !wa.acceptsCredential(token) {
		answerJSON(w, http.StatusOK, map[string]any{"data": map[string]any{
			"error": map[string]any{"code": 190, "message": invalidToken}, "is_valid": false, "scopes": []string{},
		}})
		return
	}
	account, _ := credentialOf(token)
	targets := wa.targetsOf(token, account)
	answerJSON(w, http.StatusOK, map[string]any{"data": map[string]any{
		"app_id": appIDOf(account), "type": "SYSTEM_USER", "application": "Simulated app", "data_access_expires_at": 0, "expires_at": 0,
		"is_valid": true, "issued_at": wa.clock.Now().Unix(), "user_id": "122100000000000001",
		"scopes":          []string{permissionManagement, permissionMessaging, "public_profile"},
		"granular_scopes": []granularScope{{permissionManagement, targets}, {permissionMessaging, targets}},
	}})
}

// targetsOf returns the business accounts that a token may see. One is known from the first call to its number on.
func (wa *whatsApp) targetsOf(token, account string) []string {
	var targets []string
	for _, b := range wa.businesses {
		if b.token == token || b.Number != "" && b.Number == account {
			targets = append(targets, b.WABA)
		}
	}
	return targets
}
