package v1alpha1

// HiddenNumbers is how users are verified whose number WhatsApp hides.
// +kubebuilder:validation:Enum=Refuse;SharedContact;Echo
type HiddenNumbers string

const (
	// HiddenNumbersRefuse means that they are not verified.
	HiddenNumbersRefuse HiddenNumbers = "Refuse"
	// HiddenNumbersSharedContact means that they share their contact.
	HiddenNumbersSharedContact HiddenNumbers = "SharedContact"
	// HiddenNumbersEcho means that they answer a message to the claimed number.
	HiddenNumbersEcho HiddenNumbers = "Echo"
)

// WhatsApp is one phone number of a WhatsApp Business account (Cloud API).
type WhatsApp struct {
	// phoneNumber is the number that end users write to, in E.164. It becomes
	// part of the click-to-chat link. Example: +15550100123. Required.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^\+[1-9][0-9]{6,14}$')`,message="phoneNumber must be in E.164: '+', country code and number, digits only, for example +15550100123"
	PhoneNumber string `json:"phoneNumber"`

	// phoneNumberID is Meta's id of that number, as the WhatsApp Manager shows
	// it: digits, and not the number itself. One id belongs to one project; of
	// two projects of a namespace with the same id, the one that has named it
	// longer keeps it. Example: "106540352242922", in quotes. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]+$')`,message="phoneNumberID must be Meta's id of the number: digits only, in quotes"
	PhoneNumberID string `json:"phoneNumberID"`

	// businessAccountID is Meta's id of the WhatsApp Business account that the
	// number belongs to. Meta delivers its messages only to apps that are
	// subscribed to the account, so the condition WhatsAppReady includes that.
	// Default: unset, and the account is found by accessTokenSecretRef, as far as
	// its token shows it. Example: "102290129340398", in quotes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9]+$')`,message="businessAccountID must be Meta's id of the WhatsApp Business account: digits only, in quotes"
	BusinessAccountID string `json:"businessAccountID,omitempty"`

	// accessTokenSecretRef names the access token of a system user with the
	// permissions whatsapp_business_messaging, which sends the replies and
	// registers the callback, and whatsapp_business_management, which reads and
	// makes the app's subscription. Required.
	// +required
	AccessTokenSecretRef SecretKeyRef `json:"accessTokenSecretRef"`

	// appSecretRef names the App Secret of the Meta app. Every message that
	// claims to come from WhatsApp is checked with it, and refused while it is
	// missing. 32 hexadecimal digits in lower case, not all alike, and no value
	// that an API key or a webhook secret of the project has, or sim_ and any
	// text for the simulator. If a good value is replaced by one that is refused,
	// pods that have read the good one accept it for ten more minutes. Required.
	// +required
	AppSecretRef SecretKeyRef `json:"appSecretRef"`

	// registerWebhook makes PhoneProof register its own address as the
	// number's callback with Meta, subscribe the app to the WhatsApp Business
	// account, and keep both so. true needs an https baseURL. Default: unset,
	// which means true where baseURL is https, else false. With false, register
	// BASEURL/hooks/whatsapp and subscribe the app by hand; the subscription is
	// checked.
	// +optional
	RegisterWebhook *bool `json:"registerWebhook,omitempty"`

	// takeOver allows overwriting a callback that another program registered for
	// this number. Default: false, and the condition WhatsAppReady reports it.
	// +optional
	TakeOver *bool `json:"takeOver,omitempty"`

	// hiddenNumbers is how users are verified whose number WhatsApp hides (they
	// have a username): Refuse (they get a reply with the reason), SharedContact
	// (they answer a request for their contact, and the result is marked
	// assurance: shared_contact, because the proof is weaker) or Echo (a question
	// is sent to the claimed number, and the same account must answer it by a
	// button; the result is marked assurance: echo, because it was not tried with
	// real accounts yet).
	// Default: unset, which means Refuse.
	// +optional
	HiddenNumbers HiddenNumbers `json:"hiddenNumbers,omitempty"`

	// acceptAnyText lets any text from the right number verify it, as long as
	// the code is in it. A link can be passed on with another text, so its
	// sender may not know whom they confirm their number to.
	// Default: false: a message must hold the text that was prepared, or its
	// sender is asked once, by a button that names displayName.
	// +optional
	AcceptAnyText *bool `json:"acceptAnyText,omitempty"`

	// silentAfter is how long no message must have come, while requests expire,
	// before the condition Silent reports it. 10m to 24h, and not longer than
	// request.retention and request.ttl together: it is found in stored requests.
	// Default: unset, which means 1h, or request.ttl and request.retention
	// together if they are shorter.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$') && duration(self) >= duration('10m') && duration(self) <= duration('24h')`,message="silentAfter must be a duration between 10m and 24h, for example 1h"
	SilentAfter Duration `json:"silentAfter,omitempty"`

	// codes lets API keys with the scope Deliver have a code sent to the number,
	// through WhatsApp, in place of a link. Meta charges for each. Default: unset,
	// no code is sent.
	// +optional
	Codes *Codes `json:"codes,omitempty"`
}

