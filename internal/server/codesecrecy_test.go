package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// What becomes of the code of a number. None may show. The page shows the last two digits, which are the same.
const (
	codeDelivered    = "+491711000077" // accepted, and reported as sent, delivered and read
	codeRefused      = "+491712000077" // refused at once: with 131026, or as a number without Telegram
	codeRefusedLater = "+491713000077" // accepted, and reported as failed two seconds later; Telegram asks to wait
	codeSilent       = "+491714000077" // accepted, and nothing after that; at Telegram the balance is empty
)

// TestCodes_hideWhoHasWhatsApp looks for a minute at all that a page, and an API key without the scope Read, show of four numbers.
func TestCodes_hideWhoHasWhatsApp(t *testing.T) { testSecrecy(t, verification.WhatsApp) }

// TestCodes_hideWhoHasTelegram is the same for the other messenger.
func TestCodes_hideWhoHasTelegram(t *testing.T) { testSecrecy(t, verification.Telegram) }

func testSecrecy(t *testing.T, method verification.Method) {
	t.Helper()
	w := newSecrecy(t, method)
	began := w.machine.Now()
	w.seen = map[string]*sighting{}
	for _, number := range []string{codeDelivered, codeRefused, codeRefusedLater, codeSilent} {
		w.seen[number] = w.begin(t, number)
	}
	waits := w.startWaits(t)
	w.answer() // the platform answers while clients wait
	w.awaitResults(t)
	for _, second := range []int{0, 1, 2, 3, 5, 10, 15, 16, 20, 30, 60} {
		w.machine.SetTime(began.Add(time.Duration(second) * time.Second))
		switch {
		case method == verification.Telegram && second < 20: // it reports nothing later
		case second == 1:
			w.Expect(w.control("users/1/open", `{"chat":"whatsapp:4915113000000"}`)).To(Equal(http.StatusOK))
			w.Eventually(w.countStatuses).WithTimeout(time.Minute).Should(BeEquivalentTo(3), "sent, delivered and read")
		case second == 2:
			w.Eventually(w.countStatuses).WithTimeout(time.Minute).Should(BeEquivalentTo(4), "failed")
		case second == 20:
			w.Expect(w.countWaits()).To(BeEquivalentTo(len(w.seen)), "no result has ended the wait of a client")
		case second == 30:
			w.expectEqual("wait", waits())
		}
		w.look(t, second)
	}
	w.expectEqual("events", w.readEvents())
	for _, path := range []string{"", "/" + w.seen[codeRefused].id} {
		w.Expect(w.call(t, http.MethodGet, "/api/verify/requests"+path, "")).To(HavePrefix("403\n"))
	}
}

// sighting is a request as its client and its user see it.
type sighting struct {
	id, page, text string
	events         *bytes.Buffer
}

// secrecy is a server that sends codes.
type secrecy struct {
	*testServer

	method   verification.Method
	address  string
	platform *simulator.Simulator
	logs     *gbytes.Buffer
	// answer lets the platform take codes.
	answer func()

	mu   sync.Mutex
	seen map[string]*sighting // by number
}

