package verification

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

// holdsPrepared reports whether a message holds that one text.
func holdsPrepared(message, prepared string) bool {
	return HoldsPrepared(message, slices.Values([]string{prepared}))
}

// TestHoldsPrepared: what keyboards, messengers and people do to the text, and what fraudsters do.
func TestHoldsPrepared(t *testing.T) {
	const (
		code     = "VCGC-SRF7-H9YN-HPM8"
		prepared = "I confirm my phone number to Ada's Café. I asked for this myself and send it to nobody else. Code: " + code
	)
	replaced := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(prepared) }
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"as it is":                       {prepared, true},
		"lower case":                     {strings.ToLower(prepared), true},
		"upper case":                     {strings.ToUpper(prepared), true},
		"auto-correct's apostrophe":      {replaced("'", "’"), true},
		"an apostrophe that is a letter": {replaced("'", "ʼ"), true},
		"an accent for an apostrophe":    {replaced("'", "´"), true},
		"no punctuation":                 {replaced("'", "", ".", "", ":", "", "-", ""), true},
		"full stops of another script":   {replaced(". ", "。", "-", "－"), true},
		"non-breaking spaces":            {replaced(" ", "\u00a0"), true},
		"two spaces":                     {replaced(" ", "  "), true},
		"line breaks":                    {replaced(". ", ".\r\n\r\n"), true},
		"no spaces":                      {replaced(" ", ""), true},
		"en dashes":                      {replaced("-", "–"), true},
		"minus signs":                    {replaced("-", "−"), true},
		"prolonged sound marks":          {replaced("-", "ー"), true},
		"the same in half width":         {replaced("-", "ｰ"), true},
		"middle dots":                    {replaced("-", "·"), true},
		"katakana middle dots":           {replaced("-", "・"), true},
		"bullets":                        {replaced("-", "•"), true},
		"hyphen bullets":                 {replaced("-", "⁃"), true},
		"direction marks":                {"\u200f\u2067" + prepared + "\u2069\u200e", true},
		"zero-width characters":          {strings.Join(strings.Split(prepared, " "), " \u200b\ufeff"), true},
		"soft hyphens":                   {replaced("confirm", "con\u00adfirm"), true},
		"a decomposed letter":            {replaced("é", "e\u0301"), true},
		"a ligature":                     {replaced("confirm", "conﬁrm"), true},
		"full width":                     {replaced("Code", "Ｃｏｄｅ"), true},
		"letters for digits":             {replaced("SRF7", "srf7", "Code", "C0de"), true},
		"quoted in French":               {"« " + prepared + " »", true},
		"quoted in German":               {"„" + prepared + "“", true},
		"quoted by a mail program":       {"> " + prepared, true},
		"bold":                           {"*" + prepared + "*", true},
		"a greeting":                     {"Hello! " + prepared, true},
		"a signature":                    {prepared + "\n\nSent from my iPhone", true},
		"a dotless i":                    {replaced("confirm", "confırm"), true},
		"emoji":                          {prepared + " 👍🏽❤️", true},
		"forty others":                   {strings.Repeat("x", 20) + prepared + strings.Repeat("😀", 20), true},

		"a link that opens no chat": {prepared + " https://a.example/?context=1", true},
		"a percentage":              {"I am 100% sure. " + prepared, true},

		"forty-one others":      {strings.Repeat("x", 20) + prepared + strings.Repeat("😀", 21), false},
		"forty-one spaced out":  {strings.Repeat("x ", 41) + prepared, false},
		"a story before":        {"Please release my parcel. My address is 1 Main Street, London. " + prepared, false},
		"twice":                 {prepared + " " + prepared, false},
		"a bare code":           {code, false},
		"a parcel":              {"Please release my parcel no. " + code, false},
		"another project":       {replaced("Café", "Bank"), false},
		"without the warning":   {replaced("I asked for this myself and send it to nobody else. ", ""), false},
		"a changed word":        {replaced("else", "elsewhere"), false},
		"a word between":        {replaced("myself", "myself today"), false},
		"the parts in disorder": {"Code: " + code + " I confirm my phone number to Ada's Café. I asked for this myself and send it to nobody else.", false},
		"another code":          {replaced("H9YN", "H9YM"), false},
		"an emoji inside":       {replaced("phone", "☎phone"), false},
		"percent-encoded":       {url.PathEscape(prepared), false},
		"form-encoded":          {url.QueryEscape(prepared), false},
		"Cyrillic letters":      {replaced("SRF7-H9YN", "SRF7-Н9YN"), false},
		"translated":            {"Ich bestätige Ada's Café meine Telefonnummer. Code: " + code, false},
		"empty":                 {"", false},
		"megabytes":             {prepared + strings.Repeat(" ", 1<<20), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(holdsPrepared(c.text, prepared)).To(Equal(c.want))
		})
	}
	g := NewWithT(t)
	g.Expect(holdsPrepared("anything", "")).To(BeFalse(), "nothing was prepared")
	g.Expect(holdsPrepared("anything", " . ")).To(BeFalse())
	own := "Ada's Café (https://wa.me/1?text=Hi%20Ada): Code: " + code
	g.Expect(holdsPrepared("Hi! "+strings.ToUpper(own), own)).To(BeTrue(), "a link of the prepared text")
	g.Expect(holdsPrepared("https://wa.me/1?text="+own, own)).To(BeFalse(), "one more")
	for _, name := range []string{"مكتبة آدا", "アダ書店", "गूगल किताबें", "Книги Ады", "A!", "🛒 Shop & Co.", "İstanbul", "Straße"} {
		text := "I confirm my phone number to " + name + ". Code: " + code
		g.Expect(holdsPrepared(text, text)).To(BeTrue(), name)
		g.Expect(holdsPrepared(strings.ReplaceAll(text, " ", "\u202f"), text)).To(BeTrue(), name)
	}
	beer := "I confirm my phone number to ビール. Code: " + code
	g.Expect(holdsPrepared(strings.ReplaceAll(beer, "-", "ー"), beer)).To(BeTrue())
	g.Expect(holdsPrepared(strings.ReplaceAll(beer, "ー", "ｰ"), beer)).To(BeTrue(), "the width of a letter")
	g.Expect(holdsPrepared(strings.ReplaceAll(beer, "ー", ""), beer)).To(BeFalse(), "in a name it is a letter: a building is no beer")
}

