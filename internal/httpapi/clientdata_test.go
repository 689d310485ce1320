package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// bodyWith returns an init body with one more field, whose value is JSON.
func bodyWith(field, value string) request {
	return requestWithBody(`{"phoneNumber":"+4915123456789","` + field + `":` + value + `}`)
}

// metadataOf returns an object of n pairs.
func metadataOf(n int) string {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"key%d":"v"`, i)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

func TestInit_reference(t *testing.T) {
	ok := func(name, value string) badRequest {
		return badRequest{name, bodyWith("reference", value), 200, "", ""}
	}
	refused := func(name, value string, code verification.ErrorCode) badRequest {
		return badRequest{name, bodyWith("reference", value), 400, code, "reference"}
	}
	const invalid = verification.CodeInvalidReference
	expectEach(t, []badRequest{
		ok("one character", `"a"`), ok("128 characters", `"`+strings.Repeat("漢", 128)+`"`), ok("null", `null`),
		ok("quotes, emoji and escapes", `"\"\\\/ 😀 \ud83d\ude00 \u00e9"`), ok("look of HTML", `"<script>alert(1)</script>"`),
		ok("a mark that changes nothing after it", `"a\u200eb"`), ok("replacement character", `"\ufffd"`),
		refused("empty", `""`, invalid), refused("129 characters", `"`+strings.Repeat("a", 129)+`"`, invalid),
		refused("129 characters of four bytes", `"`+strings.Repeat("😀", 129)+`"`, invalid),
		refused("line feed", `"a\nb"`, invalid), refused("NUL", `"\u0000"`, invalid), refused("DEL", `"\u007f"`, invalid),
		refused("next line", `"\u0085"`, invalid), refused("line separator", `"\u2028"`, invalid), refused("paragraph separator", `"\u2029"`, invalid),
		refused("first embedding", `"\u202a"`, invalid), refused("right-to-left override", `"\u202e"`, invalid),
		refused("first isolate", `"\u2066"`, invalid), refused("end of an isolate", `"\u2069"`, invalid),
		refused("number", `7`, codeInvalidType), refused("object", `{"a":"b"}`, codeInvalidType), refused("boolean", `true`, codeInvalidType),
		refused("half a pair", `"\ud83d"`, codeInvalidJSON), refused("half a pair before an escape", `"\ud83d\u0041"`, codeInvalidJSON),
		refused("the halves in the wrong order", `"\ude00\ud83d"`, codeInvalidJSON),
		refused("half a pair after a backslash", `"\\\ud83d"`, codeInvalidJSON),
		refused("half a pair beside a replacement character", `"\ufffd`+"\uFFFD"+`\udc00"`, codeInvalidJSON),
		ok("a backslash before a u", `"\\ud83d"`),
		refused("twice", `"a","reference":"a"`, codeInvalidJSON), refused("twice, null first", `null,"r\u0065ference":"a"`, codeInvalidJSON),
	})
}

func TestInit_metadata(t *testing.T) {
	ok := func(name, value string) badRequest { return badRequest{name, bodyWith("metadata", value), 200, "", ""} }
	refused := func(name, value string, code verification.ErrorCode) badRequest {
		return badRequest{name, bodyWith("metadata", value), 400, code, "metadata"}
	}
	sized := func(n int) string {
		return `{"a":"` + strings.Repeat("x", 500) + `","b":"` + strings.Repeat("x", n-502) + `"}`
	}
	const invalid = verification.CodeInvalidMetadata
	expectEach(t, []badRequest{
		ok("null", `null`), ok("no pairs", `{}`), ok("an empty value", `{"a":""}`), ok("every kind of character in a key", `{"A.b_c-9":"x"}`),
		ok("16 pairs", metadataOf(16)), refused("17 pairs", metadataOf(17), invalid), refused("600 pairs", metadataOf(600), invalid),
		ok("1,024 bytes", sized(1024)), refused("1,025 bytes", sized(1025), invalid),
		ok("1,024 bytes of characters of three", `{"a":"`+strings.Repeat("漢", 341)+`"}`),
		refused("1,027 bytes of characters of three", `{"a":"`+strings.Repeat("漢", 342)+`"}`, invalid),
		refused("1,026 bytes by escapes", `{"aa":"`+strings.Repeat(`\u00e9`, 512)+`"}`, invalid),
		ok("key of 64 characters", `{"`+strings.Repeat("k", 64)+`":"x"}`), refused("key of 65", `{"`+strings.Repeat("k", 65)+`":"x"}`, invalid),
		refused("empty key", `{"":"x"}`, invalid), refused("space in a key", `{"a b":"x"}`, invalid), refused("slash in a key", `{"a/b":"x"}`, invalid),
		refused("line feed after a key", `{"a\n":"x"}`, invalid), refused("letter outside ASCII in a key", `{"é":"x"}`, invalid),
		refused("line feed", `{"a":"\n"}`, invalid), refused("tab", `{"a":"\t"}`, invalid), refused("NUL", `{"a":"x\u0000"}`, invalid),
		refused("next line", `{"a":"\u0085"}`, invalid), ok("line separator", `{"a":"\u2028"}`), ok("override", `{"a":"\u202e"}`),
		refused("string", `"a"`, codeInvalidType), ok("empty array, as of PHP", `[]`), ok("empty array with white space", "[ \r\n\t]"), refused("array", `["a"]`, codeInvalidType), refused("empty array in an array", `[[]]`, codeInvalidType), refused("array of pairs", `[["a","b"]]`, codeInvalidType),
		refused("number", `1`, codeInvalidType), refused("boolean", `false`, codeInvalidType),
		refused("a number among strings", `{"a":"x","b":1}`, codeInvalidType), refused("a null among strings", `{"a":"x","b":null}`, codeInvalidType),
		refused("a boolean as value", `{"a":true}`, codeInvalidType),
		refused("object as value", `{"a":{"b":"c"}}`, codeInvalidType), refused("array as value", `{"a":["b"]}`, codeInvalidType),
		refused("a value that repeats a key", `{"a":{"b":"c","b":"d"}}`, codeInvalidType),
		refused("nested 4,000 deep", `{"a":`+strings.Repeat("[", 4000)+strings.Repeat("]", 4000)+`}`, codeInvalidType),
		refused("objects nested 1,000 deep", `{"a":`+strings.Repeat(`{"a":`, 1000)+`1`+strings.Repeat("}", 1001), codeInvalidType),
		{"nested and cut off", requestWithBody(`{"phoneNumber":"+4915123456789","metadata":` + strings.Repeat(`{"a":`, 1500)), 400, codeInvalidJSON, ""},
		refused("a key twice", `{"a":"x","a":"x"}`, codeInvalidJSON), refused("a key twice by escape", `{"a":"x","\u0061":"y"}`, codeInvalidJSON),
		refused("a key 1,000 times", "{"+strings.TrimSuffix(strings.Repeat(`"":"",`, 1000), ",")+"}", codeInvalidJSON),
		refused("half a pair in a value", `{"a":"\ud83d"}`, codeInvalidJSON), refused("half a pair in a key", `{"\udc00":"x"}`, codeInvalidJSON),
		ok("a whole pair", `{"a":"\ud83d\ude00"}`),
		refused("given twice", `{"a":"x"},"metadata":{"b":"x"}`, codeInvalidJSON), refused("given twice, null first", `null,"metadata":{}`, codeInvalidJSON), refused("given twice, empty array first", `[],"metadata":{"a":"b"}`, codeInvalidJSON),
		{"in another case", bodyWith("Metadata", `[1]`), 200, "", ""},
	})
}

func TestInit_locale(t *testing.T) {
	ok := func(name, value string) badRequest { return badRequest{name, bodyWith("locale", value), 200, "", ""} }
	refused := func(name, value string, code verification.ErrorCode) badRequest {
		return badRequest{name, bodyWith("locale", value), 400, code, "locale"}
	}
	const invalid = verification.CodeInvalidLocale
	expectEach(t, []badRequest{
		ok("null", `null`), ok("language", `"es"`), ok("three letters", `"tlh"`), ok("region", `"pt-BR"`), ok("in capitals", `"PT-br"`),
		ok("script and region", `"zh-Hant-TW"`), ok("region of the world", `"es-419"`), ok("unknown language", `"xx"`),
		ok("unknown variant", `"en-1997"`), ok("extension", `"de-u-co-phonebk"`), ok("35 characters", `"en-x-aaaaaaaa-bbbbbbbb-cccccccc-ddd"`),
		refused("36 characters", `"en-x-aaaaaaaa-bbbbbbbb-cccccccc-dddd"`, invalid), refused("empty", `""`, invalid), refused("one letter", `"e"`, invalid),
		refused("of POSIX", `"pt_BR"`, invalid), refused("with an encoding", `"pt_BR.UTF-8"`, invalid), refused("name", `"english"`, invalid),
		refused("private use alone", `"x-private"`, invalid), refused("hyphen at the end", `"en-"`, invalid), refused("hyphen first", `"-en"`, invalid),
		refused("two regions", `"en-US-GB"`, invalid), refused("extension without content", `"en-a"`, invalid),
		refused("list", `"es, en;q=0.5"`, invalid), refused("space", `"es "`, invalid), refused("line feed", `"es\n"`, invalid), refused("NUL", `"es\u0000"`, invalid),
		refused("letters outside ASCII", `"ёс"`, invalid), refused("number", `1`, codeInvalidType), refused("array", `["es"]`, codeInvalidType),
		refused("half a pair", `"\ud83d"`, codeInvalidJSON), refused("twice", `"es","locale":"es"`, codeInvalidJSON),
	})
}

// A language that exists is not refused, whether or not there are texts in it.
func TestLocale_ofEveryKind(t *testing.T) {
	for _, tag := range []string{"es", "ES-mx", "zh-hant-tw", "cel-gaulish", "zh-min", "en-GB-oed", "xx", "xx-DE", "und", "sh", "en-x-a-b-c-d", "aaa-bbb-ccc"} {
		NewWithT(t).Expect(isLocale(tag)).To(BeTrue(), tag)
	}
}

// Status answers the client's data as they were given, in each phase, and nothing if there were none.
func TestStatus_answersTheClientsData(t *testing.T) {
	g := NewWithT(t)
	fake := clocktesting.NewFakeClock(time.Now())
	h := newHarness(t, func(s *setup) { s.options.Clock = fake })
	const reference = `order "7" \ <b>é😀 canary-of-the-reference`
	metadata := map[string]string{"z": "canary-of-the-metadata", "A.b_c-9": "", "m": "\u2028\u202e \"\\ 漢😀", "canary-of-a-key": "1"}
	h.canaries.add("canary-of-the-reference", "canary-of-the-metadata", "canary-of-a-key")
	body, err := json.Marshal(map[string]any{"phoneNumber": h.newNumber(1), "reference": reference, "metadata": metadata, "locale": "es-MX"})
	g.Expect(err).NotTo(HaveOccurred())
	given := h.do(initRequest(keyAll, string(body)))
	g.Expect(given.fields).To(HaveLen(5), "init answers what it always did")
	id := given.stringField("requestId")
	want := map[string]any{}
	for key, value := range metadata {
		want[key] = value
	}
	expectData := func(phase string) {
		a := h.do(statusRequest(keyStatus, "id="+id))
		g.Expect(a.fields).To(And(HaveKeyWithValue("status", phase), HaveKeyWithValue("reference", reference), HaveKeyWithValue("metadata", want)))
		g.Expect(a.fields).NotTo(HaveKey("locale"))
		g.Expect(string(a.body)).To(MatchRegexp(`"metadata":\{"A.b_c-9":"","canary-of-a-key":.*,"m":.*,"z":.*\}`), "the keys are in order")
	}
	expectData("PENDING")
	stored, err := h.store.Read(t.Context(), id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.ClientData).To(Equal(verification.ClientData{Reference: reference, Metadata: metadata, Locale: "es"}))
	h.verifyRequest(id, h.newNumber(1), verification.AssuranceUsual)
	expectData("VERIFIED")

	pending := h.do(initRequest(keyAll, fmt.Sprintf(`{"phoneNumber":%q,"reference":"r"}`, h.newNumber(1)))).stringField("requestId")
	for _, none := range []string{`{"phoneNumber":%q}`, `{"phoneNumber":%q,"reference":null,"metadata":null,"locale":null}`, `{"phoneNumber":%q,"metadata":{}}`} {
		plain := h.do(initRequest(keyAll, fmt.Sprintf(none, h.newNumber(1)))).stringField("requestId")
		g.Expect(h.do(statusRequest(keyStatus, "id="+plain)).fields).To(HaveLen(3), none)
		stored, err := h.store.Read(t.Context(), plain)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stored.ClientData).To(Equal(verification.ClientData{}))
	}
	fake.Step(time.Hour)
	a := h.do(statusRequest(keyStatus, "id="+pending))
	g.Expect(a.fields).To(And(HaveLen(4), HaveKeyWithValue("status", "EXPIRED"), HaveKeyWithValue("reference", "r")))

	// A refusal repeats nothing of them either.
	for _, bad := range []string{`"reference":"canary-of-the-reference\n"`, `"metadata":{"canary-of-a-key":"canary-of-the-metadata\n"}`, `"metadata":{"canary-of-a-key":1}`} {
		h.do(requestWithBody(`{"phoneNumber":"` + h.newNumber(1) + `",` + bad + `}`).markInvalid())
	}
	h.canaries.check(t, "log", h.logText())
	h.canaries.check(t, "metrics", h.gatherMetrics())
}

func TestInit_idempotencyKeyWithClientData(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	number := h.newNumber(1)
	try := func(key, rest string) answer {
		return h.do(initRequest(keyAll, fmt.Sprintf(`{"phoneNumber":%q%s}`, number, rest)).withHeader("Idempotency-Key", key))
	}
	bodies := map[string]string{
		"plain": ``, "reference": `,"reference":"a"`, "locale": `,"locale":"es"`, "other locale": `,"locale":"fr"`,
		"metadata": `,"metadata":{"a":"b","c":"d"}`, "other value": `,"metadata":{"a":"b","c":"e"}`, "other key": `,"metadata":{"a":"b","e":"d"}`,
		"one pair": `,"metadata":{"a":"b"}`, "all": `,"reference":"a","locale":"es","metadata":{"a":"b","c":"d"}`,
	}
	same := map[string]string{
		"plain": `,"reference":null,"metadata":{},"locale":null,"unknown":1`, "reference": `, "reference" : "\u0061"`,
		"metadata": `,"metadata":{"c":"d","\u0061":"b"}`, "all": `,"metadata":{"c":"d","a":"b"},"locale":"es","reference":"a"`,
	}
	ids := map[string]bool{}
	for name, body := range bodies {
		first := try(name, body)
		g.Expect(first.status).To(Equal(200), name)
		ids[first.stringField("requestId")] = true
		for _, again := range []string{body, same[name]} {
			if again != "" || name == "plain" {
				g.Expect(try(name, again).stringField("requestId")).To(Equal(first.stringField("requestId")), name)
			}
		}
		for other, otherBody := range bodies {
			if other != name {
				a := try(name, otherBody)
				expectRefusal(g, a, 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
			}
		}
	}
	g.Expect(ids).To(HaveLen(len(bodies)))
}

// What is nested costs no more than to find its end.
func TestDecode_nestedMetadataIsNotDecoded(t *testing.T) {
	g := NewWithT(t)
	cost := func(depth int) float64 {
		body := []byte(`{"metadata":{"a":` + strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat("}", depth) + "}}")
		return testing.AllocsPerRun(20, func() { _, _ = decodeInit(body) })
	}
	g.Expect(cost(1200)).To(BeNumerically("<", cost(1)+30), "the scanner's stack alone grows, by doubling")
}

// decodeMetadata returns the pairs of a body that decodeInit has accepted.
func decodeMetadata(body initBody) map[string]any {
	pairs := map[string]any{}
	for key, field := range body.Metadata.pairs {
		pairs[key] = field.value
	}
	return pairs
}

// FuzzClientData checks that what is accepted comes back from status as the same JSON, and is within its limits.
func FuzzClientData(f *testing.F) {
	for _, seed := range []string{`{"reference":"a","metadata":{"a":"b"}}`, `{"metadata":{"a":"\ud83d\ude00\u2028"}}`, `{"reference":"\ud800"}`, `{"metadata":{"a":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := decodeInit(data)
		if err != nil {
			return
		}
		x := exchange{settings: liveSettings()}
		given, err := x.readClientData(&body)
		if err != nil {
			return
		}
		var answered struct {
			Reference string            `json:"reference"`
			Metadata  map[string]string `json:"metadata"`
		}
		text := appendClientData([]byte(`{"x":1`), &verification.Request{ClientData: given})
		if err := json.Unmarshal(append(text, '}'), &answered); err != nil {
			t.Fatalf("%q: %q: %v", data, text, err)
		}
		if answered.Reference != given.Reference || !maps.Equal(answered.Metadata, given.Metadata) || (answered.Metadata == nil) != (given.Metadata == nil) {
			t.Fatalf("%q: answered %+v for %+v", data, answered, given)
		}
		size := 0
		for key, value := range given.Metadata {
			size += len(key) + len(value)
			if len(key) > 64 || strings.ContainsAny(value, "\x00\t\n\r\x7f\u0085") {
				t.Fatalf("%q: accepted %q of %q", data, value, key)
			}
		}
		if size > 1024 || len(given.Metadata) > 16 || len([]rune(given.Reference)) > 128 {
			t.Fatalf("%q: accepted too much", data)
		}
	})
}
