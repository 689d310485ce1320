package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestDecode_readsLikeEncodingJSON(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{
		`{"phoneNumber":"a"}`, ` { "phoneNumber" : "\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00" , "method" : "" } `,
		`{"x":[1,-0.5e+10,true,false,null,{"y":[]},{}],"phoneNumber":"é"}`, `{}`,
	} {
		got, err := decodeInit([]byte(text))
		g.Expect(err).NotTo(HaveOccurred(), text)
		var want map[string]any
		g.Expect(json.Unmarshal([]byte(text), &want)).To(Succeed())
		number, has := want["phoneNumber"]
		g.Expect(got.PhoneNumber.given).To(Equal(has))
		if has {
			g.Expect(got.PhoneNumber.value).To(Equal(number))
		}
	}
}

func TestDecode_refusesInvalidJSON(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{
		`{"a"`, `{"a"1`, `{"a":`, `{"a":1`, `{"a":1 "b":2}`, `{"a":[1`, `{"a":[1}`, `{"a":[1 2]}`, `{"a":-}`, `{"a":1e}`, `{"a":.5}`, `{a:1}`,
		`{"a":"\`, `{"a":"\u12`, `{"a":"\u12G4"}`, `{"a":"\ud800\u12"}`, `{"method":"\ud800\ud800"}`, `{"a":"\n`, "{\"a\":\"\\n\x01\"}", "{\"a\":\"\x01\"}",
		`{"a":"b`, `{"a":tRUE}`, `{"a":undefined}`, `{"a":1}}`, `{}{}`, `{`,
	} {
		_, err := decodeInit([]byte(text))
		g.Expect(err).To(MatchError(ContainSubstring(string(codeInvalidJSON))), text)
		g.Expect(json.Valid([]byte(text)) && !strings.Contains(text, "ud800")).To(BeFalse(), text)
	}
}

func TestDecode_namesTheSlip(t *testing.T) {
	g := NewWithT(t)
	const noValue = "a value is expected: text in double quotes, a number, true, false, null, an array or an object"
	for text, want := range map[string]string{
		"":                              "it is empty",
		"\xef\xbb\xbf{}":                "it starts with a byte order mark",
		"{\"ä\ufffd\":\"\xe4\"}":        "it is not UTF-8 from byte 11 on",
		"[]":                            "it must be one JSON object",
		" ":                             "it ends too early, after byte 1",
		`{"a":`:                         "it ends too early, after byte 5",
		`{"a":"secret`:                  "it ends too early, after byte 12",
		`{"a":"\`:                       "it ends too early, after byte 7",
		`{"a":tru`:                      "it ends too early, after byte 8",
		`{"a":-`:                        "it ends too early, after byte 6",
		`{"a":1,}`:                      "it is no JSON from byte 8 on: a closing bracket follows a comma",
		"{\"a\":[1,\n\t]}":              "it is no JSON from byte 11 on: a closing bracket follows a comma",
		`{"a":1}x`:                      "it is no JSON from byte 8 on: nothing may follow the object",
		`{"a":1} {"a":1}`:               "it is no JSON from byte 9 on: nothing may follow the object",
		`{'a':1}`:                       "it is no JSON from byte 2 on: a single quote stands where JSON has double quotes",
		`{"a":'`:                        "it is no JSON from byte 6 on: a single quote stands where JSON has double quotes",
		`{a:1}`:                         "it is no JSON from byte 2 on: a field name in double quotes is expected",
		`{"a":NaN}`:                     "it is no JSON from byte 6 on: " + noValue,
		`{"a":}`:                        "it is no JSON from byte 6 on: " + noValue,
		`{"a" 1}`:                       "it is no JSON from byte 6 on: a colon is expected",
		`{"a":1 "b":2}`:                 "it is no JSON from byte 8 on: a comma or a closing brace is expected",
		`{"a":01}`:                      "it is no JSON from byte 7 on: a comma or a closing brace is expected",
		`{"a":[1}`:                      "it is no JSON from byte 8 on: a comma or a closing bracket is expected",
		"{\"a\":\"\n":                   "it is no JSON from byte 7 on: a text has a control character, such as a line feed: write it as an escape",
		`{"a":"\x41"}`:                  "it is no JSON from byte 8 on: a text has an escape that JSON does not have",
		`{"a":"\u00g0"}`:                "it is no JSON from byte 11 on: a text has an escape that JSON does not have",
		`{"a":1.}`:                      "it is no JSON from byte 8 on: a number is not written as in JSON",
		`{"a":1ex`:                      "it is no JSON from byte 8 on: a number is not written as in JSON",
		`{"a":nan}`:                     "it is no JSON from byte 7 on: a word is neither true, false nor null",
		strings.Repeat(`{"a":`, 10_001): "it is no JSON from byte 50001 on: it is nested too deep",
	} {
		_, err := decodeInit([]byte(text))
		var refused *verification.Error
		g.Expect(errors.As(err, &refused)).To(BeTrue(), text)
		g.Expect(refused.Message).To(Equal("The body cannot be read: "+want+"."), text)
	}
}

// Whatever a body has, its error has nothing but a position and a constant text.
func TestDecode_repeatsNothingOfTheBody(t *testing.T) {
	g := NewWithT(t)
	constants := []string{slipComma, slipQuote}
	for _, known := range slips {
		constants = append(constants, known.slip)
	}
	message := regexp.MustCompile(`^invalid_json: The body cannot be read: it (ends too early, after byte \d+|is no JSON from byte \d+ on: (` +
		strings.Join(constants, "|") + `))\.$`)
	for _, start := range []string{"{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":[1`, `{"a":"`, `{"a":"\`, `{"a":"\u`, `{"a":-`, `{"a":t`, `{}`} {
		for c := range byte(utf8.RuneSelf) {
			if _, err := decodeInit([]byte(start + string(rune(c)))); err != nil {
				g.Expect(message.MatchString(err.Error())).To(BeTrue(), "%q: %s", start+string(rune(c)), err)
			}
		}
	}
}

// FuzzDecodeInit checks that encoding/json accepts all that decodeInit accepts, and that both read the same values.
func FuzzDecodeInit(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{"phoneNumber":"+4915123456789"}`, `{"phoneNumber":"+49`, `{"phoneNumber":"a","phoneNumber":"b"}`,
		`{"method":"TELEGRAM","phoneNumber":"\ud83d\ude00"}`, `{"phoneNumber":"\ud800"}`, "\xef\xbb\xbf{}", `{"a":{"b":[1e5,-0,"c"]}}`, `{"":{"":[1e700]}}`,
		`{"phoneNumber":null}`, `{"subject":null}`, `{"subject":"a"}`, `{"subject":null,"subject":"a"}`, `{"method":null}`, `{"reference":"a","locale":"es","metadata":{"a":"\ud83d\ude00","b":""}}`,
		`{"metadata":{"a":1}}`, `{"metadata":{"a":"b","\u0061":"c"}}`, `{"metadata":null}`, `{"reference":"\\\ud800"}`, `{"x":01}`, `{"x":1.}`, `{"phone\u004eumber":"a"}`, "{\"x\":\"\xff\"}", `{"":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeInit(data)
		if err != nil {
			return
		}
		if !utf8.Valid(data) {
			t.Fatalf("accepted invalid UTF-8: %q", data)
		}
		var want map[string]any
		reader := json.NewDecoder(bytes.NewReader(data))
		reader.UseNumber()                                                // numbers in JSON may be of any size
		if err := reader.Decode(&want); err != nil || !json.Valid(data) { // nothing follows it
			t.Fatalf("accepted %q, which encoding/json refuses: %v", data, err)
		}
		for name, field := range map[string]struct {
			value string
			has   bool
		}{
			"phoneNumber": {got.PhoneNumber.value, got.PhoneNumber.given}, "method": {got.Method.value, got.Method.given},
			"subject": {got.Subject.value, got.Subject.given}, "reference": {got.Reference.value, got.Reference.given},
			"locale": {got.Locale.value, got.Locale.given}, "deliver": {got.Deliver.value, got.Deliver.given},
		} {
			value, has := want[name]
			has = has && (name == "phoneNumber" || value != nil) // null for an optional field is the same as none
			if has != field.has || (has && value != field.value) {
				t.Fatalf("%q: read %s as %q, encoding/json as %v", data, name, field.value, value)
			}
		}
		pairs, _ := want["metadata"].(map[string]any)
		if read := decodeMetadata(got); !maps.Equal(read, pairs) {
			t.Fatalf("%q: read metadata as %v, encoding/json as %v", data, read, pairs)
		}
	})
}

// FuzzAppendString checks that appendString writes valid JSON for any display name.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "a\"b\\c", "\x00\x1f\x7f", "é\u2028\u2029", "\xff\xc0\xaf", "😀", "</script>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, want string
		if err := json.Unmarshal(appendString(nil, text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// FuzzStatusQuery checks that all accepted queries have an id and an allowed wait.
func FuzzStatusQuery(f *testing.F) {
	for _, seed := range []string{"", "id=a", "id=a&id=b", "id=%61&wait=20s", "wait=31s", "id=+%2B&&", "id=%zz", "%69d=a;x=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		query, err := parseStatusQuery(raw)
		if err != nil {
			return
		}
		if query.id == "" || query.wait < 0 || query.wait > maxWait {
			t.Fatalf("%q: accepted %+v", raw, query)
		}
	})
}
