package view

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"

	"rsc.io/qr"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// State is what a page shows, spelled as its events name it.
type State string

// The states.
const (
	// Ready waits for the user to open the messenger.
	Ready State = "ready"
	// Opened is Ready after the user did.
	Opened State = "opened"
	// Seen means that the message came, and that the contact is awaited.
	Seen State = "seen"
	// Confirm means that a tap on a button in the chat is awaited.
	Confirm State = "confirm"
	// Digits means that the number is proven, and that the digits in the chat are to be entered: here, or where the user started.
	Digits State = "digits"
	// Code means that a code was to be sent to the number, whatever became of it, and that its digits are to be entered.
	Code State = "code"
	// Verified means that the number is verified.
	Verified State = "verified"
	// OtherNumber means that the message came from another number.
	OtherNumber State = "other-number"
	// Hidden means that the sender's number is hidden.
	Hidden State = "hidden"
	// TextRefused means that the code came in a text that never counts.
	TextRefused State = "text-refused"
	// ContactRefused means that the contact was not the sender's own; the right one is awaited.
	ContactRefused State = "contact-refused"
	// Anonymous means that the sender's number is not that of a telephone line.
	Anonymous State = "anonymous"
	// NoQuestion means that the messenger does not deliver the question that the sender is to answer.
	NoQuestion State = "no-question"
	// Declined means that the owner of the number answered "Not me".
	Declined State = "declined"
	// Canceled means that the user gave up on the page.
	Canceled State = "canceled"
	// Expired means that the time ran out, or the tries to enter the digits.
	Expired State = "expired"
	// Unavailable means that no messenger works at the moment.
	Unavailable State = "unavailable"
)

// States returns all of them.
func States() []State {
	return []State{
		Ready, Opened, Seen, Confirm, Digits, Code, Verified, OtherNumber, Hidden, TextRefused, ContactRefused, Anonymous,
		NoQuestion, Declined, Canceled, Expired, Unavailable,
	}
}

// Choice is another messenger, and the page with it.
type Choice struct {
	Method verification.Method
	URL    string
}

// Problem is why the digits that the user entered lead no further.
type Problem string

// The problems.
const (
	// NotDigits means that the text cannot be a code. It counts as no try.
	NotDigits Problem = "not-digits"
	// WrongDigits means that the digits are others, which counts as a try.
	WrongDigits Problem = "wrong-digits"
	// NotChecked means that the digits could not be compared.
	NotChecked Problem = "not-checked"
)

// View is what one page shows. No field need be safe: all are escaped.
type View struct {
	// Language is that of the texts, one of Languages.
	Language string
	State    State
	// Progress grows with each state of a request, so that a page that knows more is not set back.
	Progress int
	// DisplayName is who asks.
	DisplayName string
	// Purpose is what the verification is for, in the project's words; empty if no one said it.
	Purpose string
	// TimeLeft is how long a pending request lasts.
	TimeLeft time.Duration
	// Scanned is set for a page that a phone opened by the QR code of another screen, and FromChat for one that was opened from the chat in
	// another browser: at neither did the user start.
	Scanned, FromChat bool
	// LogoURL is the picture above the page; empty for none.
	LogoURL string
	// MaskedNumber is the number to verify, with most digits hidden.
	MaskedNumber string
	// Method is the messenger to use, and Others are those to change to.
	Method verification.Method
	Others []Choice
	// Link opens the messenger, and QR is what the code on a large screen holds. Both are empty where there is nothing to open.
	Link, QR string
	// ConfirmLabel and NotMeLabel are on the buttons in the chat.
	ConfirmLabel, NotMeLabel string
	// Framed is set where a page of another site may have this one in a frame: links leave it, because messengers refuse frames.
	Framed bool
	// PageURL is the path of the page itself.
	PageURL string
	// ReturnURL is where the page of a request that ended leads back to; empty for nowhere.
	ReturnURL string
	// Test is set for a request of a test key: it has no messenger to open.
	Test bool
	// Simulated is set where Link leads to a simulated phone: the page says so, and stays open beside it.
	Simulated bool
	// Session is set for a request that its user may cancel, and whose digits the page may ask for.
	Session bool
	// AsksCode is set for a page that takes the code which was sent to the number, in whatever state until the request ends.
	AsksCode bool
	// TextURL is the page with a message in place of the code, offered after TextDelay; empty where the number is proven. CodeURL is the
	// way back from there.
	TextURL   string
	TextDelay time.Duration
	CodeURL   string
	// FormTargets are the sources of the policy that forms may lead to.
	FormTargets []string
	// Problem is set in the answer to digits that lead no further, and TriesLeft is how often they may still be entered.
	Problem   Problem
	TriesLeft int
	// TriesUsedUp is set for a page that is Expired because wrong digits were entered too often.
	TriesUsedUp bool
	// Answer is set for the answer to a form, whose address cannot be loaded again.
	Answer bool
	// Accent is #RRGGBB, and OnAccent the colour of text on it; both empty for those that are built in.
	Accent, OnAccent string
}

