package verification

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestExtract(t *testing.T) {
	code, other := drawCode(t, acme), drawCode(t, acme)
	lookAlike := acme.codeOf([randomSymbols]byte{10, 20, 30}) // AMY0-...
	text := code.Grouped()
	groups := strings.Split(text, "-")
	fullWidth := strings.Map(func(r rune) rune {
		if r == '-' {
			return r
		}
		return r + ('！' - '!')
	}, text)

	// Each letter and digit that looks like one of another script is that one.
	cyrillic := strings.NewReplacer("A", "А", "B", "В", "C", "С", "E", "Е", "H", "Н", "K", "К", "M", "М", "P", "Р", "T", "Т", "X", "Х", "3", "З", "0", "О").
		Replace(lookAlike.Grouped())
	greek := strings.NewReplacer("A", "Α", "B", "Β", "E", "Ε", "H", "Η", "K", "Κ", "M", "Μ", "N", "Ν", "P", "Ρ", "T", "Τ", "X", "Χ", "Z", "Ζ").
		Replace(lookAlike.Grouped())

	for name, test := range map[string]struct {
		text string
		want *Code
	}{
		"bare":                   {text, &code},
		"without hyphens":        {strings.Join(groups, ""), &code},
		"lower case":             {strings.ToLower(text), &code},
		"capitalised by phone":   {text[:1] + strings.ToLower(text[1:]), &code},
		"spaces":                 {strings.Join(groups, " "), &code},
		"spaced out":             {strings.Join(strings.Split(text, ""), " "), &code},
		"line breaks":            {strings.Join(groups, "\r\n"), &code},
		"en dashes":              {strings.Join(groups, "–"), &code},
		"em dashes":              {strings.Join(groups, " — "), &code},
		"minus signs":            {strings.Join(groups, "−"), &code},
		"prolonged sound marks":  {strings.Join(groups, "ー"), &code},
		"the same in half width": {strings.Join(groups, "ｰ"), &code},
		"middle dots":            {strings.Join(groups, "·"), &code},
		"katakana middle dots":   {strings.Join(groups, "・"), &code},
		"the same, half width":   {strings.Join(groups, "･"), &code},
		"bullets":                {strings.Join(groups, "•"), &code},
		"hyphen bullets":         {strings.Join(groups, "⁃"), &code},
		"Japanese":               {"確認コードー" + strings.Join(groups, "ー") + "です", &code},
		"non-breaking spaces":    {strings.Join(groups, "\u00a0"), &code},
		"zero-width characters":  {strings.Join(strings.Split(text, ""), "\u200b"), &code},
		"bidirectional marks":    {"\u202a" + text + "\u202c\u200f", &code},
		"soft hyphens":           {strings.Join(groups, "\u00ad"), &code},
		"word joiners":           {strings.Join(groups, "\u2060-"), &code},
		"variation selectors":    {text[:7] + "\ufe0f" + text[7:], &code},
		"full width":             {fullWidth, &code},
		"O, I and L":             {strings.NewReplacer("0", "o", "1", "l").Replace(text), &code},
		"start command":          {"/start " + text, &code},
		"start command of a bot": {"/start@acme_bot " + text, &code},
		"bold":                   {"*" + text + "*", &code},
		"italic":                 {"_" + text + "_", &code},
		"quoted":                 {"> “" + text + "”.", &code},
		"English sentence":       {"Hello, my code is " + text + ", thank you", &code},
		"words before and after": {"code " + text + " please", &code},
		"sixteen letters before": {"code code code code " + text, &code},
		"Portuguese":             {"Olá! Confirmo meu número: " + text + " não responda", &code},
		"Arabic":                 {"رمز التحقق " + text + " شكرا", &code},
		"Chinese without spaces": {"我的验证码是" + text + "谢谢", &code},
		"emoji":                  {"👍" + text + "👍🏽", &code},
		"two codes":              {text + " or " + other.Grouped(), &other},
		"two codes without gap":  {text + "-" + other.Grouped(), &other},
		"same code twice":        {text + ", " + strings.ToLower(text), &code},
		"at 4,096 characters":    {strings.Repeat(". ", 2038) + " " + text, &code},

		"empty":                {"", nil},
		"no code":              {"Is this the right number for the shop?", nil},
		"one symbol short":     {text[:18], nil},
		"one symbol more":      {text + "7", nil},
		"glued to a word":      {"code" + text, nil},
		"broken by a dot":      {strings.Join(groups, "."), nil},
		"broken by other text": {groups[0] + groups[1] + " (" + groups[2] + groups[3] + ")", nil},
		"beyond the limit":     {strings.Repeat(".", 4096) + text, nil},
		"invalid UTF-8 inside": {text[:7] + "\xff" + text[7:], nil},
		"another project's":    {drawCode(t, NewCodeSpace("shop/other")).Grouped(), nil},
		"a letter outside":     {strings.Replace(text, text[:1], "U", 1), nil},
		"a Cyrillic letter":    {cyrillic, nil},
		"Greek letters":        {greek, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, ok := acme.Extract(test.text)
			g.Expect(ok).To(Equal(test.want != nil))
			if test.want != nil {
				g.Expect(found).To(Equal(*test.want))
			}
		})
	}
}

