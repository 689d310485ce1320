package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var codePattern = regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`)

// loadContract reads openapi.yaml.
func loadContract() *openapi3.T {
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		panic(err)
	}
	return document
}

// contract is openapi.yaml, read once and made stricter: clients must accept answers with new fields and codes, but this
// server must answer only with documented ones, and with exactly one link.
var contract = sync.OnceValue(func() *openapi3.T {
	document := loadContract()
	for _, schema := range answerSchemas(document) {
		rejectOtherFields(schema)
	}
	schemas := document.Components.Schemas
	schemas["InitResponse"].Value.OneOf = openapi3.SchemaRefs{
		openapi3.NewSchemaRef("", &openapi3.Schema{Required: []string{"waLink"}}),
		openapi3.NewSchemaRef("", &openapi3.Schema{Required: []string{"tgLink"}}),
	}
	code := codeSchema(document)
	code.Enum, _ = code.Extensions["x-extensible-enum"].([]any)
	reason := errorSchema(document)["reason"].Value
	reason.Enum, _ = reason.Extensions["x-extensible-enum"].([]any)
	return document
})

// answerSchemas returns the schemas of all answer bodies.
func answerSchemas(document *openapi3.T) []*openapi3.Schema {
	var schemas []*openapi3.Schema
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			for _, response := range operation.Responses.Map() {
				for _, media := range response.Value.Content {
					schemas = append(schemas, media.Schema.Value)
				}
			}
		}
	}
	return schemas
}

// rejectOtherFields makes a schema and its properties reject undocumented fields. An object without documented fields, such as
// the OpenAPI document, still accepts any.
func rejectOtherFields(schema *openapi3.Schema) {
	if schema.Items != nil {
		rejectOtherFields(schema.Items.Value)
	}
	if len(schema.Properties) == 0 {
		return
	}
	schema.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
	for _, property := range schema.Properties {
		rejectOtherFields(property.Value)
	}
}

func errorSchema(document *openapi3.T) openapi3.Schemas {
	return document.Components.Schemas["Error"].Value.Properties["error"].Value.Properties
}

func codeSchema(document *openapi3.T) *openapi3.Schema { return errorSchema(document)["code"].Value }

// checkContract checks a request and its answer against the contract. An answer for an unknown path must have the form of its
// errors.
func checkContract(t testing.TB, r request, a answer) {
	t.Helper()
	header := a.header.Clone()
	header.Del("Date")
	header.Del("X-Request-ID")
	exchange := fmt.Sprint(r.method, r.target, r.body, r.header, r.invalid, r.unlisted, a.status, string(a.body), header)
	if _, known := fitting.Load(exchange); known {
		return
	}
	g := NewWithT(t)
	path, query, _ := strings.Cut(r.target, "?")
	httpRequest := httptest.NewRequest(http.MethodGet, "http://localhost/", strings.NewReader(r.body))
	httpRequest.Method, httpRequest.URL, httpRequest.Header = r.method, &url.URL{Path: path, RawQuery: query}, r.header
	input := &openapi3filter.RequestValidationInput{
		Request: httpRequest, QueryParams: httpRequest.URL.Query(),
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if isRequestPath(path) && path != pathFind && !r.unlisted {
		input.PathParams = map[string]string{"id": idInPath(path)}
		path = pathRequests + "/{id}"
	}
	item := contract().Paths.Value(path)
	if item == nil || item.GetOperation(r.method) == nil {
		if !r.unlisted {
			g.Expect(a.status).To(BeElementOf(http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusOK))
		}
		if a.status != http.StatusOK && r.method != http.MethodHead {
			g.Expect(contract().Components.Schemas["Error"].Value.VisitJSON(a.fields, openapi3.EnableJSONSchema2020())).To(Succeed())
		}
		return
	}
	input.Route = &routers.Route{Spec: contract(), Path: path, PathItem: item, Method: r.method, Operation: item.GetOperation(r.method)}
	if !r.invalid {
		if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
			t.Errorf("%s %s: %v", r.method, r.target, err)
		}
	}
	if err := openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: a.status, Header: a.header,
		Body: io.NopCloser(bytes.NewReader(a.body)), Options: input.Options,
	}); err != nil {
		t.Errorf("%s %s answered %d %s: %v", r.method, r.target, a.status, a.body, err)
	}
	if t.Failed() {
		return
	}
	for name := range a.header {
		g.Expect(documentedHeaders(input.Route.Operation, a.status)).To(ContainElement(name), "header of %d", a.status)
	}
	fitting.Store(exchange, true)
}

// fitting has the exchanges that fit the contract: floods repeat one hundreds of times.
var fitting sync.Map

// documentedHeaders returns the headers that an answer may have: those of HTTP and those of the contract.
func documentedHeaders(operation *openapi3.Operation, status int) []string {
	names := []string{"Content-Type", "Content-Length", "Date", "Connection", "X-Content-Type-Options"}
	for name := range operation.Responses.Status(status).Value.Headers {
		names = append(names, http.CanonicalHeaderKey(name))
	}
	return names
}

func TestContract_isValidOpenAPI31(t *testing.T) {
	g := NewWithT(t)
	g.Expect(contract().Validate(t.Context())).To(Succeed())
	g.Expect(contract().OpenAPI).To(HavePrefix("3.1."))
	g.Expect(contract().Info.Version).To(Equal("1.0.0"))
	g.Expect(contract().Webhooks).To(HaveKey("verification.success"))
}

func TestContract_namesEveryCode(t *testing.T) {
	g := NewWithT(t)
	schema := codeSchema(contract())
	var promised, answered []string
	for _, code := range schema.Enum {
		promised = append(promised, code.(string))
	}
	for code, status := range statuses {
		answered = append(answered, string(code))
		g.Expect(schema.Description).To(MatchRegexp(`(?s)%d: [^0-9]*\b%s\b`, status, code), "the status of %s", code)
	}
	slices.Sort(promised)
	slices.Sort(answered)
	g.Expect(promised).To(Equal(answered))
}

// Each reason that the contract lists is that of a number, and answered beside the code.
func TestContract_namesEveryReason(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	var answered []any
	for reason, number := range map[string]string{
		"empty": " ", "too_long": "+4915123456789012", "too_short": "+1 555 123", "not_digits": "+1800FLOWERS", "not_ascii": "+49①5123456789",
		"control_character": "+49151\t23456789", "uri": "tel:+4915123456789", "extension": "+4915123456789;ext=1", "no_country_code": "015123456789",
		"unknown_country_code": "+2101234567", "invalid_for_country": "+1 555 010 0000", "premium_rate": "+979123456789",
		"anonymous": "+88812345678", "not_a_subscriber": "+80012345678",
	} {
		a := h.do(requestWithNumber(number))
		expectRefusal(g, a, 400, verification.CodeInvalidPhoneNumber, "phoneNumber")
		g.Expect(a.errorField("reason")).To(Equal(reason))
		answered = append(answered, reason)
	}
	schema := errorSchema(contract())["reason"].Value
	g.Expect(schema.Enum).To(ConsistOf(answered...))
	for _, reason := range answered {
		g.Expect(schema.Description).To(MatchRegexp(`\b%s[:,] `, reason))
	}
	g.Expect(h.do(requestWithBody(`{}`).markInvalid()).errorField("reason")).To(BeEmpty())
}

// Answers may gain fields, codes and reasons: the published contract accepts them, the stricter one of the tests does not.
func TestContract_isOpenForNewFieldsAndCodes(t *testing.T) {
	published := loadContract()
	for name, answer := range map[string]string{
		"InitResponse": `{"requestId": "vrk3v7c2m5q6x4a2n7b3d5f6g7", "tgLink": "https://t.me/a?start=B", "expectedText": "/start B",
			"expiresIn": "600s", "expiresAt": "2026-11-21T12:10:00.000Z", "new": 1}`,
		"InitResponse of a new messenger": `{"requestId": "vrk3v7c2m5q6x4a2n7b3d5f6g7", "expectedText": "B",
			"expiresIn": "600s", "expiresAt": "2026-11-21T12:10:00.000Z"}`,
		"StatusResponse":          `{"status": "PENDING", "phoneNumber": "+4915123456789", "expiresAt": "2026-11-21T12:10:00.000Z", "new": 1}`,
		"Error":                   `{"error": {"code": "internal", "message": "m"}, "new": 1}`,
		"Error with a new field":  `{"error": {"code": "internal", "message": "m", "new": 1}}`,
		"Error with a new code":   `{"error": {"code": "new", "message": "m"}}`,
		"Error with a new reason": `{"error": {"code": "internal", "message": "m", "reason": "new"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var value any
			g.Expect(json.Unmarshal([]byte(answer), &value)).To(Succeed())
			schema, _, _ := strings.Cut(name, " ")
			check := func(document *openapi3.T) error {
				return document.Components.Schemas[schema].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
			}
			g.Expect(check(published)).To(Succeed())
			g.Expect(check(contract())).NotTo(Succeed())
		})
	}
}

func TestContract_isServed(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	a := h.do(request{method: http.MethodGet, target: pathOpenAPI})
	g.Expect(a.status).To(Equal(http.StatusOK))
	g.Expect(a.fields).To(HaveKeyWithValue("openapi", "3.1.0"))
	g.Expect(json.Valid(a.body)).To(BeTrue())
	head := h.do(request{method: http.MethodHead, target: pathOpenAPI})
	g.Expect(head.status).To(Equal(http.StatusOK))
	g.Expect(head.body).To(BeEmpty())
	g.Expect(head.header.Get("Content-Length")).To(Equal(a.header.Get("Content-Length")))
}

// canaries are texts that must not appear in logs, metrics and refusals.
type canaries struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (c *canaries) add(texts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.texts == nil {
		c.texts = make(map[string]bool)
	}
	for _, text := range texts {
		c.texts[text] = true
	}
}

func (c *canaries) check(t testing.TB, where, text string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for canary := range c.texts {
		if strings.Contains(text, canary) {
			t.Errorf("the %s contains a phone number, key or code: %s", where, canary)
		}
	}
}
