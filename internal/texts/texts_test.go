package texts

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"golang.org/x/text/unicode/norm"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// names are of projects in several scripts.
var names = []string{"Ada's Books", "كتب ليلى", "आदा की किताबें", "Книги Ады", "阿达书店", "本屋 2.0"}

func TestLanguages(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Languages()).To(Equal([]string{"ar", "de", "en", "es", "fr", "hi", "id", "it", "pt", "ru", "tr", "zh"}))
	places := map[string]int{}
	for i := range reflect.TypeFor[Texts]().NumField() {
		field := reflect.TypeFor[Texts]().Field(i).Name
		original := reflect.ValueOf(builtIn["en"]).Field(i).String()
		places[field] = strings.Count(original, "{name}")
		for _, language := range Languages() {
			text := reflect.ValueOf(builtIn[language]).Field(i).String()
			g.Expect(text).NotTo(BeEmpty(), language+" "+field)
			g.Expect(strings.Contains(text, "{name}")).To(Equal(places[field] > 0), language+" "+field+" names who asks")
			g.Expect(strings.Count(text, "{code}")).To(Equal(strings.Count(original, "{code}")), language+" "+field)
			g.Expect(Fill(text, strings.Repeat("x", 253))).NotTo(MatchRegexp(`[0-9]|http`), language+" "+field+": no number, no link")
			longest := 1024
			if strings.HasPrefix(field, "Button") {
				longest = 20
			}
			g.Expect(utf8.RuneCountInString(Fill(text, strings.Repeat("x", 64)))).To(BeNumerically("<=", longest), language+" "+field)
		}
	}
}

// TestLanguages_nameTheButtons: who is asked by two buttons must find the two titles that the question is about.
func TestLanguages_nameTheButtons(t *testing.T) {
	for _, language := range Languages() {
		texts := builtIn[language]
		NewWithT(t).Expect(texts.EchoQuestion).To(And(ContainSubstring(texts.ButtonConfirm), ContainSubstring(texts.ButtonNotMe)), language)
	}
}

// TestLanguages_refusedContacts: both replies advise users whom another person sent to share nothing.
func TestLanguages_refusedContacts(t *testing.T) {
	for _, language := range Languages() {
		g, texts := NewWithT(t), builtIn[language]
		_, advice, _ := strings.Cut(texts.ContactRefused, "\n\n")
		ends := strings.IndexAny(advice, ".।。")
		g.Expect(ends).To(BeNumerically(">", 0), language)
		g.Expect(texts.NumberAnonymous).To(ContainSubstring("\n\n"+advice[:ends]), language+": ignore this and share nothing")
	}
}

// phoneChanges are what keyboards and messengers do to a text that the user sends as it is.
var phoneChanges = map[string]func(string) string{
	"nothing":            func(text string) string { return text },
	"capitals":           strings.ToUpper,
	"small letters":      strings.ToLower,
	"no-break spaces":    func(text string) string { return strings.ReplaceAll(text, " ", "\u00a0") },
	"narrow spaces":      func(text string) string { return strings.ReplaceAll(text, " ", "\u202f") },
	"line breaks":        func(text string) string { return strings.ReplaceAll(text, ". ", ".\r\n") },
	"long dashes":        func(text string) string { return strings.ReplaceAll(text, "-", "–") },
	"curly apostrophes":  func(text string) string { return strings.ReplaceAll(text, "'", "’") },
	"marks of direction": func(text string) string { return "\u200f" + strings.ReplaceAll(text, " ", " \u200e") },
	"embeddings": func(text string) string {
		return "\u202b" + strings.ReplaceAll(text, ": ", ": \u202a") + "\u202c\u202c"
	},
	"overrides": func(text string) string { return "\u202d" + text + "\u202c\u202e\u202c" },
	"isolates": func(text string) string {
		return "\u2067" + strings.ReplaceAll(text, ". ", ".\u2069 \u2068") + "\u2069\u2066\u2069"
	},
	"zero-width joiners":  func(text string) string { return strings.ReplaceAll(text, " ", "\u200d \u200c") },
	"composed characters": norm.NFC.String, "decomposed characters": norm.NFD.String,
	"an emoji":         func(text string) string { return text + " 🙏🏽" },
	"a greeting":       func(text string) string { return "Hello! " + text },
	"a signature":      func(text string) string { return text + "\n\nSent from my iPhone" },
	"auto-capitalized": capitalizeSentences,
}