// TestExtract_pastedLinks: the code of a link is found, as if its text had been sent. To whom the link leads does not matter.
func TestExtract_pastedLinks(t *testing.T) {
	code, other := drawCode(t, acme), drawCode(t, acme)
	text := code.Grouped()
	groups := strings.Split(text, "-")
	sentence := "I confirm my phone number to Ada's Café. Code: " + text
	link := func(text string) string { return "https://wa.me/4915112345678?text=" + url.PathEscape(text) }
	everyByte := func(text string) string {
		return "%" + strings.ReplaceAll(fmt.Sprintf("% x", text), " ", "%")
	}
	for name, test := range map[string]struct {
		text string
		want *Code
	}{
		"WhatsApp's link":               {link(sentence), &code},
		"and what it leads to":          {"https://api.whatsapp.com/send/?phone=4915112345678&text=" + url.QueryEscape(sentence) + "&type=phone_number&app_absent=0", &code},
		"with spaces as %20":            {"api.whatsapp.com/send?phone=4915112345678&text=" + url.PathEscape(sentence), &code},
		"without a scheme":              {strings.TrimPrefix(link(sentence), "https://"), &code},
		"the app's":                     {"whatsapp://send?text=" + url.PathEscape(sentence), &code},
		"to another number":             {strings.Replace(link(sentence), "4915112345678", "4915199999999", 1), &code},
		"in angle brackets":             {"please use <" + link(sentence) + ">, thanks", &code},
		"a part of it":                  {strings.TrimPrefix(link(sentence), "https://wa.me/4915112345678"), &code},
		"every byte encoded":            {link("") + everyByte(sentence), &code},
		"hyphens of a Japanese phone":   {link(strings.ReplaceAll(sentence, "-", "ー")), &code},
		"direction marks in it":         {link("\u202e" + strings.Join(groups, "-\u2066") + "\u2069"), &code},
		"line breaks in it":             {link("Code:\r\n" + text), &code},
		"broken by the mail program":    {link("Code: " + text)[:len(link("Code: "))+7] + "\r\n" + text[7:], &code},
		"Telegram's link":               {"https://t.me/acme_bot?start=" + text, &code},
		"the app's for Telegram":        {"tg://resolve?domain=acme_bot&start=" + text, &code},
		"two codes in a link":           {link(text + " " + other.Grouped()), &other},
		"two links":                     {link("Code: "+text) + "\n" + link("Code: "+other.Grouped()), &other},
		"a link, then a code":           {link("Code: "+text) + " " + other.Grouped(), &other},
		"a code, then a link":           {text + " " + link("Code: "+other.Grouped()), &other},
		"a link that is cut":            {link("Code: "+text) + " https://wa.me/4915112345678?text=Code%3", &code},
		"a link at 4,096 characters":    {strings.Repeat(". ", (4096-len(link("Code: "+text)))/2) + link("Code: "+text), &code},
		"a link in a link":              {link(link("Code: " + text)), nil},
		"encoded twice":                 {link(url.PathEscape("Code: " + text)), nil},
		"a NUL in it":                   {link("Code: " + text[:7] + "\x00" + text[7:]), nil},
		"invalid UTF-8 in it":           {link("Code: " + text[:7] + "\xff" + text[7:]), nil},
		"a Cyrillic letter in it":       {link("Code: " + strings.Replace(acme.codeOf([randomSymbols]byte{10}).Grouped(), "A", "А", 1)), nil},
		"another project's, in a link":  {link("Code: " + drawCode(t, NewCodeSpace("shop/other")).Grouped()), nil},
		"a link beyond the limit":       {strings.Repeat(".", 4096) + " " + link("Code: "+text), nil},
		"a link that ends at the limit": {strings.Repeat(".", 4096-len(link("Code: "+text))) + " " + link("Code: "+text), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, ok := acme.Extract(test.text)
			g.Expect(ok).To(Equal(test.want != nil))
			if test.want != nil {
				g.Expect(found).To(Equal(*test.want))
			}
		})
	}
}