// Country is an ISO 3166 country or territory in two capital letters.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=2
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(A[CDEFGILMORSTUWXZ]|B[ABDEFGHIJLMNOQRSTWYZ]|C[ACDFGHIKLMNORUVWXYZ]|D[EJKMOZ]|E[CEGHRST]|F[IJKMOR]|G[ABDEFGHILMNPQRTUWY]|H[KNRTU]|I[DELMNOQRST]|J[EMOP]|K[EGHIMNPRWYZ]|L[ABCIKRSTUVY]|M[ACDEFGHKLMNOPQRSTUVWXYZ]|N[ACEFGILOPRUZ]|OM|P[AEFGHKLMRSTWY]|QA|R[EOSUW]|S[ABCDEGHIJKLMNORSTVXYZ]|T[ACDGHJKLMNORTVWZ]|U[AGSYZ]|V[ACEGINU]|W[FS]|XK|Y[ET]|Z[AMW])$')`,message="allowedCountries must be ISO 3166 codes of countries that have phone numbers, for example DE or GB"
type Country string

// TemplateLanguage is a language of a message template, in Meta's form.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=6
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]{2,3}(_[A-Z]{2})?$')`,message="languages must be in Meta's form: a language and, after '_', a country, for example en or pt_BR"
type TemplateLanguage string

// Codes are what it takes to send codes through WhatsApp, and where to.
type Codes struct {
	// templateName is the name of a message template of the WhatsApp Business
	// account, of category AUTHENTICATION with a copy-code button. Lower-case
	// letters, digits and '_'. Example: phoneproof_code. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9_]+$')`,message="templateName must be the name of a template: lower-case letters, digits and '_'"
	TemplateName string `json:"templateName"`

	// languages are those that the template is approved in, in Meta's form. The
	// first is for users who read none of them. At most 16. Example: [en, pt_BR].
	// Required.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Languages []TemplateLanguage `json:"languages"`

	// allowedCountries are the countries and territories whose numbers codes are
	// sent to, as ISO 3166 codes of two letters. Several may share a calling code,
	// as US, CA and DO do. At most 250. Example: [DE, AT]. Required.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=250
	AllowedCountries []Country `json:"allowedCountries"`

	// maxPerDay is how many codes the project sends in 24 hours at most. API keys
	// with the scope Deliver have equal shares, and in one hour a sixth of its
	// share each. 6 to 1000000. Example: 600. Required.
	// +required
	// +kubebuilder:validation:Minimum=6
	// +kubebuilder:validation:Maximum=1000000
	MaxPerDay int32 `json:"maxPerDay"`
}

// GatewayCodes are what it takes to send codes through Telegram's Gateway, and
// where to.
type GatewayCodes struct {
	// gatewayTokenSecretRef names the access token of an account of Telegram's
	// Gateway, as gateway.telegram.org shows it. It is not the bot's token.
	// Required.
	// +required
	GatewayTokenSecretRef SecretKeyRef `json:"gatewayTokenSecretRef"`

	// senderUsername is the verified channel, of the Gateway account's owner, that
	// users see as the sender, without '@'; 5 to 32 letters, digits and '_'.
	// Default: unset, Telegram's own. Example: ada_books.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z][A-Za-z0-9_]*$')`,message="senderUsername must be a channel's username without '@': 5 to 32 letters, digits and '_', beginning with a letter, for example ada_books"
	SenderUsername string `json:"senderUsername,omitempty"`

	// allowedCountries are the countries and territories whose numbers codes are
	// sent to, as ISO 3166 codes of two letters. At most 250. Example: [DE, AT].
	// Required.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=250
	AllowedCountries []Country `json:"allowedCountries"`

	// maxPerDay is how many codes the project sends through Telegram in 24 hours
	// at most. API keys with the scope Deliver have equal shares, and in one hour
	// a sixth of its share each. 6 to 1000000. Example: 600. Required.
	// +required
	// +kubebuilder:validation:Minimum=6
	// +kubebuilder:validation:Maximum=1000000
	MaxPerDay int32 `json:"maxPerDay"`
}

// TelegramUpdates is how messages come from Telegram.
// +kubebuilder:validation:Enum=Webhook;Polling
type TelegramUpdates string