// capitalizeSentences returns a text with a capital letter where a sentence begins.
func capitalizeSentences(text string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(".:।。", r):
			begins = true
		case begins && unicode.IsLetter(r):
			begins = false
			return unicode.ToUpper(r)
		}
		return r
	}, text)
}

// holdsPrepared reports whether a message holds that one text.
func holdsPrepared(message, prepared string) bool {
	return verification.HoldsPrepared(message, slices.Values([]string{prepared}))
}

// TestPrepared_isAccepted sends each prepared text, for projects with names in several scripts, as phones change it.
func TestPrepared_isAccepted(t *testing.T) {
	codes := verification.NewCodeSpace("books/shop")
	code := codes.CodeFor(sha256.Sum256([]byte("key")), "one")
	for _, language := range Languages() {
		for _, name := range names {
			prepared := FillPrepared(BuiltIn().In(language).Prepared, name, code.Grouped())
			for what, change := range phoneChanges {
				g, sent := NewWithT(t), change(prepared)
				found, ok := codes.Extract(sent)
				g.Expect(ok).To(BeTrue(), language+" "+name+" "+what)
				g.Expect(found.Grouped()).To(Equal(code.Grouped()), language+" "+name+" "+what)
				g.Expect(holdsPrepared(sent, prepared)).To(BeTrue(), language+" "+name+" "+what)
			}
		}
	}
}

