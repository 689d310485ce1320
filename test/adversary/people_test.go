package adversary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"image/png"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/simphone"
)

const (
	byWhatsApp = "WHATSAPP"
	byTelegram = "TELEGRAM"
)

// scene is one attack by one messenger.
type scene struct {
	*world
	*WithT

	t      *testing.T
	method string
	// read is the link of the last message that a number's owner has read.
	read map[string]string
}

// person has a browser, which keeps cookies and follows redirects, and may have begun a request in the shop.
type person struct {
	*scene

	client http.Client
	page   string // of the request

	mu   sync.Mutex
	seen []response
}

// response is what a browser got, also on the way to somewhere else.
type response struct {
	sent         string // URL and body of the request
	url          *url.URL
	status       int
	header, body string
}

func (s *scene) newPerson() *person {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	s.Expect(err).NotTo(HaveOccurred())
	p := &person{scene: s}
	p.client.Jar, p.client.Transport = jar, p
	return p
}

// newScanner returns a link preview or a scanner of mail: it keeps no cookies.
func (s *scene) newScanner() *person {
	s.t.Helper()
	p := s.newPerson()
	p.client.Jar = nil
	return p
}

// RoundTrip implements http.RoundTripper, and keeps what was answered.
func (p *person) RoundTrip(r *http.Request) (*http.Response, error) {
	got := response{sent: r.URL.String(), url: r.URL}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		got.sent += "\n" + string(content)
	}
	answer, err := p.world.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	content, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close(), answer.Header.Write(&head)); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	got.status, got.header, got.body = answer.StatusCode, head.String(), html.UnescapeString(string(content))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, got)
	return answer, nil
}

// sendForm sends what the browser would, and returns where that led.
func (p *person) sendForm(method, address string, form url.Values) (response, error) {
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return response{}, err
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", request.URL.Scheme+"://"+request.URL.Host)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	request.Header.Set("Accept-Language", "en")
	answer, err := p.client.Do(request)
	if err != nil {
		return response{}, err
	}
	content, err := io.ReadAll(answer.Body)
	got := response{url: answer.Request.URL, status: answer.StatusCode, body: html.UnescapeString(string(content))}
	return got, errors.Join(err, answer.Body.Close())
}

func (p *person) mustSend(method, address string, form url.Values) response {
	p.t.Helper()
	got, err := p.sendForm(method, address, form)
	p.Expect(err).NotTo(HaveOccurred(), "%s %s", method, address)
	return got
}

func (p *person) open(address string) response {
	p.t.Helper()
	return p.mustSend(http.MethodGet, address, nil)
}

// pageLink is the link to the page of a request, where the shop shows it.
var pageLink = regexp.MustCompile(`<a href="(https://[^"]+/v/[^"]+)">`)

// beginRequest begins a request for a number in the shop. It reports whether that was let.
func (p *person) beginRequest(number string) bool {
	p.t.Helper()
	got := p.mustSend(http.MethodPost, shopURL+"/start", url.Values{"number": {number}})
	if got.status == http.StatusTooManyRequests {
		p.Expect(got.body).To(ContainSubstring("Try again later."))
		return false
	}
	found := pageLink.FindStringSubmatch(got.body)
	p.Expect(found).NotTo(BeNil(), got.body)
	p.page = found[1]
	return true
}

// newStarted returns someone who has begun a request for a number, which may be that of another person.
func (s *scene) newStarted(number string) *person {
	s.t.Helper()
	p := s.newPerson()
	s.Expect(p.beginRequest(number)).To(BeTrue())
	return p
}

var messengerLink = regexp.MustCompile(`https://(?:wa\.me|t\.me)/[^"\s]+`)

// openMessenger opens a page and the messenger from there, whose link it returns. The page's script reports that.
func (p *person) openMessenger(page string) string {
	p.t.Helper()
	address, err := url.Parse(page)
	p.Expect(err).NotTo(HaveOccurred())
	query := address.Query()
	query.Set("method", p.method)
	address.RawQuery = query.Encode()
	got := p.open(address.String())
	link := messengerLink.FindString(got.body)
	p.Expect(link).NotTo(BeEmpty(), got.body)
	address.Path += "/opened"
	p.Expect(p.mustSend(http.MethodPost, address.String(), nil).status).To(Equal(http.StatusNoContent))
	return link
}

// readQR returns what the QR code on the page of a request holds.
func (p *person) readQR() string {
	p.t.Helper()
	_, encoded, found := strings.Cut(p.open(p.page+"?method="+p.method).body, `src="data:image/png;base64,`)
	p.Expect(found).To(BeTrue(), "the page has a QR code")
	encoded, _, _ = strings.Cut(encoded, `"`)
	picture, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)))
	p.Expect(err).NotTo(HaveOccurred())
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	p.Expect(err).NotTo(HaveOccurred())
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	p.Expect(err).NotTo(HaveOccurred())
	return result.GetText()
}