var (
	//go:embed style.css
	styleFile string
	//go:embed script.js
	scriptFile string

	style  = squeeze(styleFile)
	script = squeeze(scriptFile)
)

// squeeze removes what only people read from style and script: indentation, empty lines, and lines that are comments.
func squeeze(source string) string {
	var kept []string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "//") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// ContentSecurityPolicy returns the policy of a page: style and script by their hashes, pictures and calls of our own, and frames
// of the given origins alone. Its forms lead to FormTargets: browsers hold the redirects that follow to that, too.
func ContentSecurityPolicy(v *View, frameAncestors []string) string {
	ancestors := "'none'"
	if len(frameAncestors) > 0 {
		ancestors = strings.Join(frameAncestors, " ")
	}
	styles := []string{hashOf(style)}
	for _, own := range v.ownStyles() {
		styles = append(styles, hashOf(own))
	}
	forms := "'none'"
	if len(v.FormTargets) > 0 {
		forms = strings.Join(v.FormTargets, " ")
	}
	return "default-src 'none'; style-src " + strings.Join(styles, " ") + "; script-src " + hashOf(script) +
		"; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action " + forms + "; frame-ancestors " + ancestors
}

func hashOf(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// isColour reports whether a text is #RRGGBB.
func isColour(text string) bool {
	if len(text) != len("#RRGGBB") || text[0] != '#' {
		return false
	}
	return strings.Trim(text[1:], "0123456789abcdefABCDEF") == ""
}

// colours returns the style of the project's own colours; empty without any.
func (v *View) colours() string {
	if !isColour(v.Accent) || !isColour(v.OnAccent) {
		return ""
	}
	return ":root{--accent:" + v.Accent + ";--on-accent:" + v.OnAccent + "}"
}

// ownStyles returns the styles of this page alone.
func (v *View) ownStyles() []string {
	var styles []string
	if colours := v.colours(); colours != "" {
		styles = append(styles, colours)
	}
	if v.TextURL != "" && v.TextDelay > 0 {
		styles = append(styles, fmt.Sprintf(":root{--text-delay:%ds}", (v.TextDelay+time.Second-1)/time.Second))
	}
	return styles
}

// document is a page that is being written.
type document struct {
	strings.Builder

	view  *View
	texts *Texts
}

// text returns a text that is safe between tags and in quoted attributes.
func text(untrusted string) string { return html.EscapeString(untrusted) }

// link returns a URL that is safe in an attribute: one of the web, or a path of our own. Any other is left out.
func link(untrusted string) string {
	if strings.HasPrefix(untrusted, "https://") || strings.HasPrefix(untrusted, "http://") ||
		strings.HasPrefix(untrusted, "/") && !strings.HasPrefix(untrusted, "//") && !strings.HasPrefix(untrusted, "/\\") {
		return text(untrusted)
	}
	return ""
}

// Render returns the page.
func Render(v *View) ([]byte, error) {
	t, found := allTexts[v.Language]
	if !found {
		return nil, fmt.Errorf("no texts in language %q", v.Language)
	}
	d := &document{view: v, texts: &t}
	d.Grow(16 << 10)
	d.writeHead()
	d.writeBody()
	if v.QR != "" && d.offersLink() {
		picture, err := drawQR(v.QR)
		if err != nil {
			return nil, fmt.Errorf("draw QR code: %w", err)
		}
		return []byte(strings.Replace(d.String(), qrPlace, picture, 1)), nil
	}
	return []byte(d.String()), nil
}

// qrPlace is where the QR code goes; no text that was escaped holds it.
const qrPlace = "<qr>"

// drawQR returns a QR code as a picture of the document.
func drawQR(content string) (string, error) {
	code, err := qr.Encode(content, qr.L)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller says what was to be drawn
	}
	code.Scale = 4
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG()), nil
}

