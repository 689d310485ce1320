package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/simulator"
)

// Constants of the messengers' specs. The credentials are the simulator's.
const (
	shopHost     = "https://shop.example"
	foreignHost  = "https://elsewhere.example.net"
	shopNumberID = "1234567890"
	shopBot      = "ada_books_bot"
	botTokenOne  = "sim_ada_books_bot:one"
	botTokenTwo  = "sim_ada_books_bot:two"
	simulatedKey = "sim_4915112345670:key"
)

// messengers are the simulated platforms of a shop, with a record of their calls.
type messengers struct {
	url       string
	elsewhere *httptest.Server // another system's callback: it answers Meta's check, and accepts all posts

	mu       sync.Mutex
	calls    []string
	replicas []*replica
	turn     int
}

// newMessengers gives a shop simulated accounts, on platforms of its own. Replicas that start from now on use them.
func (s *shop) newMessengers() *messengers {
	GinkgoHelper()
	m := &messengers{elsewhere: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Query().Get("hub.challenge"))
	}))}
	DeferCleanup(m.elsewhere.Close)
	platforms := simulator.New(simulator.Options{Redirect: m.redirectCallback})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.recordCall(r)
		platforms.ServeHTTP(w, r)
	}))
	DeferCleanup(server.Close)
	m.url = server.URL
	runInBackground(platforms.Start)
	s.writeSecret("access-token", simulatedKey)
	s.writeSecret("app-secret", simulatedKey)
	s.writeSecret("bot-token", botTokenOne)
	s.lease = append(slices.Clone(s.lease), "--simulator-url="+m.url)
	return m
}

// recordCall records calls that change something, by the platform's name for them.
func (m *messengers) recordCall(r *http.Request) {
	what := ""
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) != 2:
	case strings.HasPrefix(parts[0], "bot") && parts[1] != "getUpdates" && parts[1] != "sendMessage" && !strings.HasPrefix(parts[1], "get"):
		what = parts[1]
	case strings.HasPrefix(parts[0], "v") && r.Method == http.MethodPost:
		what = "callback"
	}
	if what == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, what)
}

// countCalls counts the recorded calls, including those of the spec itself.
func (m *messengers) countCalls(what string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, call := range m.calls {
		if call == what {
			n++
		}
	}
	return n
}

// routeTo routes callbacks to the running replicas in turn, like an ingress.
func (m *messengers) routeTo(replicas []*replica) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replicas = slices.Clone(replicas)
}

// startServing starts replicas that receive callbacks from the start, and waits until they are ready.
func (m *messengers) startServing(ctx context.Context, s *shop, n int) {
	GinkgoHelper()
	for range n {
		s.startOne()
	}
	m.routeTo(s.replicas)
	for _, r := range s.replicas {
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue())
	}
}

