package main

// textsMutants break the languages of the texts for end users.
//
//nolint:gochecknoglobals // a table
var textsMutants = []Mutant{
	{
		Name: "texts-of-a-language-nearby", Promise: "proof.md 11: texts follow locale",
		Symbol: "texts.(*Set).Match", Old: " || baseOf(nearest) != baseOf(parsed)", New: "",
		Also:  []Edit{{Symbol: "texts.(*Set).Match", Old: "nearest, i, confidence", New: "_, i, confidence"}},
		Suite: "texts", Test: "TestMatch_guessesNothing",
	},
	{
		Name: "texts-for-all-before-those-of-a-language", Promise: "proof.md 11: spec.texts overrides any",
		Symbol: "texts.NewSet", Old: "own.ForBoth().orElse(forAll)", New: "forAll.orElse(own.ForBoth())",
		Suite: "texts", Test: "TestNewSet_prefersWhatIsNearest",
	},
	{
		Name: "texts-prepared-in-one-language", Promise: "design.md 3: the project's sentence, in any of its languages",
		Symbol: "texts.NewSet", Old: "appendNew(s.prepared, s.all[tag].Prepared)", New: "s.prepared",
		Suite: "texts", Test: "TestPrepared_isOfEveryLanguage",
	},
	{
		Name: "texts-unknown-language-dropped", Promise: "proof.md 11: spec.texts overrides any",
		Symbol: "texts.parseOwn", Old: `return tag, "", true`, New: `return tag, "", false`,
		Suite: "texts", Test: "TestMatch",
	},
	{
		Name: "texts-former-forever", Promise: "design.md 3: the message must contain the project's sentence",
		Symbol: "settings.(*Settings).textSets", Old: "now.Before(former.Until)", New: "!former.Until.IsZero()",
		Suite: "settings", Test: "TestLive_keepsFormerTexts",
	},
	{
		Name: "texts-former-until-the-new-ttl", Promise: "design.md 3: the message must contain the project's sentence",
		Symbol: "settings.(*Live).storeSettings", Old: "now.Add(last.TTL)", New: "now.Add(next.TTL)",
		Suite: "settings", Test: "TestLive_keepsFormerTexts",
	},
	{
		Name: "texts-former-without-bound", Promise: "security.md: what a message costs is bounded",
		Symbol: "settings.(*Live).storeSettings", Old: "min(len(l.former), maxFormerTexts)", New: "len(l.former)",
		Suite: "settings", Test: "TestLive_keepsFewFormerTexts",
	},
	{
		Name: "texts-of-a-manual-request-in-english", Promise: "proof.md 11: the prepared text follows locale",
		Symbol: "request.(*ManualController).completeRequest",
		Old:    "Locale: manual.Locale", New: `Locale: ""`,
		Suite: "requests", Test: "TestManual_isCompleted",
	},
	{
		Name: "texts-guessed-for-a-stranger", Promise: "proof.md 11: texts follow locale, which no stranger has",
		Symbol: "whatsapp.(*delivery).replyToStranger", Old: `TextsIn("")`, New: `TextsIn("es")`,
		Suite: "whatsapp", Test: "TestHook_guessesNoLanguage",
	},
	{
		Name: "texts-values-searched-for-places", Promise: "proof.md 13: no free text of a caller enters a message",
		Symbol: "texts.(*Texts).FillSession", Old: `"{name}", m.Name,`, New: `"{name}", strings.ReplaceAll(m.Name, "{digits}", m.Digits),`,
		Suite: "texts", Test: "TestFillSession_searchesNoValue",
	},
	{
		Name: "texts-empty-line-of-a-purpose", Promise: "proof.md 13: who asks and for what",
		Symbol: "texts.(*Texts).FillSession", Old: `if m.Purpose != "" {`, New: `if m.Name != "" {`,
		Suite: "texts", Test: "TestFillSession_leavesOutLines",
	},
	{
		Name: "texts-not-me-in-one-language", Promise: "proof.md 13: Not me in Telegram is a message",
		Symbol: "texts.NewSet", Old: "appendNew(s.notMe, s.all[tag].ButtonNotMe)", New: "s.notMe",
		Suite: "texts", Test: "TestNotMeLabels",
	},
	{
		Name: "texts-not-me-of-before-forgotten", Promise: "proof.md 13: a button that is shown counts",
		Symbol: "settings.(*Settings).hasEqualAnswers", Old: "&& slices.Equal(mine.NotMeLabels(), others.NotMeLabels())", New: "",
		Suite: "settings", Test: "TestLive_keepsFormerLabels",
	},
}
