package view

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// maxPage is what a page may have, in bytes.
const maxPage = 30 << 10

// fullView is a page with everything.
func fullView(language string, state State) *View {
	link := "https://wa.me/15550100100?text=" + strings.Repeat("%D9%84", 150)
	return &View{
		Language: language, State: state, DisplayName: "Ada's Books", MaskedNumber: "+49*********07", Method: verification.WhatsApp,
		Others: []Choice{{verification.Telegram, "/v/TICKET?method=TELEGRAM"}}, Link: link, QR: link[:500],
		PageURL: "/v/TICKET", ReturnURL: "https://shop.example/back?requestId=x&status=VERIFIED",
		ConfirmLabel: "Confirm", NotMeLabel: "Not me", Accent: "#0b6e4f", OnAccent: "#ffffff",
		Session: true, FormTargets: []string{"'self'", "https://shop.example"}, Problem: WrongDigits, TriesLeft: 3,
		Purpose: "Sign in", TimeLeft: 9*time.Minute + 59*time.Second,
		AsksCode: state == Code,
	}
}

func render(t testing.TB, v *View) string {
	t.Helper()
	page, err := Render(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// visit calls found for each element of a document.
func visitElements(n *html.Node, found func(*html.Node)) {
	if n.Type == html.ElementNode {
		found(n)
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		visitElements(child, found)
	}
}

func attributeOf(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestRender_everyStateInEveryLanguage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Languages()).To(Equal([]string{"ar", "de", "en", "es", "fr", "hi", "id", "it", "pt", "ru", "tr", "zh"}))
	largest := 0
	for _, language := range Languages() {
		for _, state := range States() {
			v := fullView(language, state)
			v.DisplayName = strings.Repeat("書", 64)
			page := render(t, v)
			largest = max(largest, len(page))
			g.Expect(page).NotTo(MatchRegexp(`\{(app|name|number|confirm|notMe|tries|purpose|step)\}`), "%s %s", language, state)
			g.Expect(page).To(ContainSubstring(`lang="`+language+`"`), "%s %s", language, state)
			g.Expect(page).NotTo(ContainSubstring(qrPlace))
			g.Expect(strings.Contains(page, `dir="rtl"`)).To(Equal(language == "ar"), "%s %s", language, state)
			g.Expect(strings.Contains(page, `http-equiv="refresh"`)).To(Equal(!slices.Contains([]State{Digits, Code, Declined, Canceled, Expired}, state)), "%s %s", language, state)
		}
	}
	g.Expect(largest).To(BeNumerically("<=", maxPage))
	t.Logf("largest page: %d bytes", largest)
}

func TestTexts_areComplete(t *testing.T) {
	g := NewWithT(t)
	places := regexp.MustCompile(`\{[a-z]+\}`)
	for language, texts := range allTexts {
		for name, text := range map[string]string{
			"stepOpen": texts.StepOpen, "stepSend": texts.StepSend, "stepBack": texts.StepBack, "open": texts.Open,
			"openAgain": texts.OpenAgain, "scan": texts.Scan, "scanAlt": texts.ScanAlt, "switch": texts.Switch, "return": texts.Return,
			"again": texts.Again, "warning": texts.Warning, "digitsLabel": texts.DigitsLabel, "digitsSend": texts.DigitsSend,
			"notDigits": texts.NotDigits, "wrongDigits": texts.WrongDigits, "notChecked": texts.NotChecked,
			"codeLabel": texts.CodeLabel, "notCode": texts.NotCode, "noCode": texts.NoCode, "sendText": texts.SendText, "enterCode": texts.EnterCode,
			"digitsElsewhere": texts.DigitsElsewhere, "digitsBack": texts.DigitsBack, "cancel": texts.Cancel,
			"stepDigits": texts.StepDigits, "stepDigitsElsewhere": texts.StepDigitsElsewhere, "scanTitle": texts.ScanTitle,
			"warningChat": texts.WarningChat, "warningDigits": texts.WarningDigits, "lastMinute": texts.LastMinute,
			"triesUsedUp.title": texts.TriesUsedUp.Title, "triesUsedUp.text": texts.TriesUsedUp.Text,
		} {
			g.Expect(text).NotTo(BeEmpty(), "%s %s", language, name)
			g.Expect(strings.Count(text, "*")%2).To(BeZero(), "%s %s", language, name)
		}
		g.Expect(texts.StepSend).To(ContainSubstring("*"), "%s: that they must tap Send is emphasized", language)
		g.Expect(texts.Switch).To(ContainSubstring("{app}"), language)
		g.Expect(texts.WrongDigits).To(ContainSubstring("{tries}"), language)
		g.Expect(texts.Step).To(ContainSubstring("{step}"), language)
		g.Expect(texts.TimeLeft).To(ContainSubstring("{minutes}"), language)
		g.Expect(texts.Purpose).To(ContainSubstring("{purpose}"), language)
		g.Expect(texts.WrongNumber).To(ContainSubstring("{name}"), language)
		for _, text := range []string{
			texts.DigitsElsewhere, texts.DigitsBack, texts.States[Digits].Text, texts.CodeElsewhere, texts.States[Code].Text,
		} {
			g.Expect(text).To(And(ContainSubstring("{app}"), ContainSubstring("*")), "%s: that the digits are secret is emphasized", language)
		}
		for _, state := range States() {
			shown, original := texts.States[state], allTexts[english].States[state]
			g.Expect(shown.Title).NotTo(BeEmpty(), "%s %s", language, state)
			g.Expect(shown.Text).NotTo(BeEmpty(), "%s %s", language, state)
			for _, place := range places.FindAllString(shown.Title+shown.Text, -1) {
				g.Expect(place).To(BeElementOf("{app}", "{name}", "{number}", "{confirm}", "{notMe}"), "%s %s", language, state)
			}
			for _, place := range []string{"{number}", "{confirm}", "{notMe}"} {
				g.Expect(strings.Contains(shown.Text, place)).To(Equal(strings.Contains(original.Text, place)), "%s %s %s", language, state, place)
			}
		}
	}
}

func TestRender_offersWhatTheStateNeeds(t *testing.T) {
	for state, want := range map[State]struct{ button, code, back bool }{
		Ready: {true, true, false}, Opened: {true, true, false}, OtherNumber: {true, true, false},
		Seen: {true, false, false}, Confirm: {true, false, false}, Digits: {false, false, false}, Code: {false, false, false},
		Verified: {false, false, true}, Declined: {false, false, true}, Canceled: {false, false, true}, Expired: {false, false, true},
		TextRefused: {true, true, false}, NoQuestion: {true, true, false}, ContactRefused: {true, false, false}, Anonymous: {true, false, false},
		Hidden: {false, false, false}, Unavailable: {false, false, false},
	} {
		g := NewWithT(t)
		page := render(t, fullView("en", state))
		g.Expect(strings.Contains(page, "https://wa.me/")).To(Equal(want.button), "button in %s", state)
		g.Expect(strings.Contains(page, "data:image/png")).To(Equal(want.code), "QR code in %s", state)
		g.Expect(strings.Contains(page, `id="return"`)).To(Equal(want.back), "way back in %s", state)
	}
}

// TestRender_asksForDigits where it can lead on with them, and nowhere else.
func TestRender_asksForDigits(t *testing.T) {
	g := NewWithT(t)
	v := fullView("en", Digits)
	page := render(t, v)
	g.Expect(page).To(And(
		ContainSubstring(`<form method="post" action="/v/TICKET/confirm">`), ContainSubstring(`<label for="digits">`),
		MatchRegexp(`<input id="digits" name="code" dir="ltr" inputmode="numeric" autocomplete="one-time-code" required [^>]+ aria-invalid="true" aria-describedby="problem" autofocus>`),
		ContainSubstring(`<p id="problem" role="alert"><span class="icon" aria-hidden="true">!</span> These digits are wrong. Tries left: 3.</p>`),
		ContainSubstring("enter them here"), Not(ContainSubstring("<noscript>"))))
	for problem, want := range map[Problem]string{NotDigits: "Enter the six digits from the chat.</p>", NotChecked: "could not be checked", "": ""} {
		v.Problem = problem
		page = render(t, v)
		g.Expect(page).To(ContainSubstring(want))
		g.Expect(strings.Contains(page, "autofocus")).To(Equal(problem != ""))
	}
	v.Framed = true
	g.Expect(render(t, v)).To(ContainSubstring(`action="/v/TICKET/confirm" target="_top"`), "the client's page takes the whole tab")
	v.ReturnURL = ""
	page = render(t, v)
	g.Expect(page).NotTo(ContainSubstring("<input"), "it could lead nowhere")
	g.Expect(page).To(And(ContainSubstring("in the app or on the website"), ContainSubstring(`http-equiv="refresh" content="5"`)))
}

// TestRender_asksForTheCode until the request ends, beside what is said of a message; and shows the way without it after its time.
func TestRender_asksForTheCode(t *testing.T) {
	g := NewWithT(t)
	codeView := func(state State) *View {
		v := fullView("en", state)
		v.AsksCode, v.TextURL, v.TextDelay = true, "/v/TICKET?method=WHATSAPP", 20*time.Second
		return v
	}
	page := render(t, codeView(Code))
	g.Expect(page).To(And(
		ContainSubstring(`<label for="digits">Code with eight digits</label>`), ContainSubstring(`inputmode="numeric" autocomplete="one-time-code"`),
		ContainSubstring(` pattern="`+codePattern+`"`),
		ContainSubstring("Enter it here."), Not(ContainSubstring("maxlength")), ContainSubstring("<style>:root{--text-delay:20s}</style>"),
		ContainSubstring(`<p class="later soon">If no code has come,`), ContainSubstring(`href="/v/TICKET?method=WHATSAPP">Send the text instead</a>`)))
	fields := map[bool][]State{}
	for _, state := range States() {
		v := codeView(state)
		v.Problem = NotDigits
		page = render(t, v)
		field := strings.Contains(page, `<input id="digits"`)
		fields[field] = append(fields[field], state)
		g.Expect(strings.Contains(page, "Enter the eight digits of the code.</p>")).To(Equal(field && state != Digits), "%s", state)
		g.Expect(page).NotTo(Or(ContainSubstring(`id="open"`), ContainSubstring("data:image/png")), "%s: a message has a page of its own", state)
	}
	g.Expect(fields[false]).To(ConsistOf(Verified, Declined, Canceled, Expired))
}

// TestRender_asksForDigitsWhereTheUserStarted: another browser is named only in one in which the user did not start.
func TestRender_asksForDigitsWhereTheUserStarted(t *testing.T) {
	for name, c := range map[string]struct {
		change           func(*View)
		step, digitsText string
	}{
		"the browser where the user started": {func(*View) {}, "Come back and enter them here.", "enter them here."},
		"a phone that scanned the QR code":   {func(v *View) { v.Scanned = true }, "Enter them where you started.", "in the browser where you started."},
		"another browser, from the chat":     {func(v *View) { v.FromChat = true }, "", "in the browser where you started."},
		"without a way back":                 {func(v *View) { v.ReturnURL = "" }, "Enter them where you started.", "in the app or on the website."},
		"at the level Possession":            {func(v *View) { v.Session = false }, "It goes on by itself.", ""},
	} {
		v := fullView("en", Ready)
		c.change(v)
		NewWithT(t).Expect(render(t, v)).To(ContainSubstring(c.step), name)
		v.State = Digits
		NewWithT(t).Expect(render(t, v)).To(ContainSubstring(c.digitsText), name)
	}
	v := fullView("en", Digits)
	v.Scanned = true
	NewWithT(t).Expect(render(t, v)).To(ContainSubstring(`action="/v/TICKET/confirm?scanned"`), "also in the answer to wrong digits")
}

// TestRender_leadsBackFromAWrongNumber where the user reads the number first, below the other ways out.
func TestRender_leadsBackFromAWrongNumber(t *testing.T) {
	const form = `<form method="post" action="/v/TICKET/wrong-number"><button class="plain">Wrong number? Back to Ada&#39;s Books</button></form>`
	g := NewWithT(t)
	for _, state := range States() {
		page := render(t, fullView("en", state))
		g.Expect(strings.Contains(page, form)).To(Equal(slices.Contains([]State{Ready, Code, OtherNumber, Hidden}, state)), "%s", state)
	}
	v := fullView("en", Ready)
	page := render(t, v)
	g.Expect(strings.Index(page, form)).To(BeNumerically(">", strings.Index(page, `action="/v/TICKET/cancel"`)))
	v.Framed = true
	g.Expect(render(t, v)).To(ContainSubstring(`/wrong-number" target="_top"`), "the client's page takes the whole tab")
	v.ReturnURL = ""
	g.Expect(render(t, v)).NotTo(ContainSubstring("wrong-number"), "there is no way back")
}

// TestRender_makesTheOtherMessengerTheMainButton where this one cannot help.
func TestRender_makesTheOtherMessengerTheMainButton(t *testing.T) {
	for _, state := range []State{Ready, Opened, OtherNumber, Hidden} {
		isMain := strings.Contains(render(t, fullView("en", state)), `<a class="button switch" href="/v/TICKET?method=TELEGRAM">`)
		NewWithT(t).Expect(isMain).To(Equal(state == Hidden), "%s", state)
	}
}

// TestRender_numbersStepsInOneWay, warns of what may still be done, and shows purpose and time.
func TestRender_numbersStepsInOneWay(t *testing.T) {
	g := NewWithT(t)
	for _, state := range States() {
		v := fullView("en", state)
		page := render(t, v)
		step := map[State]string{Ready: "Step 1 of 3", Opened: "Step 2 of 3", Seen: "Step 2 of 3", Confirm: "Step 2 of 3", Digits: "Step 3 of 3"}[state]
		g.Expect(strings.Count(page, " of 3<")).To(Equal(min(1, len(step))), "%s", state)
		g.Expect(page).To(ContainSubstring(step), "%s", state)
		warning := "Then close it and send nothing"
		switch state {
		case Seen, Confirm, ContactRefused:
			warning = "do nothing more in the chat"
		case Digits, Code:
			warning = "tell no one the digits"
		case Verified, Declined, Canceled, Expired:
			warning = "</div></main>"
		default:
		}
		g.Expect(page).To(ContainSubstring(warning), "%s", state)
		g.Expect(page).To(ContainSubstring(`<p class="purpose">Purpose: <bdi>Sign in</bdi></p></header>`))
		g.Expect(strings.Contains(page, `<span id="left"`)).To(Equal(!v.isFinal() && state != Unavailable), "%s", state)
	}
	v := fullView("en", Ready)
	v.Purpose = ""
	g.Expect(render(t, v)).NotTo(ContainSubstring("Purpose"))
}

// TestRender_showsTheTimeLeft in whole minutes, and never more than there is.
func TestRender_showsTheTimeLeft(t *testing.T) {
	for left, want := range map[time.Duration]string{
		10 * time.Minute: ">Time left: 10 min<", 10*time.Minute - 1: ">Time left: 9 min<", time.Minute: ">Time left: 1 min<",
		time.Minute - 1: ">Less than a minute left<", -time.Second: ">Less than a minute left<",
	} {
		v := fullView("en", Ready)
		v.TimeLeft = left
		NewWithT(t).Expect(render(t, v)).To(ContainSubstring(want), left.String())
	}
	page := render(t, fullView("en", Digits))
	NewWithT(t).Expect(page).To(ContainSubstring(`data-last="Less than a minute left" hidden>`), "a page that does not load itself counts by its script")
	NewWithT(t).Expect(page).NotTo(MatchRegexp(`id="left"[^>]*(role|aria-live)`), "nothing of it is read out")
}

// TestDigitsPattern_takesWhatIsACode as far as browsers are to decide that.
func TestDigitsPattern_takesWhatIsACode(t *testing.T) {
	pattern := regexp.MustCompile(`^(?:` + digitsPattern + `)$`)
	for _, code := range []string{"123456", "123 456", " 1 2 3-4 5 6 ", "123\u00a0456", "١٢٣٤٥٦", "१२३ ४५६"} {
		_, valid := verification.ParseSessionCode(code)
		NewWithT(t).Expect(valid).To(BeTrue(), code)
		code = strings.ReplaceAll(code, "\u00a0", " ") // \s of JavaScript has it, and that of RE2 does not
		NewWithT(t).Expect(pattern.MatchString(code)).To(BeTrue(), code)
	}
	code := regexp.MustCompile(`^(?:` + codePattern + `)$`)
	for text, taken := range map[string]bool{
		"12345678": true, "1234 5678": true, "١٢٣٤-٥٦٧٨": true, "123456": true, "1234567": false, "123456789": false, "1234567x": false,
	} {
		NewWithT(t).Expect(code.MatchString(text)).To(Equal(taken), text)
	}
	for _, other := range []string{"", "12345", "1234567", "12345x", "123456 7"} {
		_, valid := verification.ParseSessionCode(other)
		NewWithT(t).Expect(valid || pattern.MatchString(other)).To(BeFalse(), other)
	}
}

func TestRender_cancelsWhatIsPending(t *testing.T) {
	for _, state := range States() {
		v := fullView("en", state)
		NewWithT(t).Expect(strings.Contains(render(t, v), `<form method="post" action="/v/TICKET/cancel">`)).To(Equal(!v.isFinal()), "%s", state)
		v.Session = false
		NewWithT(t).Expect(render(t, v)).NotTo(ContainSubstring("/cancel"), "%s at the level Possession", state)
	}
}

func TestRender_saysWhyItEnded(t *testing.T) {
	g := NewWithT(t)
	v := fullView("en", Expired)
	g.Expect(render(t, v)).To(ContainSubstring("Your time is up"))
	v.TriesUsedUp = true
	g.Expect(render(t, v)).To(And(ContainSubstring("Too many wrong digits"), Not(ContainSubstring("Your time is up"))))
}

// TestRender_doesNotSendAFormAgain when the answer to it loads itself without a script.
func TestRender_doesNotSendAFormAgain(t *testing.T) {
	v := fullView("en", Ready)
	v.Answer = true
	NewWithT(t).Expect(render(t, v)).To(ContainSubstring(`<meta http-equiv="refresh" content="5;url=/v/TICKET">`))
}

// TestRender_leavesItsFrame because messengers refuse to be shown in one, and the client's page belongs around it.
func TestRender_leavesItsFrame(t *testing.T) {
	g := NewWithT(t)
	v := fullView("en", Ready)
	g.Expect(render(t, v)).NotTo(ContainSubstring("target="))
	v.Framed = true
	g.Expect(render(t, v)).To(MatchRegexp(`id="open" href="[^"]+" rel="noreferrer" target="_blank"`))
	v.State = Verified
	g.Expect(render(t, v)).To(MatchRegexp(`id="return" href="[^"]+" rel="noreferrer" target="_top"`))
}

// TestRender_saysThatThePhoneIsSimulated in every state, and keeps the page open beside it.
func TestRender_saysThatThePhoneIsSimulated(t *testing.T) {
	for _, state := range States() {
		v := fullView("ar", state)
		NewWithT(t).Expect(render(t, v)).NotTo(ContainSubstring("phoneproof dev"))
		v.Simulated = true
		shown := render(t, v)
		NewWithT(t).Expect(shown).To(ContainSubstring(`<p class="test" lang="en" dir="ltr">This is phoneproof dev: `))
		NewWithT(t).Expect(strings.Count(shown, `target="_blank"`)).To(Equal(strings.Count(shown, `href="https://wa.me/`)), "%s", state)
	}
}

func TestRender_refusesAnUnknownLanguage(t *testing.T) {
	_, err := Render(fullView("xx", Ready))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("xx")))
}