// isRightToLeft reports whether a language is written from right to left.
func isRightToLeft(language string) bool { return language == "ar" }

func (d *document) writeHead() {
	v := d.view
	direction := "ltr"
	if isRightToLeft(v.Language) {
		direction = "rtl"
	}
	fmt.Fprintf(d, `<!DOCTYPE html><html lang="%s" dir="%s"><head><meta charset="utf-8">`+
		`<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">`+
		`<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,"><title>%s</title>`,
		text(v.Language), direction, text(d.fill(d.stateTexts().Title)))
	fmt.Fprintf(d, "<style>%s</style>", style)
	for _, own := range v.ownStyles() {
		fmt.Fprintf(d, "<style>%s</style>", own)
	}
	switch {
	case v.State == Verified && v.ReturnURL != "":
		fmt.Fprintf(d, `<noscript><meta http-equiv="refresh" content="3;url=%s"></noscript>`, link(v.ReturnURL))
	case v.isFinal(), d.asksDigits(): // what the user types stays
	case v.Answer:
		fmt.Fprintf(d, `<noscript><meta http-equiv="refresh" content="5;url=%s"></noscript>`, link(v.PageURL))
	default:
		d.WriteString(`<noscript><meta http-equiv="refresh" content="5"></noscript>`)
	}
	d.WriteString("</head>")
}

// isFinal reports whether the page never changes again.
func (v *View) isFinal() bool {
	return v.State == Verified || v.State == Declined || v.State == Canceled || v.State == Expired
}

// offersLink reports whether the page has the button that opens the messenger with a message.
func (d *document) offersLink() bool {
	switch d.view.State {
	case Ready, Opened, OtherNumber, TextRefused, NoQuestion:
		return d.view.Link != "" && !d.view.AsksCode
	default:
		return false
	}
}

