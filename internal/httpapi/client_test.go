package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/gomega"
)

// request is a request in the making.
type request struct {
	method string
	target string
	body   string
	// stream is sent in place of body, in chunks.
	stream io.Reader
	header http.Header
	// invalid says that the request is wrong on purpose, so only its answer is held against the contract.
	invalid bool
	// unlisted says that its path is none of the contract's.
	unlisted bool
}

func initRequest(key, body string) request {
	return request{method: http.MethodPost, target: pathInit, body: body, header: http.Header{
		"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"},
	}}
}

func initFor(key, number string) request {
	return initRequest(key, fmt.Sprintf(`{"phoneNumber":%q}`, number))
}

func statusRequest(key, query string) request {
	return request{method: http.MethodGet, target: pathStatus + "?" + query, header: http.Header{"Authorization": {"Bearer " + key}}}
}

func (r request) withHeader(name string, values ...string) request {
	r.header = r.header.Clone()
	r.header[http.CanonicalHeaderKey(name)] = values
	return r
}

func (r request) markInvalid() request {
	r.invalid = true
	return r
}

// answer is what came back.
type answer struct {
	status int
	proto  string
	// last says that the server ends the connection.
	last   bool
	header http.Header
	body   []byte
	fields map[string]any
}

func (a answer) errorField(name string) string {
	inner, _ := a.fields["error"].(map[string]any)
	text, _ := inner[name].(string)
	return text
}

// joinedHeader returns a header by the name that the contract gives it.
func (a answer) joinedHeader(name string) string {
	return strings.Join(a.header[http.CanonicalHeaderKey(name)], ", ")
}

func (a answer) stringField(name string) string {
	text, _ := a.fields[name].(string)
	return text
}

// do sends a request over the wire, and holds it and its answer against the contract.
func (h *harness) do(r request) answer {
	h.t.Helper()
	g := NewWithT(h.t)
	body := io.Reader(strings.NewReader(r.body))
	if r.stream != nil {
		body = r.stream
	}
	httpRequest, err := http.NewRequest(r.method, "http://"+h.address, body)
	g.Expect(err).NotTo(HaveOccurred())
	httpRequest.URL = &url.URL{Scheme: "http", Host: h.address, Opaque: r.target}
	if !strings.HasPrefix(r.target, "//") {
		httpRequest.URL.Opaque = "//" + h.address + r.target // net/http writes what follows the host as it is
	}
	if r.header != nil {
		httpRequest.Header = r.header
	}
	if httpRequest.Header.Get("User-Agent") == "" {
		httpRequest.Header.Set("User-Agent", "harness")
	}
	response, err := h.client.Do(httpRequest)
	g.Expect(err).NotTo(HaveOccurred())
	return h.checkAnswer(r, response)
}

// checkAnswer reads an answer and holds it against the contract.
func (h *harness) checkAnswer(r request, response *http.Response) answer {
	h.t.Helper()
	g := NewWithT(h.t)
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	_ = response.Body.Close()
	a := answer{status: response.StatusCode, proto: response.Proto, last: response.Close, header: response.Header, body: body}
	if r.method != http.MethodHead {
		g.Expect(json.Unmarshal(body, &a.fields)).To(Succeed(), "body %q", body)
	}
	checkContract(h.t, r, a)
	if code := codePattern.FindString(a.stringField("expectedText")); code != "" {
		h.canaries.add(code)
	}
	if a.status >= http.StatusBadRequest {
		h.canaries.check(h.t, "refusal", string(body)+fmt.Sprint(response.Header))
	}
	return a
}
