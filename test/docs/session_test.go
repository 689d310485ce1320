package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/simphone"
)

// sessionFolder has the programs of docs/session.md, and the project that they need.
const sessionFolder = root + "/docs/examples/session/"

// sessionSites are the programs.
var sessionSites = []string{"go/main.go", "node/site.mjs", "python/site.py"}

// exampleCommand returns the command that runs a program of docs/examples, and skips the test if its language is not installed.
func exampleCommand(t *testing.T, path string) []string {
	t.Helper()
	NewWithT(t).Expect(path).To(BeARegularFile(), "which go test has to know, too: it caches results")
	switch filepath.Ext(path) {
	case ".mjs":
		return []string{lookPathOrSkip(t, "node"), installBeside(t, path)}
	case ".py":
		return []string{"env", "PYTHONPATH=" + root + "/sdk/python", lookPathOrSkip(t, "python3"), "-B", path}
	default:
		program := filepath.Join(t.TempDir(), "program")
		library, err := filepath.Glob(root + "/sdk/go/*.go")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(library).NotTo(BeEmpty(), "which go test has to know, too")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, filepath.Base(path)) // in the module of the examples
		build.Dir = filepath.Dir(path)
		out, err := build.CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
		return []string{program}
	}
}

// installBeside copies a program of Node.js beside the library, as packed, and skips the test if that is not installed.
func installBeside(t *testing.T, path string) string {
	t.Helper()
	g := NewWithT(t)
	modules, err := filepath.Abs(root + "/bin/sdk/typescript/node_modules")
	g.Expect(err).NotTo(HaveOccurred())
	if _, err := os.Stat(filepath.Join(modules, "PhoneProof")); err != nil {
		t.Skip("the npm package PhoneProof is not installed; make sdk installs it and runs this")
	}
	program, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	folder := t.TempDir()
	g.Expect(os.Symlink(modules, filepath.Join(folder, "node_modules"))).To(Succeed())
	writeFile(t, filepath.Join(folder, filepath.Base(path)), string(program))
	return filepath.Join(folder, filepath.Base(path))
}

// inExample checks that a block is part of a program, word by word.
func inExample(file string) check {
	return func(t *testing.T, _ *reader, b block) {
		t.Helper()
		g := NewWithT(t)
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect("\n"+string(content)).To(ContainSubstring("\n"+b.text), "whole lines of %s", file)
	}
}

// sessionMessage checks that users get the message that the page shows, whose lines are broken for reading.
func sessionMessage(t *testing.T, _ *reader, b block) {
	t.Helper()
	got := texts.BuiltIn().In("en").FillSession(texts.SessionMessage{
		Name: "Ada's Books", Purpose: "Sign in to your account", Browser: verification.BrowserName("CHROME/WINDOWS"), Digits: "123456",
		Link: "https://verify.example.com/v/TICKET/return?code=RETURNCODE",
	})
	NewWithT(t).Expect(strings.Fields(b.text)).To(Equal(strings.Fields(got)))
}

// sessionCommands checks that dev has the flag, and that the files exist. TestSessionExamples runs both.
func sessionCommands(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	commands := commandLines(b)
	flagsExist(t, r, block{text: commands[0]})
	for _, line := range commands {
		words := strings.Fields(line)
		g.Expect(filepath.Join(root, words[len(words)-1])).To(BeARegularFile())
	}
}

// TestSessionExamples plays visitors of each program and their phones.
func TestSessionExamples(t *testing.T) {
	g := NewWithT(t)
	r, api := newReader(t, "docs/session.md"), ports.Address(t)
	var origins []string
	addresses := map[string]string{}
	for _, s := range sessionSites {
		addresses[s] = ports.Address(t)
		origins = append(origins, "http://"+addresses[s])
	}
	project, err := os.ReadFile(sessionFolder + "project.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	writeFile(t, filepath.Join(r.dir, "project.yaml"), strings.NewReplacer(
		"127.0.0.1:8080", api, "http://127.0.0.1:8000", strings.Join(origins, ", "),
	).Replace(string(project)))
	r.startDev(t, "phoneproof dev --project-file project.yaml --bind-address "+api)
	g.Expect(r.env["API"]).To(Equal("http://" + api))
	line := startAnswerLoser(t, r.env["API"])
	for i, s := range sessionSites {
		t.Run(filepath.Dir(s), func(t *testing.T) {
			e := &sessionExample{
				WithT: NewWithT(t), t: t, origin: "http://" + addresses[s], simulator: r.env["SIM"], line: line, numbers: 10 * i,
			}
			startSite(t, exampleCommand(t, sessionFolder+s), addresses[s], "PHONEPROOF_URL="+line.url, "PHONEPROOF_KEY="+r.env["KEY"])
			t.Run("forms of other sites are refused", func(t *testing.T) { e.in(t).foreignFormsAreRefused() })
			t.Run("the return verifies the session that began it alone", func(t *testing.T) { e.in(t).returnVerifies() })
			t.Run("a return without a code is no try", func(t *testing.T) { e.in(t).returnWithoutCode() })
			t.Run("the digits verify the session that began it alone", func(t *testing.T) { e.in(t).digitsVerify() })
			t.Run("a confirmation whose answer is lost is found again", func(t *testing.T) { e.in(t).lostAnswerIsFound() })
		})
	}
}