func TestContentSecurityPolicy_allowsWhatIsInlineAlone(t *testing.T) {
	g := NewWithT(t)
	v := fullView("en", Code)
	v.TextURL, v.TextDelay = "/v/TICKET?method=WHATSAPP", time.Second
	policy := ContentSecurityPolicy(v, nil)
	document, err := html.Parse(strings.NewReader(render(t, v)))
	g.Expect(err).NotTo(HaveOccurred())
	inline := 0
	visitElements(document, func(n *html.Node) {
		if n.Data != "style" && n.Data != "script" {
			return
		}
		inline++
		g.Expect(policy).To(ContainSubstring(n.Data + "-src 'sha256-"))
		g.Expect(policy).To(ContainSubstring(hashOf(n.FirstChild.Data)))
	})
	g.Expect(inline).To(Equal(4), "style, colours, the time of a link, and script")
	g.Expect(policy).NotTo(ContainSubstring("unsafe"))
	g.Expect(policy).To(ContainSubstring("form-action 'self' https://shop.example; frame-ancestors 'none'"))
	v.FormTargets = nil
	g.Expect(ContentSecurityPolicy(v, nil)).To(ContainSubstring("form-action 'none'; "))
	g.Expect(ContentSecurityPolicy(v, []string{"https://a.example", "https://b.example"})).To(HaveSuffix("frame-ancestors https://a.example https://b.example"))
}