// enterDigits types digits into the shop's form.
func (p *person) enterDigits(digits string) (response, error) {
	return p.sendForm(http.MethodPost, shopURL+"/digits", url.Values{"code": {digits}})
}

// enterOnPage types digits into the form of a page, as soon as it has one.
func (p *person) enterOnPage(page, digits string) response {
	p.t.Helper()
	p.awaitForm(page)
	return p.mustSend(http.MethodPost, page+"/confirm", url.Values{"code": {digits}})
}

// awaitForm waits until a page asks for the digits: its replica may hear of a proof a moment later than the chat.
func (p *person) awaitForm(page string) {
	p.t.Helper()
	p.Eventually(func() string { return p.open(page).body }).WithTimeout(patience).WithPolling(pageEvery).
		Should(ContainSubstring(strings.TrimPrefix(page, pageURL) + "/confirm"))
}

// isVerified reports whether the shop takes a browser for verified.
func (p *person) isVerified() bool {
	p.t.Helper()
	me := p.open(shopURL + "/me")
	p.Expect(me.body).To(ContainSubstring(map[int]string{http.StatusOK: "Verified: +", http.StatusUnauthorized: "Not verified."}[me.status]))
	return me.status == http.StatusOK
}

// expectNothing expects that a browser never got to see codes that others got, unless it sent them itself, nor was led on with one.
func (p *person) expectNothing(codes simphone.Codes) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Expect(p.seen).NotTo(BeEmpty())
	digits := regexp.MustCompile(`(^|\D)` + codes.Digits + `(\D|$)`)
	for _, got := range p.seen {
		p.Expect(got.header).NotTo(Or(ContainSubstring(returnCode(codes)), MatchRegexp(digits.String())), got.sent)
		if !strings.Contains(got.sent, returnCode(codes)) && !strings.Contains(got.sent, codes.Digits) {
			p.Expect(got.body).NotTo(Or(ContainSubstring(returnCode(codes)), MatchRegexp(digits.String())), got.sent)
		}
	}
}

// returnCode returns the code in the link of a message.
func returnCode(codes simphone.Codes) string {
	_, code, _ := strings.Cut(codes.ReturnLink, "/return?code=")
	return code
}

// chatPage returns the page that the link of a message leads to.
func chatPage(codes simphone.Codes) string {
	page, _, _ := strings.Cut(codes.ReturnLink, "/return?code=")
	return page
}

// callPhone calls the simulator as the phone of a number, or to add a phone.
func (s *scene) callPhone(path string, body any, want int, into any) {
	s.t.Helper()
	s.call(s.simulator+"/sim/users"+path, body, want, into)
}

// callAPI calls PhoneProof as the website does.
func (s *scene) callAPI(operation string, body any, want int, into any) {
	s.t.Helper()
	s.call("http://"+s.first.API+"/api/verify/"+operation, body, want, into)
}

func (s *scene) call(address string, body any, want int, into any) {
	s.t.Helper()
	content, err := json.Marshal(body)
	s.Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, address, bytes.NewReader(content))
	s.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+s.system.Key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	s.Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	s.Expect(answer.StatusCode).To(Equal(want), address)
	if into != nil {
		s.Expect(json.NewDecoder(answer.Body).Decode(into)).To(Succeed())
	}
}

// sendPrepared opens a messenger link on the phone of a number, sends the text there, and shares the contact if that is asked for.
// It returns the chat.
func (s *scene) sendPrepared(number, link string) string {
	s.t.Helper()
	var sent struct {
		Chat string `json:"chat"`
	}
	s.callPhone("/"+number+"/send", map[string]string{"link": link}, http.StatusAccepted, &sent)
	if s.method == byTelegram {
		s.callPhone("/"+number+"/share-contact", map[string]string{"chat": sent.Chat, "wait": "20s"}, http.StatusAccepted, nil)
	}
	return sent.Chat
}

// proveNumber has the owner of a number do what an offer asks for, with a browser for pages. It returns what the chat brings, and its id.
func (s *scene) proveNumber(own *person, number, offer string) (codes simphone.Codes, chat string) {
	s.t.Helper()
	if !messengerLink.MatchString(offer) {
		offer = own.openMessenger(offer)
	}
	chat = s.sendPrepared(number, offer)
	s.Eventually(func() (string, error) {
		var err error
		codes, err = simphone.LatestCodes(s.t.Context(), http.DefaultClient, s.simulator, number)
		return codes.ReturnLink, err
	}).WithTimeout(patience).ShouldNot(BeElementOf("", s.read[number]))
	s.read[number] = codes.ReturnLink
	return codes, chat
}