// isListening reports whether a process listens at an address: a Service routes to no other.
func isListening(address string) bool {
	conn, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// redirectCallback returns the URL to which a callback is actually posted.
func (m *messengers) redirectCallback(callback string) string {
	u, err := url.Parse(callback)
	if err != nil || strings.HasPrefix(callback, foreignHost) {
		return m.elsewhere.URL
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for range m.replicas {
		m.turn++
		if r := m.replicas[m.turn%len(m.replicas)]; r.Running() && isListening(r.API) {
			return "http://" + r.API + u.Path
		}
	}
	return ""
}

// postJSON sends JSON to the simulator, and decodes its answer.
func (m *messengers) postJSON(ctx context.Context, path string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return m.callJSON(ctx, http.MethodPost, path, encoded, into)
}

func (m *messengers) getJSON(ctx context.Context, path string, into any) error {
	return m.callJSON(ctx, http.MethodGet, path, nil, into)
}

func (m *messengers) callJSON(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, m.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+simulatedKey)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode > 299 {
		return fmt.Errorf("%s %s: %d %s", request.Method, request.URL.Path, response.StatusCode, answer)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// listRegistered returns the callbacks that are registered with Meta and Telegram.
func (m *messengers) listRegistered(ctx context.Context) []string {
	GinkgoHelper()
	var accounts struct {
		WhatsApp []struct {
			Override string `json:"override"`
		} `json:"whatsapp"`
		Telegram []struct {
			Webhook string `json:"webhook"`
		} `json:"telegram"`
	}
	Expect(m.getJSON(ctx, "/sim/accounts", &accounts)).To(Succeed())
	all := []string{"", ""}
	for _, a := range accounts.WhatsApp {
		all[0] = a.Override
	}
	for _, a := range accounts.Telegram {
		all[1] = a.Webhook
	}
	return all
}

// setMetaCallback registers a callback with Meta for the number, like another system; an empty one removes it.
func (m *messengers) setMetaCallback(ctx context.Context, callback string) {
	GinkgoHelper()
	Expect(m.postJSON(ctx, "/v25.0/"+shopNumberID, map[string]any{
		"webhook_configuration": map[string]string{"override_callback_uri": callback, "verify_token": "x"},
	}, nil)).To(Succeed())
}

// setBotWebhook sets the bot's webhook, like another system; an empty one removes it.
func (m *messengers) setBotWebhook(ctx context.Context, callback string) {
	GinkgoHelper()
	Expect(m.postJSON(ctx, "/bot"+botTokenOne+"/setWebhook", map[string]string{"url": callback}, nil)).To(Succeed())
}

// customer is a user of both messengers.
type customer struct {
	messengers *messengers
	id         string
	phone      string
}

func (m *messengers) newCustomer(ctx context.Context, number string) *customer {
	GinkgoHelper()
	var made struct {
		ID string `json:"id"`
	}
	Expect(m.postJSON(ctx, "/sim/users", map[string]string{"name": "Zoë", "phone": number}, &made)).To(Succeed())
	return &customer{m, made.ID, number}
}

// openLink opens a link and sends the prepared message.
func (c *customer) openLink(ctx context.Context, link string) {
	GinkgoHelper()
	Expect(c.messengers.postJSON(ctx, "/sim/users/"+c.id+"/send", map[string]string{"link": link}, nil)).To(Succeed())
}

// shareContact presses the button that shares the contact, once it is there.
func (c *customer) shareContact(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		return c.messengers.postJSON(ctx, "/sim/users/"+c.id+"/share-contact", map[string]string{"wait": "10s"}, nil)
	}).WithContext(ctx).Should(Succeed())
}

// countReplies counts the replies in the chat that contain a word.
func (c *customer) countReplies(ctx context.Context, word string) int {
	GinkgoHelper()
	var answer struct {
		Chats []struct {
			Messages []struct{ From, Text string } `json:"messages"`
		} `json:"chats"`
	}
	Expect(c.messengers.getJSON(ctx, "/sim/users/"+c.id+"/chats", &answer)).To(Succeed())
	n := 0
	for _, chat := range answer.Chats {
		for _, message := range chat.Messages {
			if message.From == "business" && strings.Contains(message.Text, word) {
				n++
			}
		}
	}
	return n
}

// initFor starts a verification of a customer's number, and returns its id and its link.
func (s *shop) initFor(ctx context.Context, through *replica, c *customer, method string) (id, link string) {
	GinkgoHelper()
	answer := through.mustCall(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": %q, "method": %q}`, c.phone, method))
	canaries.addText(answer["expectedText"].(string))
	link, _ = answer["waLink"].(string)
	if method == "TELEGRAM" {
		link, _ = answer["tgLink"].(string)
	}
	return answer["requestId"].(string), link
}

// awaitVerified waits until the request is VERIFIED.
func (s *shop) awaitVerified(ctx context.Context, id string) {
	GinkgoHelper()
	Eventually(func() verifyv1.Phase { return s.readRequest(ctx, id).Status.Phase }).WithContext(ctx).
		Should(Equal(verifyv1.PhaseVerified))
}

// awaitReason waits until a condition of the project has a reason, for the present generation.
func (s *shop) awaitReason(ctx context.Context, condition, reason string) {
	GinkgoHelper()
	Eventually(func() string {
		project := s.readProject(ctx)
		found := meta.FindStatusCondition(project.Status.Conditions, condition)
		if found == nil || found.ObservedGeneration != project.Generation {
			return ""
		}
		return found.Reason
	}).WithContext(ctx).Should(Equal(reason), condition) // a store is checked every 30 s
}

func (s *shop) readProject(ctx context.Context) *verifyv1.VerificationProject {
	GinkgoHelper()
	project := &verifyv1.VerificationProject{}
	Eventually(func() error {
		return s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)
	}).WithContext(ctx).Should(Succeed())
	return project
}

// touchProject edits the project without a change for the messengers, so that their registrations are checked.
func (s *shop) touchProject(ctx context.Context) {
	GinkgoHelper()
	s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.DisplayName += "." })
}
