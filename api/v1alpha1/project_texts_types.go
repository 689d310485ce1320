package v1alpha1

// Text is a text that is sent to end users. The place {name} is filled with the
// project's displayName.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x09\x0B-\x1F\x7F-\x{9F}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$')`,message="texts must be plain text; line breaks are fine, other control characters and text-direction overrides are not"
type Text string

// ButtonText is the title of a button.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{C}\p{Z}]([^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*[^\p{C}\p{Z}])?$')`,message="titles of buttons must be one line of plain text, without spaces at either end"
type ButtonText string

// PreparedText is the text that the user sends with WhatsApp.
// +kubebuilder:validation:MinLength=13
// +kubebuilder:validation:MaxLength=300
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\p{Cc}\x{2028}\x{2029}\x{202A}-\x{202E}\x{2066}-\x{2069}]*$')`,message="prepared must be one line of plain text, without control characters or text-direction overrides"
// +kubebuilder:validation:XValidation:rule=`self.split('{name}').size() in [2, 3] && self.split('{code}').size() == 2`,message="prepared must have the place {name} once or twice, and the place {code} once"
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(.*[^0-9A-Za-z}\x{FF10}-\x{FF19}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\p{Cf}\p{Mn}])?[\p{Cf}\p{Mn}]*\{code\}[\p{Cf}\p{Mn}]*([^0-9A-Za-z{\x{FF10}-\x{FF19}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\p{Cf}\p{Mn}].*)?$')`,message="prepared must have {code} apart from letters A to Z, digits and {name}, or the code would not be found"
type PreparedText string

// Texts are the texts of a project in one language. A text that is unset is
// that of replies, else the built-in one.
type Texts struct {
	// locale is the language, a BCP 47 tag: a language, and a script or a region
	// where needed. Example: pt-BR. Required.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$')`,message="locale must be a language, and a script or a region where needed, for example es, es-419, zh-Hant or pt-BR"
	Locale string `json:"locale"`

	// prepared is what the user sends with WhatsApp. It should say who asks
	// ({name}), that the user asked for this, and that they send it to no other
	// person; {code} is the code. 13 to 300 characters, one line.
	// +optional
	Prepared PreparedText `json:"prepared,omitempty"`

	// verified is sent when the number was verified.
	// +optional
	Verified Text `json:"verified,omitempty"`

	// wrongNumber is sent when the message came from another number.
	// +optional
	WrongNumber Text `json:"wrongNumber,omitempty"`

	// expired is sent when the code was right but came too late.
	// +optional
	Expired Text `json:"expired,omitempty"`

	// unknown is sent when the code belongs to another messenger. Senders without
	// a known code get that of replies: their language is not known.
	// +optional
	Unknown Text `json:"unknown,omitempty"`

	// shareContact asks the user to share their contact.
	// +optional
	ShareContact Text `json:"shareContact,omitempty"`

	// numberHidden is sent to WhatsApp users whose number is hidden, if
	// hiddenNumbers is Refuse.
	// +optional
	NumberHidden Text `json:"numberHidden,omitempty"`

	// confirm asks the user to confirm by a button, if they did not send the
	// prepared text.
	// +optional
	Confirm Text `json:"confirm,omitempty"`

	// textChanged is sent when that was asked before.
	// +optional
	TextChanged Text `json:"textChanged,omitempty"`

	// tapRefused is sent when a button is no longer valid.
	// +optional
	TapRefused Text `json:"tapRefused,omitempty"`

	// textRefused is sent once for each hint when the code came in an edited or
	// forwarded message, or in a caption. It should say who asks, and that users
	// to whom someone else sent this can ignore it.
	// +optional
	TextRefused Text `json:"textRefused,omitempty"`

	// contactRefused is sent once for each hint when a user shared a contact that
	// is not their own, was not shared with the button, or does not hold exactly
	// one number. The same holds for it.
	// +optional
	ContactRefused Text `json:"contactRefused,omitempty"`

	// numberAnonymous is sent once for each hint when a Telegram user shared an
	// anonymous number (+888), which is not that of a telephone line. The same
	// holds for it.
	// +optional
	NumberAnonymous Text `json:"numberAnonymous,omitempty"`

	// echoQuestion asks the claimed number, if hiddenNumbers is Echo.
	// +optional
	EchoQuestion Text `json:"echoQuestion,omitempty"`

	// declined is sent after "Not me".
	// +optional
	Declined Text `json:"declined,omitempty"`

	// buttonConfirm is the title of the button that confirms.
	// 1 to 20 characters.
	// +optional
	ButtonConfirm ButtonText `json:"buttonConfirm,omitempty"`

	// buttonNotMe is the title of the button that declines. 1 to 20 characters.
	// +optional
	ButtonNotMe ButtonText `json:"buttonNotMe,omitempty"`

	// buttonShare is the title of the button that shares the user's contact with
	// Telegram. 1 to 20 characters.
	// +optional
	ButtonShare ButtonText `json:"buttonShare,omitempty"`
}
