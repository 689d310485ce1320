package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// badRequest is a request with its expected refusal; status 200 if it is valid after all.
type badRequest struct {
	name    string
	request request
	status  int
	code    verification.ErrorCode
	field   string
}

// longNumber matches what may be a phone number.
var longNumber = regexp.MustCompile(`[0-9]{10,15}`)

// expectEach sends all requests to one server and checks the answers.
func expectEach(t *testing.T, rows []badRequest) {
	t.Helper()
	h := newHarness(t)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			h.t = t
			sent := row.request.body[:min(len(row.request.body), 2*maxBodyBytes)] // the server reads no more
			h.canaries.add(longNumber.FindAllString(sent+row.request.target, -1)...)
			reads := h.store.calls.Load()
			a := h.do(row.request.markInvalid())
			if row.status == http.StatusUnauthorized || row.status == http.StatusForbidden {
				g.Expect(h.store.calls.Load()).To(Equal(reads), "a request without a valid key must not cause a call of the store")
			}
			if row.status == http.StatusOK {
				g.Expect(a.status).To(Equal(http.StatusOK), string(a.body))
				return
			}
			expectRefusal(g, a, row.status, row.code, row.field)
		})
	}
	h.t = t
}

// requestWithBody returns an init request with that body.
func requestWithBody(text string) request { return initRequest(keyAll, text) }

// requestWithNumber returns an init request for that phone number, valid or not.
func requestWithNumber(text string) request {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return requestWithBody(`{"phoneNumber":` + string(quoted) + `}`)
}

