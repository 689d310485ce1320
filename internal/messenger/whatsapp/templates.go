package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// Template is a message template in one language, as Meta has it.
type Template struct {
	Language string
	// Category is AUTHENTICATION for templates that carry codes, Status APPROVED for those that can be sent.
	Category string
	Status   string
	// Quality is GREEN, YELLOW, RED or UNKNOWN; empty if Meta reports none.
	Quality string
	// SendTTL is how late a message may still arrive; zero if Meta reports none, and then it is DefaultSendTTL.
	SendTTL time.Duration
	// CopyCode reports whether the first button copies the code.
	CopyCode bool
}

// DefaultSendTTL is how late a message of an authentication template may still arrive unless the template says otherwise.
const DefaultSendTTL = 10 * time.Minute

// maxTemplatePages bounds the pages of templates that are read, a hundred each: one name has at most one template a language.
const maxTemplatePages = 10

// errTooManyTemplates is returned for a name that is part of more templates' names than are read.
var errTooManyTemplates = errors.New("business account has too many templates of the name")

// templatesPage is a page of a business account's templates (WhatsApp Business Management API, "Message templates").
type templatesPage struct {
	Data []struct {
		Name     string `json:"name"`
		Language string `json:"language"`
		Category string `json:"category"`
		Status   string `json:"status"`
		Quality  struct {
			Score string `json:"score"`
		} `json:"quality_score"`
		SendTTL    int64 `json:"message_send_ttl_seconds"`
		Components []struct {
			Type    string           `json:"type"`
			Buttons []templateButton `json:"buttons"`
		} `json:"components"`
	} `json:"data"`
	Paging paging `json:"paging"`
}

// templateButton is a button of a template. One that copies the code is created as OTP, and shown as URL from then on.
type templateButton struct {
	Type    string `json:"type"`
	OTPType string `json:"otp_type"`
	URL     string `json:"url"`
}

func (b templateButton) copiesCode() bool {
	switch strings.ToUpper(b.Type) {
	case "OTP", "COPY_CODE":
		return b.OTPType == "" || strings.EqualFold(b.OTPType, "copy_code")
	case "URL":
		return strings.Contains(strings.ToLower(b.URL), "otp_type=copy_code")
	default:
		return false
	}
}

// ReadTemplate reads the templates of a name, one for each language; empty if there is none. Meta filters by parts of names.
func (c *Client) ReadTemplate(ctx context.Context, account *settings.WhatsApp, businessAccountID, name string) ([]Template, error) {
	query := url.Values{
		"fields": {"name,language,category,status,quality_score,message_send_ttl_seconds,components"}, "name": {name}, "limit": {"100"},
	}
	var templates []Template
	for range maxTemplatePages {
		var page templatesPage
		k := call{operation: readTemplates, method: http.MethodGet, path: "/message_templates", query: query}
		if err := c.callBusinessAccount(ctx, account, businessAccountID, k, &page); err != nil {
			return nil, fmt.Errorf("read message templates: %w", err)
		}
		for _, found := range page.Data {
			if found.Name != name {
				continue
			}
			t := Template{
				Language: found.Language, Category: found.Category, Status: found.Status, Quality: found.Quality.Score,
				SendTTL: time.Duration(max(found.SendTTL, 0)) * time.Second,
			}
			for _, part := range found.Components {
				t.CopyCode = t.CopyCode || strings.EqualFold(part.Type, "buttons") && len(part.Buttons) > 0 && part.Buttons[0].copiesCode()
			}
			templates = append(templates, t)
		}
		if !page.Paging.hasMore() {
			return templates, nil
		}
		query.Set("after", page.Paging.Cursors.After)
	}
	return nil, errTooManyTemplates
}
