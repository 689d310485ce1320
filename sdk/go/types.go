package phoneproof

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Values of fields. Those that are open lists, such as hints, may be others in later versions.
const (
	// Pending is the one status that is not final.
	Pending  = "PENDING"
	Verified = "VERIFIED"
	Expired  = "EXPIRED"

	// WhatsApp and Telegram are the methods.
	WhatsApp = "WHATSAPP"
	Telegram = "TELEGRAM"

	// AssuranceSession and AssurancePossession are values of StartParams.Assurance.
	AssuranceSession    = "SESSION"
	AssurancePossession = "POSSESSION"

	// DeliverCode has eight digits sent to the number.
	DeliverCode = "CODE"

	// KindDelivery is the kind of what Deliver stored.
	KindDelivery = "DELIVERY"

	// ProvenInSession and those below it are assurances of a verified number. One without was reported by the messenger.
	ProvenInSession       = "session"
	ProvenBySharedContact = "shared_contact"
	ProvenByEcho          = "echo"
)

// StartParams are what Start sends. Only PhoneNumber is required.
type StartParams struct {
	// PhoneNumber has a country code, and may be written as the user typed it.
	PhoneNumber string `json:"phoneNumber"`
	// Method is WhatsApp or Telegram; empty for WhatsApp.
	Method string `json:"method,omitempty"`
	// Subject is the party that you start it for, such as a user's id, by which the project counts.
	Subject string `json:"subject,omitempty"`
	// Reference and Metadata are your own data, which status and events return.
	Reference string            `json:"reference,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
	// Locale is the language of the texts for the user, such as pt-BR.
	Locale string `json:"locale,omitempty"`
	// ReturnURL is where the page leads back to: one that the project lists.
	ReturnURL string `json:"returnURL,omitempty"`
	// Assurance is AssuranceSession or AssurancePossession; empty for what the project asks for.
	Assurance string `json:"assurance,omitempty"`
	// Purpose is the name of one of the project's purposes.
	Purpose string `json:"purpose,omitempty"`
	// Browser is where the user started, such as CHROME/WINDOWS.
	Browser string `json:"browser,omitempty"`
	// Deliver is DeliverCode, or empty: nothing is sent to the number.
	Deliver string `json:"deliver,omitempty"`
	// IdempotencyKey names this verification for retries by you. If it is empty, the retries of this call have one of their own.
	IdempotencyKey string `json:"-"`
}

// DeliverParams are what Deliver sends. PhoneNumber and Code are required; those that StartParams has, too, mean the same.
type DeliverParams struct {
	PhoneNumber string `json:"phoneNumber"`
	// Code has 4 to 10 digits, or also letters from A to Z if the API key may send them.
	Code    string `json:"code"`
	Method  string `json:"method,omitempty"`
	Locale  string `json:"locale,omitempty"`
	Subject string `json:"subject,omitempty"`
	// IdempotencyKey names this delivery. If it is empty, the server knows a repetition by the number and the code.
	IdempotencyKey string `json:"-"`
}

// Delivered is a delivery that was stored.
type Delivered struct {
	// DeliveryID is what Get knows it by.
	DeliveryID string `json:"deliveryId"`
	Test       bool   `json:"test"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an answer of the API.
func (d *Delivered) UnmarshalJSON(content []byte) error {
	type plain Delivered
	if err := unmarshal(content, (*plain)(d), &d.Raw); err != nil {
		return err
	}
	return require(d.DeliveryID)
}

// Started is a request that was stored.
type Started struct {
	RequestID string `json:"requestId"`
	// WALink or TGLink opens the messenger with the text prepared, and PageURL, if the project has a page, leads through all of it.
	WALink  string `json:"waLink"`
	TGLink  string `json:"tgLink"`
	PageURL string `json:"pageURL"`
	// ExpectedText is the text that the user is to send. It holds the one-time code, as the links do: do not log it.
	ExpectedText string        `json:"expectedText"`
	ExpiresIn    time.Duration `json:"-"`
	ExpiresAt    time.Time     `json:"expiresAt"`
	// CodeLength is how many digits are sent to the number; 0 without DeliverCode.
	CodeLength int  `json:"codeLength"`
	Test       bool `json:"test"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an answer of the API.
func (s *Started) UnmarshalJSON(content []byte) error {
	type plain Started
	answer := struct {
		*plain

		ExpiresIn string `json:"expiresIn"`
	}{plain: (*plain)(s)}
	if err := unmarshal(content, &answer, &s.Raw); err != nil {
		return err
	}
	var err error
	if s.ExpiresIn, err = time.ParseDuration(answer.ExpiresIn); err != nil {
		return fmt.Errorf("expiresIn: %w", err)
	}
	return require(s.RequestID)
}

// Status is where a request stands.
type Status struct {
	// Status is Pending, Verified or Expired.
	Status string `json:"status"`
	// PhoneNumber is the number of Start in E.164 form, and ActualPhoneNumber the one that the messenger reported once it is verified.
	PhoneNumber       string    `json:"phoneNumber"`
	ActualPhoneNumber string    `json:"actualPhoneNumber"`
	Method            string    `json:"method"`
	ExpiresAt         time.Time `json:"expiresAt"`
	// VerifiedAt is zero until the number is verified.
	VerifiedAt time.Time `json:"verifiedAt"`
	// Assurance is what verified the number, if not just the messenger's word: ProvenInSession, ProvenBySharedContact or ProvenByEcho.
	Assurance string `json:"assurance"`
	// Via is DeliverCode if the code that was sent verified the number.
	Via string `json:"via"`
	// CodeDelivery is how far the sending of the code is: SENT, NOT_SENT, UNKNOWN, or empty.
	CodeDelivery string `json:"codeDelivery"`
	// Hint is why the number is not verified yet, or never was.
	Hint      string            `json:"hint"`
	Reference string            `json:"reference"`
	Metadata  map[string]string `json:"metadata"`
	Test      bool              `json:"test"`
	// Raw is the whole answer.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an answer of the API.
func (s *Status) UnmarshalJSON(content []byte) error {
	type plain Status
	if err := unmarshal(content, (*plain)(s), &s.Raw); err != nil {
		return err
	}
	return require(s.Status, s.PhoneNumber)
}

// Request is a stored request. Fields that Status has, too, mean the same.
type Request struct {
	RequestID string `json:"requestId"`
	// Kind is KindDelivery for what Deliver stored.
	Kind              string            `json:"kind"`
	Status            string            `json:"status"`
	PhoneNumber       string            `json:"phoneNumber"`
	ActualPhoneNumber string            `json:"actualPhoneNumber"`
	Method            string            `json:"method"`
	CreatedAt         time.Time         `json:"createdAt"`
	ExpiresAt         time.Time         `json:"expiresAt"`
	VerifiedAt        time.Time         `json:"verifiedAt"`
	Assurance         string            `json:"assurance"`
	Via               string            `json:"via"`
	CodeDelivery      string            `json:"codeDelivery"`
	Hint              string            `json:"hint"`
	Reference         string            `json:"reference"`
	Metadata          map[string]string `json:"metadata"`
	Test              bool              `json:"test"`
	Locale            string            `json:"locale"`
	// APIKey is the name of the API key that started it; empty for one that was made with kubectl.
	APIKey string `json:"apiKey"`
	// CodeReason is what the messenger answered to the code. Do not show it to users. Get returns it, and lists do not.
	CodeReason string `json:"codeReason"`
	// Delivery is nil if the request has no event.
	Delivery *Delivery `json:"delivery"`
	// Attempts are the last ones to deliver its events, newest first. Get and Redeliver return them, and lists do not.
	Attempts []DeliveryAttempt `json:"attempts"`
	// Raw is the JSON of the request.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads an answer of the API.
func (r *Request) UnmarshalJSON(content []byte) error {
	type plain Request
	if err := unmarshal(content, (*plain)(r), &r.Raw); err != nil {
		return err
	}
	return require(r.RequestID, r.Status, r.PhoneNumber)
}

// Delivery is how far the event of a request is.
type Delivery struct {
	// State is WAITING, DELIVERED or EXHAUSTED.
	State         string    `json:"state"`
	Attempts      int       `json:"attempts"`
	NextAttemptAt time.Time `json:"nextAttemptAt"`
	DeliveredAt   time.Time `json:"deliveredAt"`
}

// DeliveryAttempt is one attempt to deliver an event.
type DeliveryAttempt struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	// StatusCode is the receiver's, and 0 without an answer.
	StatusCode int    `json:"statusCode"`
	Reason     string `json:"reason"`
}

// ListParams choose what List returns. The zero value chooses all requests.
type ListParams struct {
	Status    string
	Reference string
	// Kind is KindDelivery for deliveries, which are listed in no other way.
	Kind string
	// Since is the earliest time of creation.
	Since time.Time
	// Limit is how many requests one call returns at most, 1 to 200; 0 for 50. List goes on with the next call.
	Limit int
}

// FindParams choose what Find returns. Only PhoneNumber is required.
type FindParams struct {
	PhoneNumber string    `json:"phoneNumber"`
	Status      string    `json:"status,omitempty"`
	Kind        string    `json:"kind,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Limit       int       `json:"limit,omitempty"`
}

// unmarshal reads JSON, and keeps a copy of it.
func unmarshal(content []byte, into any, raw *json.RawMessage) error {
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	*raw = append((*raw)[:0:0], content...)
	return nil
}

// require returns an error if the value of a required field is missing.
func require(values ...string) error {
	if slices.Contains(values, "") {
		return errors.New("a required field is missing")
	}
	return nil
}
