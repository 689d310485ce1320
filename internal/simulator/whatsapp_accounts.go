package simulator

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// credentialOf returns the account that a credential names: the digits of the number, or the bot's username. After a colon is
// whatever distinguishes two credentials of one account.
func credentialOf(credential string) (account string, ok bool) {
	rest, ok := strings.CutPrefix(credential, messenger.SimulatorPrefix)
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
	Number string `json:"number"` // digits; empty while unknown
	Name   string `json:"name,omitempty"`
	// Override is the callback that the server registered, App the one that was set by hand.
	Override string `json:"override,omitempty"`
	App      string `json:"callback,omitempty"`

	appSecret string // set by hand
	token     string // presented last
	// captured is the last webhook that was taken, of each user: what a thief of it could post again.
	captured map[string][]byte
}

func (b *business) title() string {
	if b.Name != "" {
		return b.Name
	}
	return "+" + b.Number
}

// callback is where webhooks go: the override of the number before that of the app.
func (b *business) callback() string {
	if b.Override != "" {
		return b.Override
	}
	return b.App
}

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
	case a.AppSecret != "" && !messenger.Simulated(a.AppSecret):
		return badRequest("appSecret", "only secrets that begin with sim_ are taken")
	case a.Callback != "" && !isCallbackURL(a.Callback):
		return badRequest("callback", "want an http or https URL")
	case len(a.Name) > maxNameRunes:
		return badRequest("name", "at most 128 characters")
	}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	b, f := wa.findOrAddBusiness(a.PhoneNumberID)
	if f != nil {
		return f
	}
	setIfGiven(&b.Number, strings.TrimPrefix(a.Number, "+"))
	setIfGiven(&b.Name, a.Name)
	setIfGiven(&b.appSecret, a.AppSecret)
	setIfGiven(&b.App, a.Callback)
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
		return nil, tooMany("accounts")
	}
	b := &business{ID: id, captured: map[string][]byte{}}
	wa.businesses = append(wa.businesses, b)
	return b, nil
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
