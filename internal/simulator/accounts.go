package simulator

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// prefix begins every credential that is taken here. The rest names the account: sim_ and the digits of the number, or the
// bot's username, and after a colon whatever tells two credentials of one account apart.
const prefix = "sim_"

// credentialOf returns which account a credential names.
func credentialOf(credential string) (account string, ok bool) {
	rest, ok := strings.CutPrefix(credential, prefix)
	account, _, _ = strings.Cut(rest, ":")
	return account, ok
}

// accepts tells whether a credential is a simulated one that was not revoked. s.mu is held.
func (s *Simulator) accepts(credential string) bool {
	return strings.HasPrefix(credential, prefix) && !slices.Contains(s.revoked, credential)
}

// WhatsAppAccount is what somebody says of a WhatsApp account by hand, as in Meta's dashboard.
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

// TelegramAccount is what somebody says of a bot by hand.
type TelegramAccount struct {
	Username string `json:"username"`
	// Token is another token of the bot beside those that name it.
	Token string `json:"token,omitempty"`
	// Callback is where updates go as if setWebhook had said so, with Secret as its secret_token.
	Callback string `json:"callback,omitempty"`
	Secret   string `json:"secret,omitempty"`
}

// business is an account of the WhatsApp Business Platform.
type business struct {
	ID     string `json:"phoneNumberID"`
	Number string `json:"number"` // digits; empty while nobody told
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

// AddWhatsApp registers an account, or changes what is known of it; what is left empty stays.
func (s *Simulator) AddWhatsApp(a WhatsAppAccount) error {
	if f := s.addWhatsApp(a); f != nil {
		return f
	}
	return nil
}

func (s *Simulator) addWhatsApp(a WhatsAppAccount) *failure {
	switch {
	case !phoneNumberID.MatchString(a.PhoneNumberID):
		return badRequest("phoneNumberID", "want digits")
	case a.Number != "" && !e164.MatchString(a.Number):
		return badRequest("number", "want the number in E.164, as +4915112345670")
	case a.AppSecret != "" && !strings.HasPrefix(a.AppSecret, prefix):
		return badRequest("appSecret", "only secrets that begin with sim_ are taken")
	case a.Callback != "" && !callable(a.Callback):
		return badRequest("callback", "want an http or https URL")
	case len(a.Name) > maxNameRunes:
		return badRequest("name", "at most 128 characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, f := s.business(a.PhoneNumberID)
	if f != nil {
		return f
	}
	set(&b.Number, strings.TrimPrefix(a.Number, "+"))
	set(&b.Name, a.Name)
	set(&b.appSecret, a.AppSecret)
	set(&b.App, a.Callback)
	s.tell(event{Type: "account", Platform: onWhatsApp, Account: b.ID})
	return nil
}

func set(to *string, value string) {
	if value != "" {
		*to = value
	}
}

func callable(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && inURL.MatchString(raw) && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// business returns the account of an id, which exists from now on. s.mu is held.
func (s *Simulator) business(id string) (*business, *failure) {
	for _, b := range s.businesses {
		if b.ID == id {
			return b, nil
		}
	}
	if len(s.businesses) >= maxAccounts {
		return nil, tooMany("accounts")
	}
	b := &business{ID: id, captured: map[string][]byte{}}
	s.businesses = append(s.businesses, b)
	return b, nil
}

// businessNumbered returns the account of a number; nil if there is none. s.mu is held.
func (s *Simulator) businessNumbered(digits string) *business {
	for _, b := range s.businesses {
		if b.Number == digits {
			return b
		}
	}
	return nil
}

// AddTelegram registers a bot, or changes what is known of it; what is left empty stays.
func (s *Simulator) AddTelegram(a TelegramAccount) error {
	if f := s.addTelegram(a); f != nil {
		return f
	}
	return nil
}

func (s *Simulator) addTelegram(a TelegramAccount) *failure {
	switch {
	case !botUsername.MatchString(a.Username):
		return badRequest("username", "want a bot's username")
	case a.Token != "" && !strings.HasPrefix(a.Token, prefix):
		return badRequest("token", "only tokens that begin with sim_ are taken")
	case a.Callback != "" && !callable(a.Callback):
		return badRequest("callback", "want an http or https URL")
	case a.Secret != "" && !secretToken.MatchString(a.Secret):
		return badRequest("secret", "want 1 to 256 characters of A-Z, a-z, 0-9, _ and -")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, f := s.bot(a.Username)
	if f != nil {
		return f
	}
	if a.Token != "" && !slices.Contains(b.tokens, a.Token) {
		b.tokens = keep(b.tokens, a.Token, maxChats)
	}
	if a.Callback != "" {
		b.Webhook, b.secret = a.Callback, a.Secret
	}
	s.tell(event{Type: "account", Platform: onTelegram, Account: b.Username})
	return nil
}

// bot returns the bot of a name, which exists from now on. s.mu is held.
func (s *Simulator) bot(username string) (*bot, *failure) {
	if b := s.botNamed(username); b != nil {
		return b, nil
	}
	if len(s.bots) >= maxAccounts {
		return nil, tooMany("bots")
	}
	b := &bot{Username: username, id: firstBotID + int64(len(s.bots)), nextUpdate: firstUpdateID, captured: map[string][]byte{}}
	s.bots = append(s.bots, b)
	return b, nil
}

// botNamed returns the bot of a name; nil if there is none. s.mu is held.
func (s *Simulator) botNamed(username string) *bot {
	for _, b := range s.bots {
		if strings.EqualFold(b.Username, username) {
			return b
		}
	}
	return nil
}

// botOf returns the bot of a token; nil if it is none's. s.mu is held.
func (s *Simulator) botOf(token string) (*bot, *failure) {
	if !s.accepts(token) {
		return nil, nil
	}
	for _, b := range s.bots {
		if slices.Contains(b.tokens, token) {
			return b, nil
		}
	}
	username, _ := credentialOf(token)
	if !botUsername.MatchString(username) {
		return nil, nil
	}
	b, f := s.bot(username)
	if f != nil {
		return nil, f
	}
	return b, nil
}

// revoke has a credential be refused from now on.
func (s *Simulator) revoke(credential string) *failure {
	if !strings.HasPrefix(credential, prefix) || !inURL.MatchString(credential) {
		return badRequest("credential", "want a credential that begins with sim_")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = keep(s.revoked, credential, maxRevoked)
	return nil
}
