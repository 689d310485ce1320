package texts

import (
	"crypto/sha256"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

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

// TestPrepared_isAccepted sends each prepared text as it is, and as keyboards and messengers change it.
func TestPrepared_isAccepted(t *testing.T) {
	codes := verification.NewCodeSpace("books/shop")
	code := codes.CodeFor(sha256.Sum256([]byte("key")), "one")
	for _, language := range Languages() {
		for _, name := range names {
			prepared := FillPrepared(BuiltIn().In(language).Prepared, name, code.Grouped())
			for change, sent := range map[string]string{
				"as it is":            prepared,
				"marked by direction": "\u2067\u200f" + strings.ReplaceAll(prepared, " ", " \u200e") + "\u2069",
				"with other spaces":   strings.ReplaceAll(prepared, " ", "\u00a0"),
				"in capitals":         strings.ToUpper(prepared),
				"with an emoji":       prepared + " 🙏",
				"with a greeting":     "Hello! " + prepared,
			} {
				g := NewWithT(t)
				found, ok := codes.Extract(sent)
				g.Expect(ok).To(BeTrue(), language+" "+name+" "+change)
				g.Expect(found.Grouped()).To(Equal(code.Grouped()), language+" "+name+" "+change)
				g.Expect(verification.HoldsPrepared(sent, prepared)).To(BeTrue(), language+" "+name+" "+change)
			}
			other := FillPrepared(BuiltIn().In(language).Prepared, "Another Shop", code.Grouped())
			NewWithT(t).Expect(verification.HoldsPrepared(other, prepared)).To(BeFalse(), "the text of another project")
		}
	}
}

func TestMatch(t *testing.T) {
	own := NewSet(Texts{}, map[string]Texts{"pt-PT": {Verified: "Pronto"}, "ja": {Verified: "完了"}, "not a tag": {Verified: "x"}})
	for tag, want := range map[string]string{
		"": "", "es": "es", "es-419": "es", "PT-br": "pt", "pt-PT": "pt-PT", "pt-AO": "pt-PT", "zh-Hant-TW": "zh", "iw": "", "ja-JP": "ja",
		"xx": "", "und": "", "not a tag": "", "en-GB": "en", "in": "id",
	} {
		NewWithT(t).Expect(own.Match(tag)).To(Equal(want), "%q", tag)
	}
	NewWithT(t).Expect(BuiltIn().Match("ja")).To(BeEmpty())
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