func TestColours_areThoseOfTheProjectOnlyIfTheyAreColours(t *testing.T) {
	g := NewWithT(t)
	for _, accent := range []string{"", "red", "#fff", "#0b6e4", "#0b6e4g", `#0;}x{}`, "#0b6e4f}"} {
		g.Expect((&View{Accent: accent, OnAccent: "#ffffff"}).colours()).To(BeEmpty(), accent)
	}
	g.Expect((&View{Accent: "#0b6e4f", OnAccent: "#ffffff"}).colours()).To(Equal(":root{--accent:#0b6e4f;--on-accent:#ffffff}"))
}

func TestMatchLanguage(t *testing.T) {
	for _, c := range []struct {
		allowed        []string
		locale, header string
		want           string
	}{
		{nil, "", "", "en"},
		{nil, "ar", "de", "ar"},
		{nil, "", "de-AT,de;q=0.9,en;q=0.8", "de"},
		{nil, "", "nl,fr;q=0.5", "fr"},
		{nil, "", "nl", "en"},
		{nil, "xx", "pt-BR", "pt"},
		{nil, "", strings.Repeat("de,", 200), "en"},
		{nil, "", "*;q=x\x00", "en"},
		{[]string{"de", "fr"}, "", "es", "de"},
		{[]string{"de", "fr"}, "es", "fr", "fr"},
		{[]string{"de", "fr"}, "fr-CA", "de", "fr"},
	} {
		NewWithT(t).Expect(MatchLanguage(c.allowed, c.locale, c.header)).To(Equal(c.want), fmt.Sprint(c))
	}
}

