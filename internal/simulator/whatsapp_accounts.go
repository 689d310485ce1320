package simulator

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// credentialOf returns the account that a credential names: the digits of the number, or the bot's username. After a colon is
// whatever distinguishes two credentials of one account.
func credentialOf(credential string) (account string, ok bool) {
	rest, ok := strings.CutPrefix(credential, settings.SimulatorPrefix)
	account, _, _ = strings.Cut(rest, ":")
	return account, ok
}

// WhatsAppAccount is a WhatsApp account as its owner sets it in Meta's dashboard.
type WhatsAppAccount struct {
	// PhoneNumberID is Meta's id of the number.
	PhoneNumberID string `json:"phoneNumberID"`
	// Number is the business number in E.164. If empty, the access token names it.
	Number string `json:"number,omitempty"`
	// Name is what users see; the number if empty.
	Name string `json:"name,omitempty"`
	// AppSecret signs the webhooks. If empty, the access token does.
	AppSecret string `json:"appSecret,omitempty"`
	// Callback is where webhooks go unless the server overrides it: that of the app.
	Callback string `json:"callback,omitempty"`
	// BusinessAccountID is that of the WhatsApp Business account. If empty, 10 and the PhoneNumberID make it.
	BusinessAccountID string `json:"businessAccountID,omitempty"`
	// Subscribed is whether the app of the access token is subscribed to the business account; true if never set. No webhook of
	// a message or a status is posted while it is not.
	Subscribed *bool `json:"subscribed,omitempty"`
	// FailWith is the code with which every message fails, such as 131030 for a number that is not in the list of Meta's test number;
	// 0, as if never set, for none.
	FailWith *int `json:"failWith,omitempty"`
}

// whatsApp is the WhatsApp Business Platform: the Graph API and what it knows.
type whatsApp struct {
	*hub

	phones *phones

	businesses []*business
	parcels    []*parcel
}

// business is an account of the WhatsApp Business Platform.
type business struct {
	ID     string `json:"phoneNumberID"`
	WABA   string `json:"businessAccountID"`
	Number string `json:"number"` // digits; empty while unknown
	Name   string `json:"name,omitempty"`
	// Override is the callback that the server registered for the number, WABAOverride the one that it gave when it subscribed
	// to the business account, App the one that was set by hand.
	Override     string `json:"override,omitempty"`
	WABAOverride string `json:"businessAccountOverride,omitempty"`
	App          string `json:"callback,omitempty"`
	Subscribed   bool   `json:"subscribed"`
	FailWith     int    `json:"failWith"`

	appSecret string // set by hand
	token     string // presented last
}

func (b *business) title() string {
	if b.Name != "" {
		return b.Name
	}
	return "+" + b.Number
}

// callbackURL is where webhooks go: the override of the number, else that of the business account, else the app's own.
func (b *business) callbackURL() string { return cmp.Or(b.Override, b.WABAOverride, b.App) }

// secret signs webhooks.
func (b *business) secret() string {
	if b.appSecret != "" {
		return b.appSecret
	}
	return b.token
}

var (
	phoneNumberID = regexp.MustCompile(`^[0-9]{1,32}$`)
	inURL         = regexp.MustCompile(`^[\x21-\x7e]{1,512}$`)
)

func (wa *whatsApp) addAccount(a WhatsAppAccount) *failure {
	switch {
	case !phoneNumberID.MatchString(a.PhoneNumberID):
		return badRequest("phoneNumberID", "want digits")
	case a.Number != "" && !e164.MatchString(a.Number):
		return badRequest("number", "want the number in E.164, as +4915112345670")
	case a.AppSecret != "" && !settings.Simulated(a.AppSecret):
		return badRequest("appSecret", "only secrets that begin with sim_ are taken")
	case a.Callback != "" && !isCallbackURL(a.Callback):
		return badRequest("callback", "want an http or https URL")
	case len(a.Name) > maxNameRunes:
		return badRequest("name", "at most 128 characters")
	case a.BusinessAccountID != "" && !phoneNumberID.MatchString(a.BusinessAccountID):
		return badRequest("businessAccountID", "want digits")
	case a.FailWith != nil && *a.FailWith < 0:
		return badRequest("failWith", "want a positive code, or 0 for none")
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	if other := wa.findBusinessByWABA(a.BusinessAccountID); other != nil && other.ID != a.PhoneNumberID {
		return badRequest("businessAccountID", "phone number "+other.ID+" has that business account")
	}
	b, f := wa.findOrAddBusiness(a.PhoneNumberID)
	if f != nil {
		return f
	}
	setIfGiven(&b.WABA, a.BusinessAccountID)
	setIfGiven(&b.Number, strings.TrimPrefix(a.Number, "+"))
	setIfGiven(&b.Name, a.Name)
	setIfGiven(&b.appSecret, a.AppSecret)
	setIfGiven(&b.App, a.Callback)
	b.Subscribed = *cmp.Or(a.Subscribed, &b.Subscribed)
	b.FailWith = *cmp.Or(a.FailWith, &b.FailWith)
	wa.publish(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	return nil
}

func setIfGiven(to *string, value string) {
	if value != "" {
		*to = value
	}
}

func isCallbackURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && inURL.MatchString(raw) && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// findOrAddBusiness returns the account of an id, which exists from now on. The lock is held.
func (wa *whatsApp) findOrAddBusiness(id string) (*business, *failure) {
	for _, b := range wa.businesses {
		if b.ID == id {
			return b, nil
		}
	}
	if len(wa.businesses) >= maxAccounts {
		return nil, tooMany(maxAccounts, "accounts")
	}
	b := &business{ID: id, WABA: wabaPrefix + id, Subscribed: true}
	wa.businesses = append(wa.businesses, b)
	return b, nil
}

// wabaPrefix and the id of a phone number make the id of its business account, so that either can be asked for first.
const wabaPrefix = "10"

// findBusinessByWABA returns the account of a WhatsApp Business account; nil if there is none. The lock is held.
func (wa *whatsApp) findBusinessByWABA(id string) *business {
	for _, b := range wa.businesses {
		if b.WABA == id {
			return b
		}
	}
	return nil
}

// presentToken notes the token of a call, which may name the number. The lock is held.
func (wa *whatsApp) presentToken(b *business, token string) {
	b.token = token
	if digits, _ := credentialOf(token); b.Number == "" && waDigits.MatchString(digits) {
		b.Number = digits
		wa.publish(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	}
}

// findBusinessByNumber returns the account of a number; nil if there is none. The lock is held.
func (wa *whatsApp) findBusinessByNumber(digits string) *business {
	for _, b := range wa.businesses {
		if b.Number == digits {
			return b
		}
	}
	return nil
}
