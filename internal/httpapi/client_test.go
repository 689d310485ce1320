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

// request is a request to send.
type request struct {
	method string
	target string
	body   string
	// stream is sent in place of body, in chunks.
	stream io.Reader
	header http.Header
	// invalid reports whether the request breaks the contract on purpose; then only its answer is checked.
	invalid bool
	// unlisted reports whether the contract does not list its path.
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

// withHeader returns the request with a header that has these values.
func (r request) withHeader(name string, values ...string) request {
	r.header = r.header.Clone()
	r.header[http.CanonicalHeaderKey(name)] = values
	return r
}

// markInvalid returns the request with invalid set.
func (r request) markInvalid() request {
	r.invalid = true
	return r
}

// answer is the answer to a request.
type answer struct {
	status int
	proto  string
	// last reports whether the server closes the connection.
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

// joinedHeader returns the values of a header, separated by commas. The name is in the case of the contract.
func (a answer) joinedHeader(name string) string {
	return strings.Join(a.header[http.CanonicalHeaderKey(name)], ", ")
}

// stringField returns a field of the body; empty if it is not a string.
func (a answer) stringField(name string) string {
	text, _ := a.fields[name].(string)
	return text
}

// do sends a request to the server, and checks the request and its answer against the contract.
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
		httpRequest.URL.Opaque = "//" + h.address + r.target // net/http sends it unchanged after the host
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

// checkAnswer reads an answer and checks it against the contract.
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