// startSite runs a program until the test ends, or until it is stopped.
func startSite(t *testing.T, command []string, address string, environment ...string) (stop func()) {
	t.Helper()
	var stderr bytes.Buffer
	site := exec.CommandContext(t.Context(), command[0], command[1:]...)
	site.Env = append(append(os.Environ(), "ADDRESS="+address), environment...)
	site.Stderr = &stderr
	site.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	g := NewWithT(t)
	g.Expect(site.Start()).To(Succeed())
	stop = sync.OnceFunc(func() {
		_ = site.Process.Kill() // it may have ended
		_ = site.Wait()
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	t.Cleanup(stop)
	var dialer net.Dialer
	g.Eventually(func() error {
		conn, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(patience).Should(Succeed())
	return stop
}

// answerLoser is what stands between a program and the API. It loses the answers to all calls, while that is asked for.
type answerLoser struct {
	url  string
	lose atomic.Bool
}

func startAnswerLoser(t *testing.T, target string) *answerLoser {
	t.Helper()
	l := &answerLoser{}
	api, err := url.Parse(target)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) },
		ModifyResponse: func(*http.Response) error {
			if l.lose.Load() {
				return http.ErrAbortHandler
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // closes the connection
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// sessionExample is a running program.
type sessionExample struct {
	*WithT

	t                 *testing.T
	origin, simulator string
	line              *answerLoser
	numbers           int // that were used, so that no limit of one counts
}

func (e *sessionExample) in(t *testing.T) *sessionExample {
	t.Helper()
	e.t, e.WithT = t, NewWithT(t)
	return e
}

// visitor is a browser of someone with a phone. It follows no redirect by itself.
type visitor struct {
	*sessionExample

	number, page string
	cookies      map[string]string // by host and name
}

// seen is what a browser gets.
type seen struct {
	status         int
	location, body string
}

func (e *sessionExample) newVisitor() *visitor {
	return &visitor{sessionExample: e, cookies: map[string]string{}}
}

// newStarted returns a visitor who has begun a verification of a number of their own.
func (e *sessionExample) newStarted() *visitor {
	e.t.Helper()
	v := e.newVisitor()
	e.numbers++
	v.number = fmt.Sprintf("+49151123457%02d", e.numbers)
	e.post(e.simulator+"/sim/users", map[string]string{"name": "Ada", "phone": v.number}, http.StatusCreated)
	begun := v.send(http.MethodPost, e.origin+"/start", url.Values{"number": {v.number}})
	v.expectSentTo(begun, "/me")
	me := v.open(begun.location)
	e.Expect(me.body).To(ContainSubstring("Your number: "+v.number), "which the page does not show")
	link := pageLinks.FindStringSubmatch(me.body)
	e.Expect(link).NotTo(BeNil(), me.body)
	v.page = link[1]
	return v
}

// send sends what a page of the same site has the browser send.
func (v *visitor) send(method, address string, form url.Values) seen {
	v.t.Helper()
	target, err := url.Parse(address)
	v.Expect(err).NotTo(HaveOccurred())
	return v.sendFrom(target.Scheme+"://"+target.Host, method, address, form)
}

// sendFrom sends a request with an Origin; with none if it is empty.
func (v *visitor) sendFrom(origin, method, address string, form url.Values) seen {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form.Encode()))
	v.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	if origin != "" && method == http.MethodPost {
		request.Header.Set("Origin", origin)
	}
	for name, value := range v.cookies {
		if name, ofHost := strings.CutPrefix(name, request.URL.Host+" "); ofHost {
			request.AddCookie(&http.Cookie{Name: name, Value: value})
		}
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	v.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	for _, c := range response.Cookies() {
		v.cookies[request.URL.Host+" "+c.Name] = c.Value
	}
	var body bytes.Buffer
	_, err = body.ReadFrom(response.Body)
	v.Expect(err).NotTo(HaveOccurred())
	s := seen{status: response.StatusCode, body: html.UnescapeString(body.String())}
	if location, err := response.Location(); err == nil {
		s.location = location.String()
	}
	return s
}

func (v *visitor) open(address string) seen {
	v.t.Helper()
	return v.send(http.MethodGet, address, nil)
}

func (v *visitor) enterDigits(digits string) seen {
	v.t.Helper()
	return v.send(http.MethodPost, v.origin+"/digits", url.Values{"code": {digits}})
}

// pageLinks are those to the pages of requests.
var pageLinks = regexp.MustCompile(`<a href="(http[^"]+/v/[^"]+)">`)

// messengerLinks are those of the pages.
var messengerLinks = regexp.MustCompile(`https://(?:wa\.me|t\.me)/[^"\s]+`)

// prove opens the messenger from the page, and does there what it asks for. It returns what the chat shows then.
func (v *visitor) prove(method string) simphone.Codes {
	v.t.Helper()
	page := v.open(v.page + "?method=" + method)
	v.Expect(page.status).To(Equal(http.StatusOK))
	link := messengerLinks.FindString(page.body)
	v.Expect(link).NotTo(BeEmpty(), page.body)
	v.Expect(v.send(http.MethodPost, v.page+"/opened?method="+method, nil).status).To(Equal(http.StatusNoContent))
	user := v.simulator + "/sim/users/" + v.number
	v.post(user+"/send", map[string]string{"link": link}, http.StatusAccepted)
	if method == "TELEGRAM" {
		v.post(user+"/share-contact", map[string]string{"wait": "20s"}, http.StatusAccepted)
	}
	var codes simphone.Codes
	v.Eventually(func() (err error) {
		codes, err = simphone.LatestCodes(v.t.Context(), http.DefaultClient, v.simulator, v.number)
		return err
	}).WithTimeout(patience).Should(Succeed())
	return codes
}

func (e *sessionExample) post(address string, body map[string]string, want int) {
	e.t.Helper()
	content, err := json.Marshal(body)
	e.Expect(err).NotTo(HaveOccurred())
	response, err := http.Post(address, "application/json", bytes.NewReader(content))
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(response.Body.Close()).To(Succeed())
	e.Expect(response.StatusCode).To(Equal(want), address)
}

// expectVerified expects the program to take the browser for verified, with the number that its session named.
func (v *visitor) expectVerified() {
	v.t.Helper()
	me := v.open(v.origin + "/me")
	v.Expect(me.status).To(Equal(http.StatusOK))
	v.Expect(me.body).To(ContainSubstring("Verified: " + v.number))
}

func (v *visitor) expectNotVerified() {
	v.t.Helper()
	me := v.open(v.origin + "/me")
	v.Expect(me.status).To(Equal(http.StatusUnauthorized))
	v.Expect(me.body).To(ContainSubstring("Not verified."))
	v.Expect(strings.ReplaceAll(me.body, "Your number: "+v.number, "")).NotTo(ContainSubstring("+49"))
}

func (v *visitor) expectSentTo(s seen, path string) {
	v.t.Helper()
	v.Expect(s.status).To(Equal(http.StatusSeeOther), s.body)
	v.Expect(s.location).To(Equal(v.origin + path))
}

func (e *sessionExample) foreignFormsAreRefused() {
	e.t.Helper()
	own := e.newStarted()
	for _, origin := range []string{"https://other.example.com", strings.Replace(e.origin, "http:", "https:", 1), "null", ""} {
		for path, form := range map[string]url.Values{"/start": {"number": {own.number}}, "/digits": {"code": {"000000"}}} {
			before := maps.Clone(own.cookies)
			refused := own.sendFrom(origin, http.MethodPost, e.origin+path, form)
			e.Expect(refused.status).To(Equal(http.StatusForbidden), "%s from %q", path, origin)
			e.Expect(refused.body).To(ContainSubstring("Send this form from " + e.origin + "."))
			e.Expect(own.cookies).To(Equal(before), "no session begins")
		}
	}
	request, err := http.NewRequestWithContext(e.t.Context(), http.MethodPost, e.origin+"/start", strings.NewReader("number=\xff"))
	e.Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultTransport.RoundTrip(request)
	e.Expect(err).NotTo(HaveOccurred(), "what is no text is answered, too")
	e.Expect(response.Body.Close()).To(Succeed())
	e.Expect(response.StatusCode).To(Equal(http.StatusForbidden))
}

func (e *sessionExample) returnVerifies() {
	e.t.Helper()
	own, other, stranger := e.newStarted(), e.newStarted(), e.newVisitor()
	codes := own.prove("WHATSAPP")
	page, code, found := strings.Cut(codes.ReturnLink, "/return?code=")
	e.Expect(found).To(BeTrue(), "the chat has a return link")

	back := stranger.open(codes.ReturnLink)
	e.Expect(back.location).To(Equal(page), "a browser that did not open the messenger gets the page, without the code")
	back = own.open(codes.ReturnLink)
	e.Expect(back.status).To(Equal(http.StatusSeeOther))
	e.Expect(back.location).To(And(HavePrefix(e.origin+"/return?"), HaveSuffix("&code="+code)))

	for _, v := range []*visitor{stranger, other} { // who got to know the address
		v.expectSentTo(v.open(back.location), "/me")
		v.expectNotVerified()
	}
	e.Expect(other.enterDigits(codes.Digits).status).To(BeElementOf(http.StatusConflict, http.StatusUnprocessableEntity))
	e.Expect(other.enterDigits(code).status).NotTo(Equal(http.StatusSeeOther))
	other.expectNotVerified()
	own.expectNotVerified()

	for range 2 { // a user may load the address again
		own.expectSentTo(own.open(back.location), "/me")
		own.expectVerified()
	}
	stranger.expectSentTo(stranger.open(back.location), "/me")
	stranger.expectNotVerified()
	other.expectNotVerified()
}

func (e *sessionExample) returnWithoutCode() {
	e.t.Helper()
	own := e.newStarted()
	back := own.send(http.MethodPost, own.page+"/wrong-number", nil)
	e.Expect(back.location).To(And(HavePrefix(e.origin+"/return?"), ContainSubstring("requestId="), Not(ContainSubstring("code="))))
	e.line.lose.Store(true) // no call is needed
	defer e.line.lose.Store(false)
	if back = own.open(back.location); back.location != "" {
		back = own.open(back.location)
	}
	e.Expect(back.status).To(Equal(http.StatusUnauthorized))
	e.Expect(back.body).To(ContainSubstring("Your number: " + own.number))
}

func (e *sessionExample) digitsVerify() {
	e.t.Helper()
	own, stranger := e.newStarted(), e.newVisitor()
	national := stranger.send(http.MethodPost, e.origin+"/start", url.Values{"number": {"015112345678"}})
	e.Expect(national.status).To(Equal(http.StatusBadRequest))
	e.Expect(national.body).To(And(ContainSubstring("<p>Begin with the country code, such as +49.</p>"), Not(ContainSubstring("phoneNumber"))))
	early := own.enterDigits("000000")
	e.Expect(early.status).To(BeElementOf(http.StatusConflict, http.StatusUnprocessableEntity))
	e.Expect(early.body).To(ContainSubstring("<p>Send the message from your phone first.</p>"))

	codes := own.prove("TELEGRAM")
	wrong := own.enterDigits(otherDigits(codes.Digits))
	e.Expect(wrong.status).To(Equal(http.StatusUnprocessableEntity))
	e.Expect(wrong.body).To(ContainSubstring("<p>These digits are wrong.</p>"))
	stranger.expectSentTo(stranger.enterDigits(codes.Digits), "/me")
	stranger.expectNotVerified()
	own.expectNotVerified()

	own.expectSentTo(own.enterDigits(codes.Digits[:3]+" "+codes.Digits[3:]), "/me")
	own.expectVerified()
	stranger.expectNotVerified()
}

// otherDigits returns six other digits.
func otherDigits(digits string) string {
	return digits[:5] + string('0'+(digits[5]-'0'+1)%10)
}

func (e *sessionExample) lostAnswerIsFound() {
	e.t.Helper()
	own := e.newStarted()
	codes := own.prove("WHATSAPP")
	back := own.send(http.MethodPost, own.page+"/confirm", url.Values{"code": {codes.Digits}})
	e.Expect(back.location).To(HavePrefix(e.origin+"/return?"), "the page takes the digits, too")

	e.line.lose.Store(true)
	lost := own.open(back.location)
	e.Expect(lost.status).To(Equal(http.StatusBadGateway))
	e.Expect(lost.body).To(ContainSubstring("Try again."))
	e.line.lose.Store(false)
	own.expectNotVerified()

	own.expectSentTo(own.enterDigits(codes.Digits), "/me")
	own.expectVerified()
}
