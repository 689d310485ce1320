package whatsapp

import (
	"context"
	"net/http"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/redact"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// SendCode implements messenger.CodePlatform, by the project's template.
func (c *Client) SendCode(
	ctx context.Context, s *settings.Settings, r *verification.Request, code redact.Value[string],
) verification.CodeResult {
	codes := s.WhatsApp.Codes
	answered, err := c.sendTemplate(ctx, s.WhatsApp, r.Phone, codeTemplate{
		Name: codes.TemplateName, Language: codes.LanguageFor(r.Locale), Code: code, Reference: newCodeReference(r),
	})
	return judgeCode(err, answered, r.Phone)
}

// codeTemplate is an authentication template with a copy-code button, and what a message fills in.
type codeTemplate struct {
	Name     string
	Language string // as Meta writes it, such as pt_BR
	Code     redact.Value[string]
	// Reference is what the statuses of the message carry.
	Reference string
}

// template is a message of a template ("Copy code button authentication templates"). The code stands in the text and behind the button.
type template struct {
	Name     string `json:"name"`
	Language struct {
		Code string `json:"code"`
	} `json:"language"`
	Components []component `json:"components"`
}

type component struct {
	Type       string      `json:"type"`
	SubType    string      `json:"sub_type,omitempty"`
	Index      string      `json:"index,omitempty"`
	Parameters []parameter `json:"parameters"`
}

type parameter struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// acceptance is the answer to a message that Meta accepted: the account that it goes to, and the message's id.
type acceptance struct {
	Contacts []struct {
		WaID string `json:"wa_id"`
	} `json:"contacts"`
	Messages []struct {
		ID string `json:"id"`
	} `json:"messages"`
}

// isComplete reports whether the answer names a message.
func (a *acceptance) isComplete() bool { return len(a.Messages) == 1 && a.Messages[0].ID != "" }

// sendTemplate sends a code to a number, in one call that is never repeated. It returns the number that Meta sends it to, zero if the
// answer names none. Errors that are not an *Error mean that no call was made.
func (c *Client) sendTemplate(ctx context.Context, account *settings.WhatsApp, to phone.Number, t codeTemplate) (phone.Number, error) {
	code := []parameter{{Type: "text", Text: t.Code.Reveal()}}
	m := newOutgoing(ToNumber(to), "template")
	m.Template = &template{Name: t.Name, Components: []component{
		{Type: "body", Parameters: code}, {Type: "button", SubType: "url", Index: "0", Parameters: code},
	}}
	m.Template.Language.Code = t.Language
	m.Reference = t.Reference
	var answer acceptance
	err := c.callGraph(ctx, account, call{operation: sendCode, method: http.MethodPost, path: "/messages", body: m}, &answer)
	if err != nil || len(answer.Contacts) != 1 {
		return phone.Number{}, err
	}
	answered, err := phone.ParseWhatsApp(answer.Contacts[0].WaID)
	if err != nil {
		return phone.Number{}, nil //nolint:nilerr // the message was accepted; a user id may stand in place of the number
	}
	return answered, nil
}
