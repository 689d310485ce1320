package whatsapp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// outgoing is a message of ours (Cloud API, "Send messages"). Exactly one of To and Recipient is set: a number, or a
// business-scoped user id.
type outgoing struct {
	Product       string       `json:"messaging_product"`
	RecipientType string       `json:"recipient_type"`
	To            string       `json:"to,omitempty"`
	Recipient     string       `json:"recipient,omitempty"`
	Type          string       `json:"type"`
	Text          *textBody    `json:"text,omitempty"`
	Interactive   *interactive `json:"interactive,omitempty"`
	Template      *template    `json:"template,omitempty"`
	// Reference comes back in the statuses of the message (Cloud API, "Messages": up to 512 characters).
	Reference string `json:"biz_opaque_callback_data,omitempty"`
}

type textBody struct {
	Body string `json:"body"`
	// PreviewURL has WhatsApp fetch the first link of the text; our texts must not make a user's client call other hosts.
	PreviewURL bool `json:"preview_url"`
}

type interactive struct {
	Type   string `json:"type"`
	Body   prompt `json:"body"`
	Action action `json:"action"`
}

type prompt struct {
	Text string `json:"text"`
}

// action is what the user can do: one named action, or a tap on one of the buttons.
type action struct {
	Name    string        `json:"name,omitempty"`
	Buttons []replyButton `json:"buttons,omitempty"`
}

type replyButton struct {
	Type  string `json:"type"`
	Reply Button `json:"reply"`
}

func newOutgoing(to Recipient, kind string) outgoing {
	a := to.Reveal()
	return outgoing{Product: "whatsapp", RecipientType: "individual", To: a.number, Recipient: a.userID, Type: kind}
}

// SendText sends a text to a user who wrote to us within 24 hours.
func (c *Client) SendText(ctx context.Context, account *settings.WhatsApp, to Recipient, text string) error {
	m := newOutgoing(to, "text")
	m.Text = &textBody{Body: cutText(text, maxTextRunes)}
	return c.sendOutgoing(ctx, account, m)
}

// RequestContact asks a user for the phone number by a button that shares it (Kapso, "Request contact info"). reference is what the
// statuses of the message carry.
func (c *Client) RequestContact(ctx context.Context, account *settings.WhatsApp, to Recipient, text, reference string) error {
	const kind = "request_contact_info"
	m := newOutgoing(to, "interactive")
	m.Interactive = &interactive{Type: kind, Body: prompt{cutText(text, maxPromptRunes)}, Action: action{Name: kind}}
	m.Reference = reference
	return c.sendOutgoing(ctx, account, m)
}

// Question is a text with up to three buttons.
type Question struct {
	Text    string
	Buttons []Button
	// Reference is what the statuses of the message carry; empty for nothing.
	Reference string
}

// AskWithButtons asks a user a question.
func (c *Client) AskWithButtons(ctx context.Context, account *settings.WhatsApp, to Recipient, q Question) error {
	m := newOutgoing(to, "interactive")
	buttons := make([]replyButton, len(q.Buttons))
	for i, b := range q.Buttons {
		buttons[i] = replyButton{Type: "reply", Reply: b}
	}
	m.Interactive = &interactive{Type: "button", Body: prompt{cutText(q.Text, maxPromptRunes)}, Action: action{Buttons: buttons}}
	m.Reference = q.Reference
	return c.sendOutgoing(ctx, account, m)
}

func (c *Client) sendOutgoing(ctx context.Context, account *settings.WhatsApp, m outgoing) error {
	if m.To == "" && m.Recipient == "" {
		return errors.New("message has no recipient")
	}
	return c.callGraph(ctx, account, call{operation: sendMessage, method: http.MethodPost, path: "/messages", body: m}, nil)
}

// cutText returns the first runes of a text.
func cutText(text string, runes int) string {
	for i := range text {
		if runes == 0 {
			return text[:i]
		}
		runes--
	}
	return text
}

// PhoneNumber is the business number as Meta has it.
type PhoneNumber struct {
	ID                 string `json:"id"`
	DisplayPhoneNumber string `json:"display_phone_number"`
	VerifiedName       string `json:"verified_name"`
	// Status is CONNECTED where the number can be used.
	Status string `json:"status"`
}

