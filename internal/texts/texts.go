// Package texts has the texts for end users, in twelve languages and in the words of a project.
//
// The English texts are the original. No native speaker has read the others yet.
//
// No text holds a number, nor asks for anything that a fraudster could use. Those that name the project have the place {name}, because
// a link can be passed on; the prepared text also has the place {code}, and four parts in each language: who asks, that the sender
// asked for it, that it goes to no other person, and the code. The message with session codes has places of its own; see SessionMessage.
package texts

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
)

// Texts are the texts of one language. An empty one is not set.
type Texts struct {
	// Prepared is what the user sends with WhatsApp.
	Prepared string `json:"prepared"`

	Verified    string `json:"verified"`
	WrongNumber string `json:"wrongNumber"`
	Expired     string `json:"expired"`
	Unknown     string `json:"unknown"`

	// Confirm is asked above ButtonConfirm if the code came in another text than the prepared one.
	Confirm       string `json:"confirm"`
	TextChanged   string `json:"textChanged"`
	TapRefused    string `json:"tapRefused"`
	TextRefused   string `json:"textRefused"`
	ButtonConfirm string `json:"buttonConfirm"`

	// ShareContact asks for a contact, EchoQuestion the claimed number; NumberHidden is for projects that do neither.
	ShareContact string `json:"shareContact"`
	NumberHidden string `json:"numberHidden"`
	EchoQuestion string `json:"echoQuestion"`
	ButtonNotMe  string `json:"buttonNotMe"`
	Declined     string `json:"declined"`

	// ContactRefused is for a contact that is not the sender's own, NumberAnonymous for one whose number is anonymous.
	ContactRefused  string `json:"contactRefused"`
	NumberAnonymous string `json:"numberAnonymous"`

	// The parts of SessionMessage. No project replaces them.
	Session        string `json:"session"`
	SessionPurpose string `json:"sessionPurpose"`
	SessionBrowser string `json:"sessionBrowser"`
	SessionCode    string `json:"sessionCode"`
	SessionLink    string `json:"sessionLink"`

	// The texts of Telegram where they differ.
	TelegramWrongNumber  string `json:"telegramWrongNumber"`
	TelegramExpired      string `json:"telegramExpired"`
	TelegramUnknown      string `json:"telegramUnknown"`
	TelegramShareContact string `json:"telegramShareContact"`
	TelegramButton       string `json:"telegramButton"`
}

// english is the language of texts that no other language has.
const english = "en"

//go:embed languages/*.json
var languageFiles embed.FS

// builtIn are the texts by language.
var builtIn = readLanguages()

func readLanguages() map[string]Texts {
	files, err := languageFiles.ReadDir("languages")
	if err != nil {
		panic(err) // it is part of the program
	}
	all := make(map[string]Texts, len(files))
	for _, file := range files {
		content, err := languageFiles.ReadFile("languages/" + file.Name())
		if err != nil {
			panic(err)
		}
		var t Texts
		if err := json.Unmarshal(content, &t); err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(file.Name(), ".json")] = t
	}
	return all
}

// Languages returns the languages that are built in, sorted.
func Languages() []string {
	languages := make([]string, 0, len(builtIn))
	for language := range builtIn {
		languages = append(languages, language)
	}
	slices.Sort(languages)
	return languages
}

// orElse returns t with the texts of other where t has none.
func (t Texts) orElse(other Texts) Texts {
	fields, others := t.fieldPointers(), other.fieldPointers()
	for i, field := range fields {
		if *field == "" {
			*field = *others[i]
		}
	}
	return t
}

// ForBoth returns t with the texts of Telegram that differ by default set to those of WhatsApp, which a project wrote for both.
func (t Texts) ForBoth() Texts {
	return t.orElse(Texts{
		TelegramWrongNumber: t.WrongNumber, TelegramExpired: t.Expired, TelegramUnknown: t.Unknown, TelegramShareContact: t.ShareContact,
	})
}

func (t *Texts) fieldPointers() []*string {
	return []*string{
		&t.Prepared, &t.Verified, &t.WrongNumber, &t.Expired, &t.Unknown, &t.Confirm, &t.TextChanged, &t.TapRefused, &t.TextRefused,
		&t.ButtonConfirm, &t.ShareContact, &t.NumberHidden, &t.EchoQuestion, &t.ButtonNotMe, &t.Declined, &t.ContactRefused, &t.NumberAnonymous,
		&t.Session, &t.SessionPurpose, &t.SessionBrowser, &t.SessionCode, &t.SessionLink,
		&t.TelegramWrongNumber, &t.TelegramExpired, &t.TelegramUnknown, &t.TelegramShareContact, &t.TelegramButton,
	}
}

// Fill returns a text with the project's name in its place.
func Fill(text, name string) string { return strings.ReplaceAll(text, "{name}", name) }

// FillPrepared returns a prepared text with its two places filled. The name is not searched for places.
func FillPrepared(text, name, code string) string {
	var filled strings.Builder
	filled.Grow(len(text) + len(name) + len(code))
	for {
		before, after, found := strings.Cut(text, "{")
		filled.WriteString(before)
		switch {
		case !found:
			return filled.String()
		case strings.HasPrefix(after, "name}"):
			filled.WriteString(name)
			after = after[len("name}"):]
		case strings.HasPrefix(after, "code}"):
			filled.WriteString(code)
			after = after[len("code}"):]
		default:
			filled.WriteByte('{')
		}
		text = after
	}
}