// TestPrepared_isNoOther: a text counts for its own language, project and code alone.
func TestPrepared_isNoOther(t *testing.T) {
	codes := verification.NewCodeSpace("books/shop")
	code := codes.CodeFor(sha256.Sum256([]byte("key")), "one").Grouped()
	another := codes.CodeFor(sha256.Sum256([]byte("key")), "two").Grouped()
	for _, language := range Languages() {
		for _, name := range names {
			g, prepared := NewWithT(t), FillPrepared(BuiltIn().In(language).Prepared, name, code)
			for _, other := range append(names, "Another Shop", "") {
				text := FillPrepared(BuiltIn().In(language).Prepared, other, code)
				g.Expect(holdsPrepared(text, prepared)).To(Equal(other == name), "%s: %s for %s", language, other, name)
			}
			text := FillPrepared(BuiltIn().In(language).Prepared, name, another)
			g.Expect(holdsPrepared(text, prepared)).To(BeFalse(), "%s: another code", language)
			for _, other := range Languages() {
				text := FillPrepared(BuiltIn().In(other).Prepared, name, code)
				g.Expect(holdsPrepared(text, prepared)).To(Equal(other == language), "%s for %s", other, language)
				g.Expect(holdsPrepared(text+" "+prepared, prepared)).To(BeFalse(), "%s and %s: more than a greeting", other, language)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	own := NewSet(Texts{}, map[string]Texts{
		"pt-PT": {Verified: "Pronto"}, "ja": {Verified: "完了"}, "es-419": {Verified: "Listo"}, "sr-Latn": {Verified: "Gotovo"},
		"nb": {Verified: "Ferdig"}, "ji": {Verified: "גרייט"}, "xx": {Verified: "Xx"}, "not a tag": {Verified: "x"},
	})
	for tag, want := range map[string]string{
		"": "", "es": "es", "es-419": "es-419", "es-MX": "es-419", "es-ES": "es", "PT-br": "pt", "pt-PT": "pt-PT", "pt-AO": "pt-PT",
		"zh-Hant-TW": "zh", "zh-HK": "zh", "cmn": "zh", "yi": "yi", "ji": "yi", "iw": "", "ja-JP": "ja", "en-GB": "en", "in": "id", "ar-EG": "ar", "tr-CY": "tr",
		"sr": "sr-Latn", "no": "nb", "xx": "xx", "yy": "", "und": "", "not a tag": "", "de-CH-1996": "de", "en-x-loud": "en",
	} {
		NewWithT(t).Expect(own.Match(tag)).To(Equal(want), "%q", tag)
	}
	NewWithT(t).Expect(BuiltIn().Match("ja")).To(BeEmpty())
}

// TestMatch_guessesNothing has languages and scripts whose readers often read a language of ours, too.
func TestMatch_guessesNothing(t *testing.T) {
	for _, tag := range []string{
		"uk", "be", "kk", "hy", "az", "eu", "gl", "ca", "br", "ms", "jv", "ur", "bn", "ta", "pa", "mr", "ne", "ga", "lb", "gsw", "ku", "ug", "bo",
		"und-Latn", "und-Cyrl", "und-419", "hi-Latn", "i-klingon", "mul", "x-private",
	} {
		NewWithT(t).Expect(BuiltIn().Match(tag)).To(BeEmpty(), tag)
	}
}

// TestNewSet_ofTwoNames has one language under two names: the present one counts, whatever the order of a map.
func TestNewSet_ofTwoNames(t *testing.T) {
	for range 20 {
		s := NewSet(Texts{}, map[string]Texts{"ji": {Verified: "former"}, "yi": {Verified: "present"}})
		NewWithT(t).Expect(s.In("ji").Verified).To(Equal("present"))
	}
}

// TestIn_allocatesNothing where the tag is one of the set, as those of requests are.
func TestIn_allocatesNothing(t *testing.T) {
	s := NewSet(Texts{Verified: "for all"}, map[string]Texts{"ja": {Expired: "遅い"}})
	for _, tag := range []string{"", "es", "ja"} {
		NewWithT(t).Expect(testing.AllocsPerRun(100, func() { _ = s.In(tag).Prepared })).To(BeZero(), tag)
	}
}

func TestNewSet_prefersWhatIsNearest(t *testing.T) {
	g := NewWithT(t)
	s := NewSet(Texts{Verified: "for all", Expired: "late for all"}, map[string]Texts{
		"es": {Verified: "para {name}"}, "ja": {WrongNumber: "別の番号"},
	})
	g.Expect(s.In("es").Verified).To(Equal("para {name}"))
	g.Expect(s.In("es").Expired).To(Equal("late for all"))
	g.Expect(s.In("es").TelegramExpired).To(Equal("late for all"), "in both messengers")
	g.Expect(s.In("es").Unknown).To(Equal(builtIn["es"].Unknown))
	g.Expect(s.In("fr").Verified).To(Equal("for all"))
	g.Expect(s.In("fr").Confirm).To(Equal(builtIn["fr"].Confirm))
	g.Expect(s.In("ja").TelegramWrongNumber).To(Equal("別の番号"))
	g.Expect(s.In("ja").Confirm).To(Equal(builtIn["en"].Confirm))
	g.Expect(s.In("").Verified).To(Equal("for all"))
	g.Expect(s.In("").Prepared).To(Equal(builtIn["en"].Prepared))
	g.Expect(s.In("xx")).To(Equal(s.In("")))
}

func TestPrepared_isOfEveryLanguage(t *testing.T) {
	g := NewWithT(t)
	s := NewSet(Texts{}, map[string]Texts{"es": {Prepared: "Soy yo, {name}: {code}"}, "es-MX": {Prepared: "Soy yo, {name}: {code}"}})
	g.Expect(s.Prepared()).To(ContainElements("Soy yo, {name}: {code}", builtIn["en"].Prepared, builtIn["ar"].Prepared))
	g.Expect(s.Prepared()).NotTo(ContainElement(builtIn["es"].Prepared), "which the project replaced")
	g.Expect(s.Prepared()).To(HaveLen(12), "each once")
}

func TestFillPrepared_searchesNoName(t *testing.T) {
	NewWithT(t).Expect(FillPrepared("{name}: {code}", "{code}", "ABCD")).To(Equal("{code}: ABCD"))
}

func BenchmarkIn(b *testing.B) {
	s := BuiltIn()
	b.ReportAllocs()
	for b.Loop() {
		_ = s.In("es").Prepared
	}
}
