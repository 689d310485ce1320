package verification

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

func TestExtract(t *testing.T) {
	code, other := drawCode(t, acme), drawCode(t, acme)
	text := code.Grouped()
	groups := strings.Split(text, "-")
	fullWidth := strings.Map(func(r rune) rune {
		if r == '-' {
			return r
		}
		return r + ('！' - '!')
	}, text)

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

func BenchmarkNewCodeAndID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		acme.RequestID(drawCode(b, acme))
	}
}