// TestExtract_theLastOfMany costs one code however many there are, and the same one each time.
func TestExtract_theLastOfMany(t *testing.T) {
	g := NewWithT(t)
	var texts []string
	for range 150 {
		texts = append(texts, drawCode(t, acme).Grouped())
	}
	found, ok := acme.Extract(strings.Join(texts, ", "))
	g.Expect(ok).To(BeTrue())
	g.Expect(found.Grouped()).To(Equal(texts[len(texts)-1]))
}

func FuzzExtract(f *testing.F) {
	code := drawCode(f, acme)
	f.Add("my code: ", " thanks")
	f.Add("/start ", "")
	f.Add("我的验证码是", "谢谢")
	f.Add("\xff\u200b-", "-\u202e_")
	f.Add("https://wa.me/4915112345678?text=Code%3A%20", "%20%E2%80%AE%2")
	f.Add("ー·•%", "%25%32%30⁃")
	f.Fuzz(func(t *testing.T, before, after string) {
		if found, ok := acme.Extract(before + after); ok && !acme.isValid(found.Reveal()) {
			t.Fatal("extracted a code with wrong check symbols")
		}
		// Set off from the text by something that no code goes on over, the code is always found.
		text := before + " : " + code.Grouped() + " : " + after
		_, later := acme.Extract(after)
		if utf8.RuneCountInString(text) > maxExtractRunes || later {
			return
		}
		if found, _ := acme.Extract(text); found.Grouped() != code.Grouped() {
			t.Fatalf("did not find the code between %q and %q", before, after)
		}
	})
}

func FuzzIsRequestID(f *testing.F) {
	f.Add(acme.RequestID(drawCode(f, acme)))
	f.Add("vr")
	f.Fuzz(func(t *testing.T, id string) {
		if IsRequestID(id) && (len(id) != 26 || strings.Trim(id[2:], "abcdefghijklmnopqrstuvwxyz234567") != "") {
			t.Fatalf("%q is no request id", id)
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	text := "I confirm my phone number to Acme. I asked for this myself. Code: " + drawCode(b, acme).Grouped()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := acme.Extract(text); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkExtract_worstCase(b *testing.B) {
	text := strings.Repeat("A ", maxExtractRunes/2)
	b.ReportAllocs()
	for b.Loop() {
		acme.Extract(text)
	}
}

func BenchmarkExtract_worstLink(b *testing.B) {
	text := strings.Repeat("A%20", maxExtractRunes/4)
	b.ReportAllocs()
	for b.Loop() {
		acme.Extract(text)
	}
}

func BenchmarkNewCodeAndID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		acme.RequestID(drawCode(b, acme))
	}
}