func FuzzHoldsPrepared(f *testing.F) {
	f.Add("Hello! ", "I confirm my phone number to Ada's Café. Code: VCGC-SRF7-H9YN-HPM8", "\nSent from my phone")
	f.Add("\u202e«", "أؤكد رقم هاتفي", "»\u0301")
	f.Add("\xff", "ﷺ", "´")
	f.Fuzz(func(t *testing.T, before, prepared, after string) {
		text := before + prepared + after
		if holdsPrepared(text, prepared) && utf8.RuneCountInString(comparableText(text))-utf8.RuneCountInString(comparableText(prepared)) > MaxOtherCharacters {
			t.Fatal("it holds more than it may")
		}
		if comparableText(prepared) != "" && len(prepared) <= maxExtractRunes && !holdsPrepared(prepared, prepared) {
			t.Fatalf("%q is not itself", prepared)
		}
		// Where nothing combines with its neighbours, what stands around it does not hide it.
		if len(text) <= maxExtractRunes && comparableText(before+" : "+prepared+" : "+after) == comparableText(before)+comparableText(prepared)+comparableText(after) &&
			comparableText(prepared) != "" && utf8.RuneCountInString(comparableText(before)+comparableText(after)) <= MaxOtherCharacters &&
			!holdsPrepared(before+" : "+prepared+" : "+after, prepared) {
			t.Fatalf("%q is not found between %q and %q", prepared, before, after)
		}
	})
}

func BenchmarkHoldsPrepared(b *testing.B) {
	const prepared = "I confirm my phone number to Ada's Books. I asked for this myself and send it to nobody else. Code: VCGC-SRF7-H9YN-HPM8"
	b.ReportAllocs()
	for b.Loop() {
		if !holdsPrepared(prepared, prepared) {
			b.Fatal("not itself")
		}
	}
}