// PhoneNumber reads the business number. It shows whether the credentials work and belong to the number.
func (c *Client) PhoneNumber(ctx context.Context, account *settings.WhatsApp) (PhoneNumber, error) {
	var n PhoneNumber
	query := url.Values{"fields": {"id,display_phone_number,verified_name,status"}}
	if err := c.callGraph(ctx, account, call{operation: readNumber, method: http.MethodGet, query: query}, &n); err != nil {
		return PhoneNumber{}, fmt.Errorf("read phone number: %w", err)
	}
	return n, nil
}

// ErrAppSecret is returned for an app secret that is not that of the access token's app.
var ErrAppSecret = errors.New("the app secret is that of another app than the access token")

// invalidProof is Meta's code for a wrong proof, and unknownNode its subcode for an id that the token does not lead to.
const (
	invalidProof = 100
	unknownNode  = 33
)

// CheckAppSecret has Meta compare the app secret with the app of the access token, by a proof that only the secret makes (Graph API,
// "Secure Graph API calls"). The secret itself is not sent. A number that cannot be read at all is another error than ErrAppSecret.
func (c *Client) CheckAppSecret(ctx context.Context, account *settings.WhatsApp) error {
	proof := hex.EncodeToString(hmacOf(account.AppSecret.Current(), account.AccessToken.Current()))
	query := url.Values{"fields": {"id"}, "appsecret_proof": {proof}}
	err := c.callGraph(ctx, account, call{operation: readNumber, method: http.MethodGet, query: query}, nil)
	failure, _ := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return nil
	case failure != nil && failure.Code == invalidProof && failure.Subcode != unknownNode:
		return ErrAppSecret
	default:
		return fmt.Errorf("check app secret: %w", err)
	}
}

// Callbacks are the URLs that the number's webhooks can go to, the most particular first; the first that is set is used
// (Meta, "Webhook overrides").
type Callbacks struct {
	// PhoneNumber is the override of the number: ours, if Register set it.
	PhoneNumber string `json:"phone_number"`
	// BusinessAccount is that of its WhatsApp Business account.
	BusinessAccount string `json:"whatsapp_business_account"`
	// Application is that of the app.
	Application string `json:"application"`
}

// Callbacks reads where the number's webhooks go.
func (c *Client) Callbacks(ctx context.Context, account *settings.WhatsApp) (Callbacks, error) {
	var answer struct {
		Configuration Callbacks `json:"webhook_configuration"`
	}
	query := url.Values{"fields": {"webhook_configuration"}}
	if err := c.callGraph(ctx, account, call{operation: readCallback, method: http.MethodGet, query: query}, &answer); err != nil {
		return Callbacks{}, fmt.Errorf("read callbacks: %w", err)
	}
	return answer.Configuration, nil
}

type override struct {
	Configuration overrideTo `json:"webhook_configuration"`
}

type overrideTo struct {
	URL   string `json:"override_callback_uri"`
	Token string `json:"verify_token,omitempty"`
}

// SetCallback has the number's webhooks posted to callbackURL from now on. Meta shakes hands with it before it answers, so
// the hook must be reachable there.
func (c *Client) SetCallback(ctx context.Context, account *settings.WhatsApp, callbackURL, verifyToken string) error {
	if callbackURL == "" || verifyToken == "" || len(callbackURL) > MaxCallbackBytes {
		return errors.New("callback needs a URL of at most 200 characters and a token")
	}
	return c.setConfiguration(ctx, account, setCallback, overrideTo{callbackURL, verifyToken})
}

// RemoveCallback has the number's webhooks go where they went without an override.
func (c *Client) RemoveCallback(ctx context.Context, account *settings.WhatsApp) error {
	return c.setConfiguration(ctx, account, removeCallback, overrideTo{})
}

// confirmation is the answer to a call that changes something. Without success the call was refused.
type confirmation struct {
	Success bool `json:"success"`
}

func (c *Client) setConfiguration(ctx context.Context, account *settings.WhatsApp, operation string, to overrideTo) error {
	return c.callGraph(ctx, account, call{operation: operation, method: http.MethodPost, body: override{to}}, &confirmation{})
}