func TestInit_invalidJSON(t *testing.T) {
	valid := `{"phoneNumber":"+4915123456789"}`
	rows := []badRequest{
		{"empty", requestWithBody(""), 400, codeInvalidJSON, ""},
		{"white space", requestWithBody(" \r\n\t"), 400, codeInvalidJSON, ""},
		{"null", requestWithBody("null"), 400, codeInvalidJSON, ""},
		{"array", requestWithBody("[]"), 400, codeInvalidJSON, ""},
		{"string", requestWithBody(`"+4915123456789"`), 400, codeInvalidJSON, ""},
		{"trailing garbage", requestWithBody(valid + "x"), 400, codeInvalidJSON, ""},
		{"trailing NUL", requestWithBody(valid + "\x00"), 400, codeInvalidJSON, ""},
		{"two objects", requestWithBody(valid + valid), 400, codeInvalidJSON, ""},
		{"trailing white space", requestWithBody(valid + "\n"), 200, "", ""},
		{"repeated phoneNumber", requestWithBody(`{"phoneNumber":"+4915123456789","phoneNumber":"+4915123456788"}`), 400, codeInvalidJSON, "phoneNumber"},
		{"repeated by escape", requestWithBody(`{"phoneNumber":"+4915123456789","phone\u004eumber":"1"}`), 400, codeInvalidJSON, "phoneNumber"},
		{"repeated method", requestWithBody(`{"method":"TELEGRAM","method":"TELEGRAM","phoneNumber":"+4915123456789"}`), 400, codeInvalidJSON, "method"},
		{"repeated unknown field", requestWithBody(`{"a":1,"a":2,"phoneNumber":"+4915123456789"}`), 200, "", ""},
		{"nested 10,000 deep", requestWithBody(`{"x":` + strings.Repeat("[", 8000) + `}`), 400, codeInvalidJSON, ""},
		{"objects nested deep", requestWithBody(`{"x":` + strings.Repeat(`{"a":`, 1000) + `1`), 400, codeInvalidJSON, ""},
		{"nested deep in an unknown field", requestWithBody(`{"phoneNumber":"+4915123456789","x":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + "}"), 200, "", ""},
		{"invalid UTF-8", requestWithBody("{\"phoneNumber\":\"+49151\xff\"}"), 400, codeInvalidJSON, ""},
		{"overlong UTF-8", requestWithBody("{\"x\":\"\xc0\xaf\",\"phoneNumber\":\"+4915123456789\"}"), 400, codeInvalidJSON, ""},
		{"surrogate in UTF-8", requestWithBody("{\"x\":\"\xed\xa0\x80\",\"phoneNumber\":\"+4915123456789\"}"), 400, codeInvalidJSON, ""},
		{"lone high surrogate", requestWithBody(`{"phoneNumber":"\ud800"}`), 400, codeInvalidJSON, "phoneNumber"},
		{"lone low surrogate", requestWithBody(`{"phoneNumber":"\udc00"}`), 400, codeInvalidJSON, "phoneNumber"},
		{"lone surrogate in an unknown field", requestWithBody(`{"x":"\ud800\u0041","phoneNumber":"+4915123456789"}`), 200, "", ""},
		{"lone surrogate in a subject", requestWithBody(`{"subject":"\ud800","phoneNumber":"+4915123456789"}`), 400, codeInvalidJSON, "subject"},
		{"replacement character in a subject", requestWithBody(`{"subject":"\ufffd` + "\uFFFD" + `","phoneNumber":"+4915123456789"}`), 200, "", ""},
		{"surrogate pair", requestWithBody(`{"x":"\ud83d\ude00","phoneNumber":"+4915123456789"}`), 200, "", ""},
		{"byte order mark", requestWithBody("\xef\xbb\xbf" + valid), 400, codeInvalidJSON, ""},
		{"UTF-16", requestWithBody("\xff\xfe{\x00}\x00"), 400, codeInvalidJSON, ""},
		{"comment", requestWithBody(`{/**/"phoneNumber":"+4915123456789"}`), 400, codeInvalidJSON, ""},
		{"single quotes", requestWithBody(`{'phoneNumber':'+4915123456789'}`), 400, codeInvalidJSON, ""},
		{"trailing comma", requestWithBody(`{"phoneNumber":"+4915123456789",}`), 400, codeInvalidJSON, ""},
		{"line feed in a string", requestWithBody("{\"phoneNumber\":\"+49\n15123456789\"}"), 400, codeInvalidJSON, ""},
		{"unknown escape", requestWithBody(`{"phoneNumber":"\x41"}`), 400, codeInvalidJSON, ""},
		{"NaN", requestWithBody(`{"x":NaN}`), 400, codeInvalidJSON, ""},
		{"leading zero", requestWithBody(`{"x":01}`), 400, codeInvalidJSON, ""},
		{"form", requestWithBody("phoneNumber=%2B4915123456789"), 400, codeInvalidJSON, ""},
	}
	for end := range len(valid) {
		rows = append(rows, badRequest{fmt.Sprintf("cut at %d", end), requestWithBody(valid[:end]), 400, codeInvalidJSON, ""})
	}
	expectEach(t, rows)
}

func TestInit_fields(t *testing.T) {
	const rest = `"phoneNumber":"+4915123456789"}`
	expectEach(t, []badRequest{
		{"no phoneNumber", requestWithBody(`{}`), 400, codeMissingField, "phoneNumber"},
		{"other case", requestWithBody(`{"phonenumber":"+4915123456789"}`), 400, codeMissingField, "phoneNumber"},
		{"look-alike name", requestWithBody(`{"phoneNumb\u0435r":"+4915123456789"}`), 400, codeMissingField, "phoneNumber"},
		{"name by escape", requestWithBody(`{"phone\u004eumber":"+4915123456789"}`), 200, "", ""},
		{"number for phoneNumber", requestWithBody(`{"phoneNumber":4915123456789}`), 400, codeInvalidType, "phoneNumber"},
		{"null for phoneNumber", requestWithBody(`{"phoneNumber":null}`), 400, codeInvalidType, "phoneNumber"},
		{"array for phoneNumber", requestWithBody(`{"phoneNumber":["+4915123456789"]}`), 400, codeInvalidType, "phoneNumber"},
		{"object for phoneNumber", requestWithBody(`{"phoneNumber":{"a":"b"}}`), 400, codeInvalidType, "phoneNumber"},
		{"broken value for phoneNumber", requestWithBody(`{"phoneNumber":tru}`), 400, codeInvalidJSON, ""},
		{"boolean for method", requestWithBody(`{"method":true,` + rest), 400, codeInvalidType, "method"},
		{"null for method", requestWithBody(`{"method":null,` + rest), 200, "", ""},
		{"the word null for method", requestWithBody(`{"method":"null",` + rest), 400, verification.CodeInvalidMethod, "method"},
		{"null for method twice", requestWithBody(`{"method":null,"method":null,` + rest), 400, codeInvalidJSON, "method"},
		{"array for method", requestWithBody(`{"method":["WHATSAPP"],` + rest), 400, codeInvalidType, "method"},
		{"mixed case method", requestWithBody(`{"method":"WhatsApp",` + rest), 400, verification.CodeInvalidMethod, "method"},
		{"sms", requestWithBody(`{"method":"sms",` + rest), 400, verification.CodeInvalidMethod, "method"},
		{"empty method", requestWithBody(`{"method":"",` + rest), 400, verification.CodeInvalidMethod, "method"},
		{"method with space", requestWithBody(`{"method":"WHATSAPP ",` + rest), 400, verification.CodeInvalidMethod, "method"},
		{"both methods", requestWithBody(`{"method":"TELEGRAM",` + rest), 200, "", ""},
		{"returnURL twice", requestWithBody(`{"returnURL":"https://shop.example/","returnURL":"https://other.example/",` + rest), 400, codeInvalidJSON, "returnURL"},
		{"returnURL twice, once by escape", requestWithBody(`{"returnURL":null,"return\u0055RL":null,` + rest), 400, codeInvalidJSON, "returnURL"},
		{"unknown field", requestWithBody(`{"channel":"sms",` + rest), 200, "", ""},
		{"ttl is unknown", requestWithBody(`{"ttl":-1e309,"ttl2":"10m","ttl3":9223372036854775808,` + rest), 200, "", ""},
		{"callback is unknown", requestWithBody(`{"callbackUrl":"javascript:alert(1)",` + rest), 200, "", ""},
	})
}

func TestInit_phoneNumbers(t *testing.T) {
	refused := func(name, text string) badRequest {
		return badRequest{name, requestWithNumber(text), 400, verification.CodeInvalidPhoneNumber, "phoneNumber"}
	}
	accepted := func(name, text string) badRequest { return badRequest{name, requestWithNumber(text), 200, "", ""} }
	expectEach(t, []badRequest{
		refused("empty", ""), refused("plus", "+"), refused("plus zero", "+04915123456789"),
		refused("double zero", "004915123456789"), refused("16 digits", "+4915123456789012"), refused("too short", "+491512"),
		refused("letters", "+1800FLOWERS"), refused("full-width letter", "+4915123456789ｘ"), refused("superscript", "+4915123456789²"),
		refused("line separator", "+49\u202815123456789"), refused("33 characters", "+49"+strings.Repeat("\u200e", 19)+"15123456789"),
		refused("extension", "+4915123456789;ext=1"), refused("tel URI", "tel:+4915123456789"), refused("national", "015123456789"),
		refused("anonymous", "+88812345678"), refused("premium rate", "+979123456789"), refused("international freephone", "+80012345678"),
		refused("SQL", "+4915123456789' OR 1=1"), refused("long", strings.Repeat("1", 4000)),
		refused("CRLF", "+4915123456789\r\nX-Injected: 1"), refused("ANSI", "\x1b[31m+4915123456789"), refused("percent", "+49%0a15123456789"),
		{"NUL", requestWithBody(`{"phoneNumber":"+4915123456789\u0000"}`), 400, verification.CodeInvalidPhoneNumber, "phoneNumber"},
		refused("fictional", "+1 (555) 010-0000"),
		accepted("tab and line end around", "\t+4915123456789\r\n"),
		accepted("separators", "+49 (1512) 345-67.89"), accepted("no plus", "4915123456789"),
		accepted("direction marks", "\u202a+4915123456789\u202c"), accepted("right-to-left mark", "+49\u200f15123456789"),
		accepted("no-break spaces", "+49\u00a01512\u00a03456789"), accepted("non-breaking hyphens", "+49\u20111512\u20113456789"),
		accepted("full-width", "＋４９１５１２３４５６７８９"), accepted("Arabic-Indic digits", "+٤٩١٥١٢٣٤٥٦٧٨٩"), accepted("Devanagari", "+४९१५१२३४५६७८९"),
		accepted("Mexico", "+525512345678"), accepted("Mexico, mobile", "+5215512345678"),
		accepted("Argentina", "+541123456789"), accepted("Argentina, mobile", "+5491123456789"),
		accepted("Brazil with nine", "+5511987654321"), accepted("Brazil without", "+551187654321"),
		accepted("Bahamas", "+12423591234"), accepted("United States", "+12125550123"),
		accepted("Russia", "+79161234567"), accepted("Kazakhstan", "+77011234567"),
	})
}

func TestInit_headersOfTheBody(t *testing.T) {
	good := requestWithBody(`{"phoneNumber":"+4915123456789"}`)
	ct := func(values ...string) request { return good.withHeader("Content-Type", values...) }
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(`{"phoneNumber":"+4915123456789"}`))
	NewWithT(t).Expect(errors.Join(err, w.Close())).To(Succeed())
	gzipped := requestWithBody(zipped.String()).withHeader("Content-Encoding", "gzip")
	expectEach(t, []badRequest{
		{"none", ct(), 415, codeMediaType, "Content-Type"},
		{"empty", ct(""), 415, codeMediaType, "Content-Type"},
		{"text", ct("text/plain"), 415, codeMediaType, "Content-Type"},
		{"form", ct("application/x-www-form-urlencoded"), 415, codeMediaType, "Content-Type"},
		{"multipart", ct("multipart/form-data; boundary=x"), 415, codeMediaType, "Content-Type"},
		{"look-alike", ct("application/json5"), 415, codeMediaType, "Content-Type"},
		{"two", ct("application/json", "application/json"), 415, codeMediaType, "Content-Type"},
		{"list", ct("application/json, text/plain"), 415, codeMediaType, "Content-Type"},
		{"other charset", ct("application/json; charset=utf-16"), 415, codeMediaType, "Content-Type"},
		{"malformed", ct("application/json; charset"), 415, codeMediaType, "Content-Type"},
		{"parameter in the list", ct("application/json; version=1, text/plain"), 415, codeMediaType, "Content-Type"},
		{"utf-8", ct(`Application/JSON;charset="UTF-8"`), 200, "", ""},
		{"utf-8 as usual", ct("application/json; charset=utf-8"), 200, "", ""},
		{"utf8", ct("application/json; charset=utf8"), 200, "", ""},
		{"utf8, in capitals and quotes", ct(`application/json ; Charset="UTF8"`), 200, "", ""},
		{"other parameter alone", ct("application/json; version=1"), 200, "", ""},
		{"other parameters", ct(`application/json; profile="a; charset=utf-16"; charset=utf-8; version=1`), 200, "", ""},
		{"other charset, quoted", ct(`application/json; version=1; charset="iso-8859-1"`), 415, codeMediaType, "Content-Type"},
		{"repeated charset", ct("application/json; charset=utf-8; charset=utf-8"), 415, codeMediaType, "Content-Type"},
		{"two charsets", ct("application/json; charset=utf-8;version=1 ; CHARSET =utf8"), 415, codeMediaType, "Content-Type"},
		{"empty charset", ct("application/json; charset="), 415, codeMediaType, "Content-Type"},
		{"empty charset, quoted", ct(`application/json; charset=""`), 415, codeMediaType, "Content-Type"},
		{"charset in the extended form", ct("application/json; charset*=utf-16"), 415, codeMediaType, "Content-Type"},
		{"charset in parts", ct("application/json; charset*0=ut; charset*1=f-8"), 415, codeMediaType, "Content-Type"},
		{"gzip", gzipped, 415, codeContentEncoding, "Content-Encoding"},
		{"gzip without Content-Encoding", requestWithBody(zipped.String()), 400, codeInvalidJSON, ""},
		{"identity", good.withHeader("Content-Encoding", "identity"), 200, "", ""},
		{"two encodings", good.withHeader("Content-Encoding", "identity", "gzip"), 415, codeContentEncoding, "Content-Encoding"},
	})
}

func TestInit_sizeOfTheBody(t *testing.T) {
	const around = len(`{"phoneNumber":"+4915123456789","x":""}`)
	sized := func(n int) string {
		return `{"phoneNumber":"+4915123456789","x":"` + strings.Repeat("a", n-around) + `"}`
	}
	chunked := func(text string) request {
		r := requestWithBody("")
		r.stream = io.MultiReader(strings.NewReader(text)) // hides its length from net/http
		return r
	}
	expectEach(t, []badRequest{
		{"at the limit", requestWithBody(sized(maxBodyBytes)), 200, "", ""},
		{"one more", requestWithBody(sized(maxBodyBytes + 1)), 413, codeBodyTooLarge, ""},
		{"16 MiB", requestWithBody(sized(16 << 20)), 413, codeBodyTooLarge, ""},
		{"chunked, at the limit", chunked(sized(maxBodyBytes)), 200, "", ""},
		{"chunked, one more", chunked(sized(maxBodyBytes + 1)), 413, codeBodyTooLarge, ""},
		{"chunked, 16 MiB", chunked(sized(16 << 20)), 413, codeBodyTooLarge, ""},
	})
}

func TestInit_idempotencyKeys(t *testing.T) {
	good := requestWithBody(`{"phoneNumber":"+4915123456789"}`)
	key := func(values ...string) request { return good.withHeader("Idempotency-Key", values...) }
	expectEach(t, []badRequest{
		{"empty", key(""), 400, verification.CodeInvalidIdempotency, "Idempotency-Key"},
		{"longest", key(strings.Repeat("a", 255)), 200, "", ""},
		{"longer", key(strings.Repeat("a", 256)), 400, verification.CodeInvalidIdempotency, "Idempotency-Key"},
		{"10 kB", key(strings.Repeat("a", 10_000)), 400, verification.CodeInvalidIdempotency, "Idempotency-Key"},
		{"two", key("a", "b"), 400, verification.CodeInvalidIdempotency, "Idempotency-Key"},
		{"quoted", key(`"9f2c1c52"`), 200, "", ""},
	})
}