func newSecrecy(t *testing.T, method verification.Method) *secrecy {
	t.Helper()
	w := &secrecy{testServer: newTestServer(t), method: method, logs: gbytes.NewBuffer()}
	w.requests = slog.NewJSONHandler(w.logs, nil)
	w.log = logr.FromSlogHandler(w.requests)
	people := []simulator.Person{{Name: "Ada", Phone: codeDelivered}}
	if method == verification.Telegram {
		people = append(people, simulator.Person{Name: "Bo", Phone: codeSilent})
	}
	w.platform = simulator.New(simulator.Options{Clock: w.machine, Users: people})
	answered := make(chan struct{})
	w.answer = sync.OnceFunc(func() { close(answered) })
	graph := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		<-answered
		w.platform.ServeHTTP(rw, r)
	}))
	t.Cleanup(graph.Close)
	t.Cleanup(w.answer)
	w.options.Platforms.SimulatorURL = graph.URL
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	signing := ref("signing")
	project := &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "acme"},
		Spec: verifyv1.VerificationProjectSpec{
			BaseURL: "https://verify.example", Page: &verifyv1.Page{ReturnURLs: []verifyv1.ReturnURL{"https://shop.example"}},
			APIKeys: []verifyv1.APIKey{{
				Name: "backend", SecretRef: ref("key"), Scopes: []verifyv1.Scope{verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeDeliver},
			}, {
				Name: "login", SigningSecretRef: &signing, Scopes: []verifyv1.Scope{verifyv1.ScopeDeliver},
			}},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: "+4915113000000", PhoneNumberID: "1234567890", AccessTokenSecretRef: ref("token"), AppSecretRef: ref("secret"),
				Codes: &verifyv1.Codes{
					TemplateName: "shop_code", Languages: []verifyv1.TemplateLanguage{"en", "en_US"}, AllowedCountries: []verifyv1.Country{"DE"}, MaxPerDay: 600,
				},
			},
			Telegram: &verifyv1.Telegram{
				BotUsername: "shop_bot", BotTokenSecretRef: ref("bot"), Codes: &verifyv1.GatewayCodes{
					GatewayTokenSecretRef: ref("gateway"), AllowedCountries: []verifyv1.Country{"DE"}, MaxPerDay: 100,
				},
			},
			RateLimit: verifyv1.RateLimit{
				PerSubject: &verifyv1.Rate{Requests: 10, Period: "1m"}, PerPrefix: &verifyv1.PrefixRate{Digits: 9, Requests: 100, Period: "1m"},
			},
			Request: verifyv1.RequestSettings{TTL: "10m"},
		},
	}
	values := map[string]string{
		"key": apiKey, "token": "sim_token", "secret": "sim_secret", "signing": "v1," + signingSecret, "bot": "sim_shop_bot", "gateway": "sim_gateway",
	}
	current := settings.FromProject(project, settings.InspectSecrets(project, func(ref verifyv1.SecretKeyRef) ([]byte, bool) {
		return []byte(values[ref.Key]), true
	}, w.clock.Now()))
	w.Expect(current.Problems).To(BeEmpty())
	w.current = func() *settings.Settings { return current }
	w.serve(t)
	return w
}

// serve serves the API with the pages and the messengers, and runs the platform, until the test ends.
func (w *secrecy) serve(t *testing.T) {
	t.Helper()
	inbound, err := w.newChannels(w.store)
	w.Expect(err).NotTo(HaveOccurred())
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(HaveOccurred())
	w.address = listener.Addr().String()
	w.Expect(w.platform.AddWhatsApp(simulator.WhatsAppAccount{
		PhoneNumberID: "1234567890", Number: "+4915113000000", AppSecret: "sim_secret", Callback: "http://" + w.address + whatsapp.Path,
	})).To(Succeed())
	for number, rule := range map[verification.Method]map[string]string{
		verification.WhatsApp: {
			codeRefused: `"error":131026`, codeRefusedLater: `"error":131026,"failed":"2s"`, codeSilent: `"error":131000,"failed":"1h"`,
		},
		verification.Telegram: {
			codeRefusedLater: `"platform":"telegram","gatewayError":"FLOOD_WAIT_5"`, codeSilent: `"platform":"telegram","gatewayError":"BALANCE_NOT_ENOUGH"`,
		},
	}[w.method] {
		w.Expect(w.control("codes", `{"to":"`+number+`",`+rule+`}`)).To(Equal(http.StatusNoContent))
	}
	api, err := w.newAPI(listener, inbound)
	w.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- RunBehind(ctx, api, append(inbound.replies, w.platform)...) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
}

// control calls the control API of the platform, and returns the status.
func (w *secrecy) control(path, body string) int {
	answer := httptest.NewRecorder()
	w.platform.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/sim/"+path, strings.NewReader(body)))
	return answer.Code
}

