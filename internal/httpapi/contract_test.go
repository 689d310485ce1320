package httpapi

import (
	"bytes"
	"encoding/json"
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
)

var codePattern = regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`)

// contract is openapi.yaml, read once.
var contract = sync.OnceValue(func() *openapi3.T {
	document, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		panic(err)
	}
	return document
})

// validate holds an exchange against the contract. Where nothing is served the contract promises an error of its form.
func validate(t testing.TB, r request, a answer) {
	t.Helper()
	g := NewWithT(t)
	path, query, _ := strings.Cut(r.target, "?")
	httpRequest := httptest.NewRequest(http.MethodGet, "http://localhost/", strings.NewReader(r.body))
	httpRequest.Method, httpRequest.URL, httpRequest.Header = r.method, &url.URL{Path: path, RawQuery: query}, r.header
	input := &openapi3filter.RequestValidationInput{
		Request: httpRequest, QueryParams: httpRequest.URL.Query(),
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
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
		g.Expect(documented(input.Route.Operation, a.status)).To(ContainElement(name), "header of %d", a.status)
	}
}

// documented returns the headers that an answer may have, beside those of HTTP itself.
func documented(operation *openapi3.Operation, status int) []string {
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
	schema := contract().Components.Schemas["Error"].Value.Properties["error"].Value.Properties["code"].Value
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

// canaries are the texts that must stay out of logs, metrics and refusals.
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
			t.Errorf("a number, key or code is in the %s: %s", where, canary)
		}
	}
}