func (d *document) writeBody() {
	v, t := d.view, d.texts
	fmt.Fprintf(d, `<body data-state="%s" data-progress="%d" data-page="%s"`, text(string(v.State)), v.Progress, link(v.PageURL))
	if v.isFinal() {
		d.WriteString(` data-final`)
	}
	d.WriteString(`><header>`)
	if v.LogoURL != "" {
		fmt.Fprintf(d, `<img class="logo" src="%s" alt="">`, link(v.LogoURL))
	}
	fmt.Fprintf(d, `<p class="name"><bdi>%s</bdi></p>`, text(v.DisplayName))
	if v.Purpose != "" {
		fmt.Fprintf(d, `<p class="purpose">%s</p>`, d.fillHTML(t.Purpose))
	}
	if v.Test {
		fmt.Fprintf(d, `<p class="test">%s</p>`, text(t.Test))
	}
	if v.Simulated { // developers alone see it, in the language of all that dev prints
		d.WriteString(`<p class="test" lang="en" dir="ltr">This is phoneproof dev: ` +
			`messengers are simulated, and nothing is true of a real phone.</p>`)
	}
	fmt.Fprintf(d, `</header><main id="main" class="%s"><div>`, text(string(v.State)))
	d.writeTop()
	state := d.stateTexts()
	fmt.Fprintf(d, `<h1 id="title" tabindex="-1">%s</h1><p>%s</p>`, text(d.fill(state.Title)), d.fillHTML(state.Text))
	if d.offersLink() {
		d.writeSteps()
		d.writeOpen(t.Open, "open")
	}
	if slices.Contains([]State{Seen, Confirm, ContactRefused, Anonymous}, v.State) {
		d.writeOpen(t.OpenAgain, "again")
	}
	if d.asksDigits() {
		d.writeDigits()
	}
	d.writeWayOfCode()
	d.writeReturn()
	d.writeOthers()
	d.writeCancel()
	d.writeWrongNumber()
	d.WriteString(`</div>`)
	if v.QR != "" && d.offersLink() {
		fmt.Fprintf(d, `<figure class="scan"><h2>%s</h2><img src="%s" alt="%s"><figcaption>%s</figcaption></figure>`,
			d.fillHTML(t.ScanTitle), qrPlace, text(d.fill(t.ScanAlt)), d.fillHTML(t.Scan))
	}
	if warning := d.warning(); warning != "" {
		fmt.Fprintf(d, `<footer><p>%s</p></footer>`, text(d.fill(warning)))
	}
	fmt.Fprintf(d, `</main><p id="news" class="news" role="status"></p><script>%s</script></body></html>`, script)
}

// writeTop writes how far the user has come, and how long a pending request lasts.
func (d *document) writeTop() {
	v, t := d.view, d.texts
	d.WriteString(`<p class="top">`)
	if step := stateSteps[v.State]; step != "" {
		fmt.Fprintf(d, `<span class="mark">%s</span>`, text(strings.ReplaceAll(t.Step, "{step}", step)))
	} else {
		fmt.Fprintf(d, `<span class="mark" aria-hidden="true">%s</span>`, stateMarks[v.State])
	}
	if !v.isFinal() && v.State != Unavailable {
		minutes, left, hidden := strconv.Itoa(int(v.TimeLeft/time.Minute)), t.LastMinute, ""
		if v.TimeLeft >= time.Minute {
			left = strings.ReplaceAll(t.TimeLeft, "{minutes}", minutes)
		}
		if d.asksDigits() { // without a script this page is not loaded again, and the time would be wrong
			hidden = " hidden"
		}
		fmt.Fprintf(d, ` <span id="left" data-left="%d" data-text="%s" data-last="%s"%s>%s</span>`,
			max(0, int(v.TimeLeft/time.Second)), text(t.TimeLeft), text(t.LastMinute), hidden, text(left))
	}
	d.WriteString(`</p>`)
}

// writeSteps writes the three sentences.
func (d *document) writeSteps() {
	last := d.texts.StepBack
	switch {
	case d.view.Session && (d.view.ReturnURL == "" || d.view.Scanned):
		last = d.texts.StepDigitsElsewhere
	case d.view.Session:
		last = d.texts.StepDigits
	}
	fmt.Fprintf(d, `<ol class="steps"><li>%s</li><li>%s</li><li>%s</li></ol>`,
		d.fillHTML(d.texts.StepOpen), d.fillHTML(d.texts.StepSend), d.fillHTML(last))
}

// writeOpen writes the button that opens the messenger.
func (d *document) writeOpen(label, id string) {
	if d.view.Link == "" {
		return
	}
	fmt.Fprintf(d, `<p><a class="button" id="%s" href="%s" rel="noreferrer"%s>%s</a></p>`,
		id, link(d.view.Link), d.newTabAttribute(), text(d.fill(label)))
}