// checkSafe reports what of a page came from the texts of others.
func checkSafe(t testing.TB, page string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	visitElements(document, func(n *html.Node) {
		allowed := []string{
			"html", "head", "meta", "link", "title", "style", "body", "header", "main", "footer", "p", "bdi", "h1", "ol", "li", "strong", "a",
			"figure", "img", "div", "span", "h2", "figcaption", "noscript", "script", "form", "label", "input", "button",
		}
		if !slices.Contains(allowed, n.Data) {
			t.Errorf("an element %s", n.Data)
		}
		if n.Data == "script" {
			scripts++
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || a.Key == "formaction" {
				t.Errorf("an attribute %s", a.Key)
			}
		}
		for _, name := range []string{"href", "src", "action"} {
			if value := attributeOf(n, name); value != "" && !regexp.MustCompile(`^(https?://|/[^/\\]|/$|data:image/png;base64,|data:,$)`).MatchString(value) {
				t.Errorf("%s=%q", name, value)
			}
		}
	})
	if scripts != 1 {
		t.Errorf("%d scripts", scripts)
	}
}

// TestRender_escapes tries to bring markup into the page.
func TestRender_escapes(t *testing.T) {
	for _, hostile := range []string{
		`"><script>alert(1)</script>`, `'><img src=x onerror=alert(1)>`, `</title><script>x</script>`, `</main></body><script>`,
		"javascript:alert(1)", "//evil.example/", `/\evil.example`, "data:text/html,x", "<qr>", "{number}{name}{app}", "*b*<i>*", "\u202e\u2066x",
		strings.Repeat("w", 200), "&lt;script&gt;", "<!--", "</style><style>*{display:none}",
	} {
		for _, state := range States() {
			v := fullView("en", state)
			v.DisplayName, v.MaskedNumber, v.Link, v.PageURL, v.ReturnURL = hostile, hostile, hostile, hostile, hostile
			v.Others[0].URL, v.Accent, v.LogoURL, v.ConfirmLabel, v.NotMeLabel = hostile, hostile, hostile, hostile, hostile
			checkSafe(t, render(t, v))
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("Ada's Books", "+49*07", "https://wa.me/1?text=x", "https://shop.example/back", uint8(0))
	f.Add(`"><script>`, `*x*`, "javascript:x", "//evil", uint8(4))
	f.Fuzz(func(t *testing.T, name, number, link, back string, state uint8) {
		v := fullView("ar", States()[int(state)%len(States())])
		v.DisplayName, v.MaskedNumber, v.Link, v.ReturnURL, v.QR = name, number, link, back, ""
		v.ConfirmLabel, v.LogoURL = name, link
		checkSafe(t, render(t, v))
	})
}

func TestDrawQR_isAPicture(t *testing.T) {
	g := NewWithT(t)
	picture, err := drawQR("https://wa.me/15550100100")
	g.Expect(err).NotTo(HaveOccurred())
	content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(picture, "data:image/png;base64,"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(HavePrefix("\x89PNG"))
	_, err = drawQR(strings.Repeat("x", 4000))
	g.Expect(err).To(HaveOccurred())
}
