package v1alpha1

// ReturnURL is an origin, or one URL.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(https://[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*|http://(localhost|127\.0\.0\.1|\[::1\]))(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?(/([-A-Za-z0-9._~!$&()*+,;=:@/]|%[2-9A-Fa-f][0-9A-Fa-f])*)?(\?([-A-Za-z0-9._~!$&()*+,;=:@/?]|%[2-9A-Fa-f][0-9A-Fa-f])*)?$')`,message="returnURLs must be https URLs with a lower-case host (http for localhost, 127.0.0.1 and [::1] alone), without user info and fragment, for example https://shop.example.com"
type ReturnURL string

// FrameAncestor is the origin of a site that may show the page in a frame.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^https://[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$')`,message="frameAncestors must be origins with a lower-case host and without a path, for example https://shop.example.com"
type FrameAncestor string

// PageLanguage is a language that the page has texts in.
// +kubebuilder:validation:Enum=ar;de;en;es;fr;hi;id;it;pt;ru;tr;zh
type PageLanguage string

// Page is the page that leads end users to a verified number.
type Page struct {
	// returnURLs are where the page may lead back to: an origin stands for every
	// URL of it, an entry with a path for itself alone. At most 16. Default:
	// unset, the page stays where it is. Example: https://shop.example.com.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ReturnURLs []ReturnURL `json:"returnURLs,omitempty"`

	// logoRef names a picture that stands above the page: PNG, JPEG, WebP or GIF
	// of at most 64 KiB. The pods mount it, so a change of the reference rolls
	// them out, and a change of the picture does not. Where it is missing or
	// cannot be used, the page has the displayName alone. Default: unset, none.
	// +optional
	LogoRef *ConfigMapKeyRef `json:"logoRef,omitempty"`

	// accentColor is the colour of buttons, as #RRGGBB. The text on it is black
	// or white, whichever is easier to read. Default: unset, green.
	// Example: #0b6e4f.
	// +optional
	// +kubebuilder:validation:MinLength=7
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^#[0-9A-Fa-f]{6}$')`,message="accentColor must be '#' and six hexadecimal digits, for example #0b6e4f"
	AccentColor string `json:"accentColor,omitempty"`

	// languages are those of the page, the first for users that none suits.
	// Default: unset, all of ar, de, en, es, fr, hi, id, it, pt, ru, tr and zh,
	// and English for the others.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	Languages []PageLanguage `json:"languages,omitempty"`

	// methods are the messengers that the page offers beside the one that the
	// client chose. Default: unset, all that the project has.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=WhatsApp;Telegram
	Methods []Method `json:"methods,omitempty"`

	// frameAncestors are the sites that may show the page in a frame. At most 8.
	// Default: unset, none may.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	FrameAncestors []FrameAncestor `json:"frameAncestors,omitempty"`
}