// newTabAttribute returns the attribute of the link that opens the messenger, which is a page only where it is simulated.
func (d *document) newTabAttribute() string {
	if d.view.Simulated {
		return ` target="_blank"`
	}
	return d.targetAttribute("_blank")
}

// targetAttribute returns the attribute that names where a link opens; empty outside of frames.
func (d *document) targetAttribute(name string) string {
	if !d.view.Framed {
		return ""
	}
	return ` target="` + name + `"`
}

// writeReturn writes the way back of a page that leads no further: its request ended, or no messenger is left to try.
func (d *document) writeReturn() {
	v, t := d.view, d.texts
	stuck := (v.State == Hidden || v.State == Anonymous || v.State == NoQuestion) && len(v.Others) == 0
	if v.ReturnURL == "" || !v.isFinal() && !stuck {
		return
	}
	label := t.Again
	if v.State == Verified {
		label = t.Return
	}
	fmt.Fprintf(d, `<p><a class="button" id="return" href="%s" rel="noreferrer"%s>%s</a></p>`,
		link(v.ReturnURL), d.targetAttribute("_top"), text(d.fill(label)))
}

// writeOthers writes the links to the same page with another messenger: as the main button where this one cannot help. From the page of
// a code that of a message leads to them.
func (d *document) writeOthers() {
	class := "switch"
	switch {
	case d.view.State == Hidden:
		class = "button switch"
	case d.view.AsksCode:
		return
	}
	for _, other := range d.view.Others {
		label := strings.ReplaceAll(d.texts.Switch, "{app}", appNames[other.Method])
		fmt.Fprintf(d, `<p><a class="%s" href="%s">%s</a></p>`, class, link(other.URL), text(d.fill(label)))
	}
}

// appNames are the names of the messengers.
var appNames = map[verification.Method]string{verification.WhatsApp: "WhatsApp", verification.Telegram: "Telegram"}

// stateSteps are which of the three steps the user takes next, as they are numbered on the page.
var stateSteps = map[State]string{Ready: "1", Opened: "2", Seen: "2", Confirm: "2", Digits: "3"}

// stateMarks are the signs above the other titles. They say nothing that the title does not.
var stateMarks = map[State]string{
	Code: "•••", Verified: "✓", OtherNumber: "!", Hidden: "!", TextRefused: "!", ContactRefused: "!", Anonymous: "!", NoQuestion: "!",
	Declined: "✕", Canceled: "✕", Expired: "✕", Unavailable: "!",
}

// fill returns a text with its places filled.
func (d *document) fill(t string) string {
	return strings.NewReplacer(
		"{app}", appNames[d.view.Method], "{name}", d.view.DisplayName, "{number}", d.view.MaskedNumber,
		"{confirm}", d.view.ConfirmLabel, "{notMe}", d.view.NotMeLabel, "{tries}", strconv.Itoa(d.view.TriesLeft), "*", "",
	).Replace(t)
}

// fillHTML returns a text with its places filled as HTML: *words* are strong, and names and numbers keep their own direction.
func (d *document) fillHTML(t string) string {
	filled := strings.NewReplacer(
		"{app}", appNames[d.view.Method],
		"{name}", "<bdi>"+text(d.view.DisplayName)+"</bdi>",
		"{number}", `<bdi dir="ltr">`+text(d.view.MaskedNumber)+"</bdi>",
		"{confirm}", "<bdi>"+text(d.view.ConfirmLabel)+"</bdi>",
		"{notMe}", "<bdi>"+text(d.view.NotMeLabel)+"</bdi>",
		"{purpose}", "<bdi>"+text(d.view.Purpose)+"</bdi>",
	)
	parts := strings.Split(text(t), "*")
	for i := range parts {
		parts[i] = filled.Replace(parts[i])
		if i%2 == 1 && len(parts)%2 == 1 {
			parts[i] = "<strong>" + parts[i] + "</strong>"
		}
	}
	return strings.Join(parts, "")
}
