package view

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// StateTexts are the title and the sentence of a state.
type StateTexts struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Texts are those of the page in one language. The English ones are the original; no native speaker has read the others yet.
//
// The places are {app} for the messenger, {name} for who asks, {number}, {purpose}, {confirm} and {notMe} for buttons of the chat, {tries}
// for how often digits may still be entered, {step} and {minutes}. What stands between two * is emphasized.
type Texts struct {
	// Step numbers what the user does next, as StepOpen, StepSend and StepBack are numbered.
	Step     string `json:"step"`
	StepOpen string `json:"stepOpen"`
	StepSend string `json:"stepSend"`
	StepBack string `json:"stepBack"`
	// StepDigits is in the place of StepBack where digits come, and StepDigitsElsewhere where they are to be entered on another page.
	StepDigits          string `json:"stepDigits"`
	StepDigitsElsewhere string `json:"stepDigitsElsewhere"`
	// Open is the button, and OpenAgain the one after the message came.
	Open      string `json:"open"`
	OpenAgain string `json:"openAgain"`
	ScanTitle string `json:"scanTitle"`
	Scan      string `json:"scan"`
	ScanAlt   string `json:"scanAlt"`
	// Switch leads to the same page with {app}.
	Switch string `json:"switch"`
	Return string `json:"return"`
	Again  string `json:"again"`
	// WrongNumber leads back to where the number was entered.
	WrongNumber string `json:"wrongNumber"`
	// Warning stands below the page before a message came, WarningChat while the chat asks for more, and WarningDigits below the digits.
	Warning       string `json:"warning"`
	WarningChat   string `json:"warningChat"`
	WarningDigits string `json:"warningDigits"`
	Purpose       string `json:"purpose"`
	// TimeLeft has {minutes}, and LastMinute is what follows 1.
	TimeLeft   string `json:"timeLeft"`
	LastMinute string `json:"lastMinute"`
	// Test stands above each page of a test key's request.
	Test string `json:"test"`
	// DigitsLabel names the field of the digits, and DigitsSend its button. NotDigits, WrongDigits and NotChecked are its problems.
	DigitsLabel string `json:"digitsLabel"`
	DigitsSend  string `json:"digitsSend"`
	NotDigits   string `json:"notDigits"`
	WrongDigits string `json:"wrongDigits"`
	NotChecked  string `json:"notChecked"`
	// CodeLabel names the field of a code that was sent to {number}, and NotCode is its problem. CodeElsewhere is the sentence of Code where
	// the page has no field.
	CodeLabel     string `json:"codeLabel"`
	NotCode       string `json:"notCode"`
	CodeElsewhere string `json:"codeElsewhere"`
	// NoCode is the sentence for who waits for a code, SendText leads to a message in its place, and EnterCode back.
	NoCode    string `json:"noCode"`
	SendText  string `json:"sendText"`
	EnterCode string `json:"enterCode"`
	// DigitsElsewhere is the sentence of Digits where the page has no field for them, and DigitsBack in a browser in which the user did not
	// start.
	DigitsElsewhere string `json:"digitsElsewhere"`
	DigitsBack      string `json:"digitsBack"`
	// Cancel ends a pending request.
	Cancel string `json:"cancel"`
	// TriesUsedUp are those of Expired after too many wrong digits.
	TriesUsedUp StateTexts `json:"triesUsedUp"`

	States map[State]StateTexts `json:"states"`
}

//go:embed languages/*.json
var languageFiles embed.FS

var allTexts = readLanguages()

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

// Languages returns the languages of the page, sorted.
func Languages() []string {
	languages := make([]string, 0, len(allTexts))
	for tag := range allTexts {
		languages = append(languages, tag)
	}
	slices.Sort(languages)
	return languages
}

// english is the language of a page that no other suits.
const english = "en"

// MatchLanguage returns the language of a page: the one of allowed, or of all if that is empty, that suits locale best, else the
// one that suits an Accept-Language header best, else the first allowed one or English.
func MatchLanguage(allowed []string, locale, accepted string) string {
	m := matcherOf(allowed)
	if locale != "" {
		if tag, err := language.Parse(locale); err == nil {
			if _, i, confidence := m.matcher.Match(tag); confidence > language.Low {
				return m.languages[i]
			}
		}
	}
	if len(accepted) <= maxAcceptLanguage {
		if tags, _, err := language.ParseAcceptLanguage(accepted); err == nil && len(tags) > 0 {
			if _, i, confidence := m.matcher.Match(tags...); confidence > language.Low {
				return m.languages[i]
			}
		}
	}
	return m.languages[0]
}

// maxAcceptLanguage limits the header that is read, in bytes.
const maxAcceptLanguage = 256

// languageMatcher finds the language of a page. Its first one is for all that none suits.
type languageMatcher struct {
	matcher   language.Matcher
	languages []string
}

var matchers sync.Map // of languageMatcher, by the allowed languages

func matcherOf(allowed []string) languageMatcher {
	key := strings.Join(allowed, " ")
	if known, found := matchers.Load(key); found {
		return known.(languageMatcher) //nolint:forcetypeassert // nothing else is stored
	}
	chosen := slices.DeleteFunc(slices.Clone(allowed), func(tag string) bool { _, found := allTexts[tag]; return !found })
	if len(chosen) == 0 {
		chosen = append([]string{english}, slices.DeleteFunc(Languages(), func(tag string) bool { return tag == english })...)
	}
	tags := make([]language.Tag, len(chosen))
	for i, tag := range chosen {
		tags[i] = language.Make(tag)
	}
	made := languageMatcher{language.NewMatcher(tags), chosen}
	matchers.Store(key, made)
	return made
}

// stateTexts returns the texts of the page's state.
func (d *document) stateTexts() StateTexts {
	shown := d.texts.States[d.view.State]
	switch {
	case d.view.State == Expired && d.view.TriesUsedUp:
		return d.texts.TriesUsedUp
	case d.view.State == Code && !d.asksDigits():
		shown.Text = d.texts.CodeElsewhere
	case d.view.State == Digits && !d.asksDigits():
		shown.Text = d.texts.DigitsElsewhere
	case d.view.State == Digits && (d.view.Scanned || d.view.FromChat):
		shown.Text = d.texts.DigitsBack
	}
	return shown
}

// warning returns what a person should do who has the page from someone else; empty if there is nothing to do any more.
func (d *document) warning() string {
	switch d.view.State {
	case Verified, Declined, Canceled, Expired:
		return ""
	case Seen, Confirm, ContactRefused:
		return d.texts.WarningChat
	case Digits, Code:
		return d.texts.WarningDigits
	default:
		return d.texts.Warning
	}
}
