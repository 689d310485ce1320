package simulator

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// template is a message template of the category AUTHENTICATION in one language ("Copy code button authentication templates").
type template struct {
	language, status, category, quality string
	// ttl is message_send_ttl_seconds, in seconds.
	ttl       int
	hasButton bool
}

// templateLanguages are those of every template but sim_english.
var templateLanguages = []string{"en", "en_US", "ar", "de", "es", "fr", "hi", "id", "it", "pt_BR", "ru", "tr", "zh_CN"}

// templateRules are the templates that are not as they should be, by their names. Any other name is that of one that is.
var templateRules = map[string]func(*template){
	"sim_pending":        func(t *template) { t.status = "PENDING" },
	"sim_paused":         func(t *template) { t.status = "PAUSED" },
	"sim_disabled":       func(t *template) { t.status = "DISABLED" },
	"sim_utility":        func(t *template) { t.category = "UTILITY" },
	"sim_without_button": func(t *template) { t.hasButton = false },
	"sim_late":           func(t *template) { t.ttl = 900 },
	"sim_low_quality":    func(t *template) { t.quality = "RED" },
}

const (
	templateMissing = "sim_missing"
	templateEnglish = "sim_english"
)

// findTemplates returns the templates of a name, one for each language; none if there are none.
func findTemplates(name string) []template {
	languages := templateLanguages
	switch name {
	case "", templateMissing:
		return nil
	case templateEnglish:
		languages = languages[:1]
	}
	var all []template
	for _, language := range languages {
		t := template{language: language, status: "APPROVED", category: "AUTHENTICATION", quality: "GREEN", ttl: 600, hasButton: true}
		if change := templateRules[name]; change != nil {
			change(&t)
		}
		all = append(all, t)
	}
	return all
}

// listTemplates answers the templates of a name ("Template management"). Without a name there are none: all names are taken.
func (wa *whatsApp) listTemplates(w http.ResponseWriter, r *http.Request) {
	name, list := r.URL.Query().Get("name"), []any{}
	for _, t := range findTemplates(name) {
		components := []any{
			map[string]any{"type": "BODY", "text": "*{{1}}* is your verification code.", "add_security_recommendation": false},
		}
		if t.hasButton {
			components = append(components, map[string]any{"type": "BUTTONS", "buttons": []any{map[string]any{
				"type": "URL", "text": "Copy code", "url": "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}",
				"example": []string{"https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp123456"},
			}}})
		}
		all := map[string]any{
			"id": appIDOf(name + t.language), "name": name, "language": t.language, "status": t.status, "category": t.category,
			"components": components, "message_send_ttl_seconds": t.ttl,
			"quality_score": map[string]any{"score": t.quality, "date": wa.clock.Now().Unix()},
		}
		fields := strings.Split(cmp.Or(r.URL.Query().Get("fields"), "name,components,language,status,category"), ",")
		for field := range all {
			if field != "id" && !slices.Contains(fields, field) {
				delete(all, field)
			}
		}
		for _, field := range fields {
			if _, found := all[field]; !found {
				refuseGraph(w, oauthError(http.StatusBadRequest, 100, "(#100) Tried accessing nonexisting field ("+field+")"))
				return
			}
		}
		list = append(list, all)
	}
	answerJSON(w, http.StatusOK, map[string]any{
		"data": list, "paging": map[string]any{"cursors": map[string]string{"before": "MAZDZD", "after": "MjQZD"}},
	})
}

// outgoingTemplate is a template as a message names it.
type outgoingTemplate struct {
	Name     string `json:"name"`
	Language struct {
		Code string `json:"code"`
	} `json:"language"`
	Components []templatePart `json:"components"`
}

// templatePart fills a component of a template.
type templatePart struct {
	Type       string      `json:"type"`
	SubType    string      `json:"sub_type"`
	Index      json.Number `json:"index"`
	Parameters []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"parameters"`
}

// parameter returns the one text of a part; empty if it has another number of them.
func (p *templatePart) parameter() string {
	if len(p.Parameters) != 1 || p.Parameters[0].Type != "text" {
		return ""
	}
	return p.Parameters[0].Text
}

// maxCodeRunes bounds a code.
const maxCodeRunes = 15

// readCode returns the code of a message with a template, or why Meta refuses it.
func (m *outgoing) readCode() (string, *graphError) {
	t := &m.Template
	named := findTemplates(t.Name)
	i := slices.IndexFunc(named, func(has template) bool { return has.language == t.Language.Code })
	switch {
	case m.To == "":
		return "", newCodeError(131062)
	case i < 0 || named[i].status == "PENDING":
		return "", newCodeError(132001)
	case named[i].status == "PAUSED":
		return "", newCodeError(132015)
	case named[i].status == "DISABLED":
		return "", newCodeError(132016)
	}
	var code, copied string
	for _, part := range t.Components {
		switch {
		case part.Type == "body":
			code = part.parameter()
		case part.Type == "button" && part.SubType == "url" && part.Index == "0":
			copied = part.parameter()
		}
	}
	switch {
	case code == "" || (copied != "") != named[i].hasButton:
		return "", newCodeError(132000)
	case utf8.RuneCountInString(code) > maxCodeRunes || named[i].hasButton && copied != code:
		return "", newCodeError(132012)
	}
	return code, nil
}
