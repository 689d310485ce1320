package main

// phoneMutants break what numbers mean.
//
//nolint:gochecknoglobals // a table
var phoneMutants = []Mutant{
	{
		Name: "premium-numbers-accepted", Promise: "design.md 3: premium-rate numbers are refused",
		Symbol: "phone.checkLine",
		Old:    "case phonenumbers.PREMIUM_RATE:",
		New:    "case phonenumbers.PhoneNumberType(99):",
		Suite:  "phone", Test: "TestParse",
	},
	{
		Name: "anonymous-numbers-accepted", Promise: "design.md 3: +888 numbers are refused",
		Symbol: "phone.parseReported", Old: "code == 0x888", New: "code == 0x889",
		Suite: "phone", Test: "TestParseReported|TestParseTelegram",
	},
	{
		Name: "landlines-of-brazil-are-mobiles", Promise: "design.md 3: Brazil's ninth digit for mobiles only",
		Symbol: "phone.Number.brazilianForms", Old: "|| first < 6 ||", New: "||",
		Suite: "phone", Test: "TestSame",
	},
	{
		Name: "mexico-521-is-another-number", Promise: "design.md 3: Mexico 52/521",
		Symbol: "phone.Number.mexicanForms", Old: "n.firstDigits(3) == 0x521", New: "n.firstDigits(3) == 0x522",
		Suite: "phone", Test: "TestSame|TestVariants|TestCanonical",
	},
	{
		Name: "argentina-549-is-another-number", Promise: "design.md 3: Argentina 54/549",
		Symbol: "phone.Number.argentineForms", Old: "n.firstDigits(3) == 0x549", New: "n.firstDigits(3) == 0x548",
		Suite: "phone", Test: "TestSame|TestVariants|TestCanonical",
	},
	{
		Name: "withheld-numbers-match", Promise: "hazards.md A5: a withheld number never matches",
		Symbol: "phone.Same", Old: "!a.IsZero() &&", New: "",
		Suite: "phone", Test: "TestSame_none",
	},
	{
		Name: "direction-marks-refused", Promise: "proof.md 11: pasted direction marks are normalized",
		Symbol: "phone.isInvisible", Old: "r >= '\\u202a' && r <= '\\u202e'", New: "r > '\\u202a' && r < '\\u202c'",
		Suite: "phone", Test: "TestParse_normalizes|TestNormalizeRune",
	},
	{
		Name: "digits-of-two-scripts-that-touch-are-one", Promise: "proof.md 11: decimal digits of other scripts are normalized",
		Symbol: "phone.asciiDigit", Old: "offset%10", New: "offset%16",
		Suite: "phone", Test: "TestParse_normalizes|TestNormalizeRune",
	},
	{
		Name: "number-of-many-bytes-refused", Promise: "proof.md 11: a pasted number has 32 characters, not 32 bytes",
		Symbol: "phone.isTooLong", Old: "utf8.RuneCountInString(input) > maxInput", New: "len(input) > maxInput",
		Suite: "phone", Test: "TestParse_normalizes",
	},
	{
		Name: "reported-number-in-another-form", Promise: "design.md 3: actualPhoneNumber is the number the messenger reported",
		Symbol: "phone.parseReported", Old: "return n, nil", New: "return Canonical(n), nil",
		Suite: "phone", Test: "TestParseReported",
	},
}