// begin begins a request with a code, opens its page, and follows it.
func (w *secrecy) begin(t *testing.T, number string) *sighting {
	t.Helper()
	body := fmt.Sprintf(`{"phoneNumber":%q,"deliver":"CODE","method":%q,"subject":"user of all","returnURL":"https://shop.example/return"}`,
		number, w.method)
	var got struct {
		RequestID    string `json:"requestId"`
		PageURL      string `json:"pageURL"`
		ExpectedText string `json:"expectedText"`
		CodeLength   int    `json:"codeLength"`
	}
	w.Expect(json.Unmarshal([]byte(w.call(t, http.MethodPost, "/api/verify/init", body)), &got)).To(Succeed())
	w.Expect(got.CodeLength).To(Equal(8))
	at, err := url.Parse(got.PageURL)
	w.Expect(err).NotTo(HaveOccurred())
	s := &sighting{id: got.RequestID, page: at.Path, text: got.ExpectedText, events: &bytes.Buffer{}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.address+s.page+"/events", nil)
	w.Expect(err).NotTo(HaveOccurred())
	stream, err := http.DefaultTransport.RoundTrip(request) //nolint:bodyclose // closed by the end of the test
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(stream.StatusCode).To(Equal(http.StatusOK))
	go func() { // ends with the test
		chunk := make([]byte, 1024)
		for {
			n, err := stream.Body.Read(chunk)
			w.mu.Lock()
			s.events.Write(chunk[:n])
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// call calls the API or a page, and returns the status and the body of the answer.
func (w *secrecy) call(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.address+path, strings.NewReader(body))
	w.Expect(err).NotTo(HaveOccurred())
	if strings.HasPrefix(path, "/api/") {
		request.Header.Set("Authorization", "Bearer "+apiKey)
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	w.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	w.Expect(err).NotTo(HaveOccurred())
	if strings.HasSuffix(path, "/init") {
		w.Expect(response.StatusCode).To(Equal(http.StatusOK), string(content))
		return string(content)
	}
	return fmt.Sprintf("%d\n%s", response.StatusCode, content)
}

// startWaits has a client wait for each request for 30 seconds of the machine's clock, and returns what waits for the answers.
func (w *secrecy) startWaits(t *testing.T) (answers func() map[string]string) {
	t.Helper()
	got, running := map[string]string{}, sync.WaitGroup{}
	for number, s := range w.seen {
		running.Go(func() {
			answer := w.call(t, http.MethodGet, "/api/verify/status?wait=30s&id="+s.id, "")
			w.mu.Lock()
			defer w.mu.Unlock()
			got[number] = answer
		})
	}
	w.Eventually(w.countWaits).WithTimeout(time.Minute).Should(BeEquivalentTo(len(w.seen)))
	return func() map[string]string {
		running.Wait()
		return got
	}
}

func (w *secrecy) countWaits() float64 {
	return (&crowd{testServer: w.testServer}).readMetric("phoneproof_http_long_polls")
}

// awaitResults waits until each code has its result.
func (w *secrecy) awaitResults(t *testing.T) {
	t.Helper()
	for number, s := range w.seen {
		w.Eventually(func() verification.CodeState {
			r, err := w.store.Read(t.Context(), s.id)
			w.Expect(err).NotTo(HaveOccurred())
			return r.Code.State
		}).WithTimeout(time.Minute).ShouldNot(BeEmpty(), number)
	}
}

// countStatuses returns how many statuses of messages the server took.
func (w *secrecy) countStatuses() (count float64) {
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if labels := metric.GetLabel(); family.GetName() == "phoneproof_messages_total" && labels[len(labels)-1].GetValue() == "status" {
				count += metric.GetCounter().GetValue()
			}
		}
	}
	return count
}

// look looks at all that shows a request.
func (w *secrecy) look(t *testing.T, second int) {
	t.Helper()
	for what, path := range map[string]func(*sighting) string{
		"page":   func(s *sighting) string { return s.page },
		"text":   func(s *sighting) string { return s.page + "?method=" + string(w.method) },
		"state":  func(s *sighting) string { return s.page + "/state" },
		"status": func(s *sighting) string { return "/api/verify/status?id=" + s.id },
	} {
		answers := map[string]string{}
		for number, s := range w.seen {
			answers[number] = w.call(t, http.MethodGet, path(s), "")
		}
		w.expectEqual(fmt.Sprintf("%s after %d s", what, second), answers)
		if what == "status" {
			w.Expect(strings.Contains(answers[codeSilent], `"codeDelivery":"SENT"`)).To(Equal(second >= 10), "not while some may be on their way")
		}
	}
}

// readEvents returns the events that the pages got.
func (w *secrecy) readEvents() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]string{}
	for number, s := range w.seen {
		all[number] = s.events.String()
		w.Expect(all[number]).NotTo(BeEmpty())
	}
	return all
}

// picture is the QR code of a page, which holds the code of the request.
var picture = regexp.MustCompile(`data:image/png;base64,[^"]+`)

// expectEqual expects the same of all numbers, but for what the client itself knows to differ.
func (w *secrecy) expectEqual(what string, answers map[string]string) {
	first := ""
	for number, s := range w.seen {
		words := strings.Fields(s.text)
		code := words[len(words)-1]
		answer := picture.ReplaceAllString(answers[number], "PICTURE")
		for _, own := range []string{s.id, s.page, code, strings.ReplaceAll(code, "-", ""), number, number[1:]} {
			answer = strings.ReplaceAll(answer, own, "OWN")
		}
		if first == "" {
			first = answer
		}
		w.Expect(answer).To(Equal(first), "%s of %s", what, number)
	}
}
