package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A WhatsApp Business account (WABA) here has one phone number. Messages reach an app only while it is subscribed to the account
// (Meta, "Manage webhooks"); what a token may do there, debug_token says (Meta, "Permissions", "Manage accounts").

const (
	permissionManagement = "whatsapp_business_management"
	permissionMessaging  = "whatsapp_business_messaging"

	// otherPrefix and the id of a phone number make the id of the other business account that a token may see.
	otherPrefix = "11"
	// otherApp is the app that WhatsAppRules.OtherApp subscribes.
	otherApp = "670843887433847"
)

// businessAccount is what the id of a business account leads to.
type businessAccount struct {
	*business

	// other is true for the account that some tokens see beside that of the phone number.
	other bool
}

func (wa *whatsApp) serveBusinessAccount(w http.ResponseWriter, r *http.Request, id, edge, token string) {
	account, e := wa.findBusinessAccount(r, id, token)
	if e != nil {
		refuseGraph(w, e)
		return
	}
	switch {
	case edge == phoneNumbers && r.Method == http.MethodGet:
		wa.listPhoneNumbers(w, r, account)
	case edge == subscribedApps && r.Method == http.MethodGet:
		wa.listSubscribedApps(w, account)
	case edge == subscribedApps && r.Method == http.MethodPost:
		wa.subscribeApp(w, r, account)
	case edge == subscribedApps && r.Method == http.MethodDelete:
		wa.unsubscribeApp(w, account)
	default:
		refuseGraph(w, unknownEdge(edge))
	}
}

// findBusinessAccount returns the business account of an id, if the token may manage it.
func (wa *whatsApp) findBusinessAccount(r *http.Request, id, token string) (businessAccount, *graphError) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if number, ok := strings.CutPrefix(id, otherPrefix); ok {
		for _, b := range wa.businesses {
			if b.ID == number && slices.Contains([]string{TokenTwoTargets, TokenNoAccess}, b.Token) {
				return businessAccount{b, true}, nil
			}
		}
	}
	b := wa.findBusinessByWABA(id)
	if number, ok := strings.CutPrefix(id, wabaPrefix); b == nil && ok && phoneNumberID.MatchString(number) {
		made, f := wa.findOrAddBusiness(number)
		if f != nil {
			return businessAccount{}, oauthError(http.StatusServiceUnavailable, 2, f.message)
		}
		if made.WABA == id {
			b = made
		}
	}
	if b == nil {
		return businessAccount{}, unknownObject(r.Method, id)
	}
	wa.presentToken(b, token)
	switch b.Token {
	case TokenNoManagement:
		return businessAccount{}, oauthError(http.StatusForbidden, 10, "(#10) Application does not have permission for this action")
	case TokenNoAccess:
		return businessAccount{}, oauthError(http.StatusForbidden, 200, "(#200) Permissions error")
	default:
		return businessAccount{b, false}, nil
	}
}

// listPhoneNumbers answers the phone numbers of a business account.
func (wa *whatsApp) listPhoneNumbers(w http.ResponseWriter, r *http.Request, account businessAccount) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	b := account.business
	if account.other {
		b = &business{ID: "9" + b.ID, Number: "15550783881", Name: "Another number"}
	}
	fields := r.URL.Query().Get("fields")
	if fields == "" {
		fields = "verified_name,display_phone_number,id,quality_rating"
	}
	number, e := b.readFields(fields)
	if e != nil {
		refuseGraph(w, e)
		return
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"data": []any{number}, "paging": map[string]any{"cursors": map[string]string{"before": "QVFIUk", "after": "QVFIUm"}},
	})
}

// listSubscribedApps answers the apps that get the account's webhooks.
func (wa *whatsApp) listSubscribedApps(w http.ResponseWriter, account businessAccount) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	apps := []any{}
	if *account.OtherApp && !account.other {
		apps = append(apps, newSubscribedApp(otherApp, "Another app", ""))
	}
	if *account.Subscribed && !account.other {
		apps = append(apps, newSubscribedApp(account.appID(), account.title(), account.WABAOverride))
	}
	answerJSON(w, http.StatusOK, map[string]any{"data": apps})
}

func newSubscribedApp(id, name, override string) map[string]any {
	app := map[string]any{
		"whatsapp_business_api_data": map[string]string{"id": id, "name": name, "link": "https://www.facebook.com/games/?app_id=" + id},
	}
	if override != "" {
		app["override_callback_uri"] = override
	}
	return app
}

// subscribeApp subscribes the app of the token, whose webhooks go to the override of the call, if it has one.
func (wa *whatsApp) subscribeApp(w http.ResponseWriter, r *http.Request, account businessAccount) {
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
	wa.changeSubscription(w, account, true, in.URL)
}

func (wa *whatsApp) unsubscribeApp(w http.ResponseWriter, account businessAccount) {
	wa.changeSubscription(w, account, false, "")
}

// changeSubscription changes nothing for the account of which nothing is known but its id.
func (wa *whatsApp) changeSubscription(w http.ResponseWriter, account businessAccount, on bool, override string) {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if !account.other {
		account.Subscribed, account.WABAOverride = &on, override
		wa.publish(event{Type: "account", Platform: onWhatsApp, Account: account.ID})
	}
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
	scopes, granular := []string{permissionManagement, permissionMessaging, "public_profile"}, wa.grantsOf(token, account)
	if granular[0].Scope != permissionManagement {
		scopes = scopes[1:]
	}
	answerJSON(w, http.StatusOK, map[string]any{"data": map[string]any{
		"app_id": appIDOf(account), "type": "SYSTEM_USER", "application": "Simulated app", "data_access_expires_at": 0, "expires_at": 0,
		"is_valid": true, "issued_at": wa.clock.Now().Unix(), "scopes": scopes, "granular_scopes": granular, "user_id": "122100000000000001",
	}})
}

// grantsOf returns the permissions of a token for business accounts. An account is known from the first call to its number on.
func (wa *whatsApp) grantsOf(token, account string) []granularScope {
	var targets []string
	management := true
	for _, b := range wa.businesses {
		if b.token != token && (b.Number == "" || b.Number != account) {
			continue
		}
		switch b.Token {
		case TokenNoTargets:
			continue
		case TokenNoAccess:
			targets = append(targets, otherPrefix+b.ID)
			continue
		case TokenTwoTargets:
			targets = append(targets, otherPrefix+b.ID)
		case TokenNoManagement:
			management = false
		}
		targets = append(targets, b.WABA)
	}
	granted := []granularScope{{permissionMessaging, targets}}
	if management {
		granted = slices.Insert(granted, 0, granularScope{permissionManagement, targets})
	}
	return granted
}