const (
	// TelegramUpdatesWebhook means Telegram calls BASEURL/hooks/telegram.
	TelegramUpdatesWebhook TelegramUpdates = "Webhook"
	// TelegramUpdatesPolling means one pod asks Telegram; no ingress is needed.
	TelegramUpdatesPolling TelegramUpdates = "Polling"
)

// Telegram is one Telegram bot.
type Telegram struct {
	// botUsername is the bot's username, without '@'; 5 to 32 letters, digits
	// and '_', ending in "bot". One bot belongs to one project; of two projects
	// of a namespace with the same bot, the one that has named it longer keeps
	// it. Example: ada_books_bot. Required.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z][A-Za-z0-9_]*[Bb][Oo][Tt]$')`,message="botUsername must be the bot's username without '@': 5 to 32 letters, digits and '_', ending in bot, for example ada_books_bot"
	BotUsername string `json:"botUsername"`

	// botTokenSecretRef names the bot's token, as BotFather gave it. Required.
	// +required
	BotTokenSecretRef SecretKeyRef `json:"botTokenSecretRef"`

	// updates is how messages arrive: Webhook (Telegram calls baseURL, which
	// must be public and https) or Polling (one pod asks Telegram; works
	// without any ingress). Default: unset, which means Webhook where baseURL
	// is https, else Polling.
	// +optional
	Updates TelegramUpdates `json:"updates,omitempty"`

	// takeOver allows replacing a webhook that another program set for this bot.
	// Default: false, and the condition TelegramReady reports it.
	// +optional
	TakeOver *bool `json:"takeOver,omitempty"`

	// codes lets API keys with the scope Deliver have a code sent to the number,
	// through Telegram's Gateway, in place of a link. Telegram charges for each.
	// Default: unset, no code is sent.
	// +optional
	Codes *GatewayCodes `json:"codes,omitempty"`
}

// Reply is a text that is sent to end users. Line breaks are allowed; control
// characters and text-direction overrides are not. 1024 is the shortest limit
// of the messengers.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x09\x0B-\x1F\x7F-\x{9F}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$')`,message="replies must be plain text; line breaks are fine, other control characters and text-direction overrides are not"
type Reply string

// SendReplies is which outcomes of messages are answered.
// +kubebuilder:validation:Enum=Always;OnTrouble;Never
type SendReplies string

const (
	// SendRepliesAlways answers every outcome.
	SendRepliesAlways SendReplies = "Always"
	// SendRepliesOnTrouble answers every outcome but success.
	SendRepliesOnTrouble SendReplies = "OnTrouble"
	// SendRepliesNever answers no outcome.
	SendRepliesNever SendReplies = "Never"
)

// Replies are what end users get back. Replies are best effort.
type Replies struct {
	// send is which messages of users are answered: Always (all outcomes),
	// OnTrouble (all but success) or Never (no outcome). It holds for both
	// messengers. WhatsApp charges for each reply. Without the reply to success, a
	// user whose number was confirmed by a link of another person is not warned.
	// What asks users for their contact or their confirmation is always sent, so
	// Never is refused where WhatsApp may have to ask: it needs
	// whatsapp.acceptAnyText: true and whatsapp.hiddenNumbers: Refuse.
	// Default: Always.
	// +optional
	// +kubebuilder:default=Always
	Send SendReplies `json:"send,omitempty"`

	// verified is sent when the number was verified. 1 to 1024 characters.
	// Default: a built-in text in the request's language.
	// +optional
	Verified Reply `json:"verified,omitempty"`

	// wrongNumber is sent when the message came from another number than the
	// one to be verified. It never reveals the expected number. 1 to 1024
	// characters. Default: a built-in text in the request's language.
	// +optional
	WrongNumber Reply `json:"wrongNumber,omitempty"`

	// expired is sent when the code was right but came too late. 1 to 1024
	// characters. Default: a built-in text in the request's language.
	// +optional
	Expired Reply `json:"expired,omitempty"`

	// unknown is sent, at most once a day to the same sender, when a message
	// holds no known code, so that the sender's language is not known either, or
	// the code belongs to another messenger. 1 to 1024 characters. Default: a
	// built-in text, in English or in the request's language.
	// +optional
	Unknown Reply `json:"unknown,omitempty"`

	// shareContact asks the user to share their contact: always with Telegram,
	// with WhatsApp only where hiddenNumbers is SharedContact. 1 to 1024
	// characters. Default: a built-in text in the request's language.
	// +optional
	ShareContact Reply `json:"shareContact,omitempty"`

	// numberHidden tells a WhatsApp user that their number is hidden and that
	// verification therefore fails. 1 to 1024 characters. Default: a built-in
	// text in the request's language.
	// +optional
	NumberHidden Reply `json:"numberHidden,omitempty"`
}
