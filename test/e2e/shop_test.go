//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	releaseNamespace = "phoneproof-system"
	shopNamespace    = "shop"
	simulatorPort    = "8090"
)

// The first credentials; a rotation replaces the last three.
const (
	firstAPIKey   = "e2e-first-api-key-0123456789abcdef"
	firstSecret   = "e2e-first-webhook-secret-0123456789"
	firstBotToken = "sim_ada_books_bot:first"
)

// shop is a client of a project, with its users and its receiver.
type shop struct {
	namespace string
	api, sim  string // addresses of Service and simulator
	key       string
	http      *http.Client
}

// openShop creates the namespace with simulator and project, and waits until both work.
func openShop(ctx context.Context, namespace, number, bot string) *shop {
	GinkgoHelper()
	applyFile(ctx, "shop.yaml", map[string]string{
		"NAMESPACE": namespace, "IMAGE": image, "NUMBER": number, "BOT": bot,
		"API_KEY": firstAPIKey, "WEBHOOK_SECRET": firstSecret, "BAKERY_NUMBER": bakeryNumber,
		"META_TOKEN": "sim_" + number + ":e2e", "BOT_TOKEN": "sim_" + bot + ":first",
	})
	runKubectl(ctx, "--namespace "+namespace+" rollout status deployment/simulator --timeout=5m")
	eventuallyReady(ctx, namespace)
	s := newShop(ctx, namespace)
	s.eventuallyServed(ctx)
	return s
}

// eventuallyServed waits until the Service answers: kube-proxy learns of ready pods a moment after the project's status does.
func (s *shop) eventuallyServed(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := s.sendRequest(ctx, s.http, http.MethodGet, s.api+"/openapi.json", "", nil)
		return err
	}).WithContext(ctx).Should(Succeed())
}

// eventuallySettled waits until the project's pods are all available, and those of before have ended: after a resume a project is Ready
// with its first pod, and one that is ending serves, and leads, for ten seconds more.
func (s *shop) eventuallySettled(ctx context.Context) {
	GinkgoHelper()
	eventuallyReady(ctx, s.namespace)
	runKubectl(ctx, "--namespace "+s.namespace+" rollout status --timeout=5m deployment/phoneproof-shop")
	Eventually(s.listPods).WithContext(ctx).Should(HaveEach(HaveField("DeletionTimestamp", BeNil())))
	s.eventuallyServed(ctx)
}

// newShop returns a client of the project in a namespace. There is one simulator.
func newShop(ctx context.Context, namespace string) *shop {
	GinkgoHelper()
	return &shop{
		namespace: namespace, key: firstAPIKey,
		api:  "http://" + clusterIP(ctx, namespace, "phoneproof-shop"),
		sim:  "http://" + clusterIP(ctx, shopNamespace, "simulator") + ":" + simulatorPort,
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 40 * time.Second},
	}
}

func clusterIP(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	var service corev1.Service
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &service)).To(Succeed())
	return service.Spec.ClusterIP
}

func readProject(ctx context.Context, namespace string) (*verifyv1.VerificationProject, error) {
	var p verifyv1.VerificationProject
	err := kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop"}, &p)
	return &p, err
}

// patchProject patches the project.
func patchProject(ctx context.Context, namespace, patch string) {
	GinkgoHelper()
	runKubectl(ctx, "--namespace "+namespace+" patch vproj/shop --type=merge --patch", patch)
}

// eventuallyReady waits until the project is ready for its current generation.
func eventuallyReady(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		p, err := readProject(ctx, namespace)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.Status.ObservedGeneration).To(Equal(p.Generation))
		g.Expect(p.Status.Conditions).To(ContainElement(And(
			HaveField("Type", verifyv1.ConditionReady), HaveField("Status", metav1.ConditionTrue))), "conditions")
	}).WithContext(ctx).Should(Succeed())
}

// answer is a response of the API or the simulator.
type answer struct {
	code int
	body string
}

func (s *shop) sendRequest(ctx context.Context, c *http.Client, method, url, key string, body any) (answer, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(encoded))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := c.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(content)}, err
}

// mustSend sends a request that must succeed, and decodes the response. Requests that the store had no time for are repeated,
// like clients do.
func (s *shop) mustSend(ctx context.Context, method, url string, body, into any) {
	GinkgoHelper()
	var (
		got answer
		err error
	)
	Eventually(func() int {
		got, err = s.sendRequest(ctx, s.http, method, url, s.key, body)
		return got.code
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(err).NotTo(HaveOccurred())
	Expect(got.code).To(And(BeNumerically(">=", 200), BeNumerically("<", 300)), "%s %s: %s", method, url, got.body)
	if into != nil {
		Expect(json.Unmarshal([]byte(got.body), into)).To(Succeed(), got.body)
	}
}

// request is a verification that a client has started.
type request struct {
	ID      string `json:"requestId"`
	WaLink  string `json:"waLink"`
	TgLink  string `json:"tgLink"`
	PageURL string `json:"pageURL"`

	number string
}

var numbers atomic.Int64

// newNumber returns a number that no other test uses, because the API limits requests per number.
func newNumber() string { return fmt.Sprintf("+4915117%06d", numbers.Add(1)) }

func (s *shop) initRequest(ctx context.Context, method string) request {
	GinkgoHelper()
	r := request{number: newNumber()}
	s.mustSend(ctx, http.MethodPost, s.api+"/api/verify/init", map[string]string{"phoneNumber": r.number, "method": method}, &r)
	return r
}

// sendMessage acts as the user: it sends the message and, if the messenger does not provide the number, the contact when it is asked for,
// which takes until there is a leader. The user may have sent one before.
func (s *shop) sendMessage(ctx context.Context, r request) {
	GinkgoHelper()
	got, err := s.sendRequest(ctx, s.http, http.MethodPost, s.sim+"/sim/users", s.key, map[string]string{"name": "Ada", "phone": r.number})
	Expect(err).NotTo(HaveOccurred())
	if got.code != http.StatusConflict || !strings.Contains(got.body, "number_taken") {
		Expect(got.code).To(Equal(http.StatusCreated), "%s", got.body)
	}
	user := s.sim + "/sim/users/" + r.number
	s.mustSend(ctx, http.MethodPost, user+"/send", map[string]string{"link": r.WaLink + r.TgLink}, nil)
	if r.TgLink != "" {
		Eventually(func() string {
			got, err = s.sendRequest(ctx, s.http, http.MethodPost, user+"/share-contact", s.key, map[string]string{"wait": "30s"})
			return got.body
		}).WithContext(ctx).ShouldNot(ContainSubstring("not_asked"))
		Expect(err).NotTo(HaveOccurred())
		Expect(got.code).To(BeNumerically("<", 300), "%s", got.body)
	}
}

func (s *shop) readStatus(ctx context.Context, id string) string {
	got, err := s.sendRequest(ctx, s.http, http.MethodGet, s.api+"/api/verify/status?id="+id, s.key, nil)
	if err != nil || got.code != http.StatusOK {
		return fmt.Sprintf("%d %s%v", got.code, got.body, err)
	}
	var decoded struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(got.body), &decoded); err != nil {
		return err.Error()
	}
	return decoded.Status
}

// mustReadStatus returns the status of a request that exists.
func (s *shop) mustReadStatus(ctx context.Context, id string) string {
	GinkgoHelper()
	var decoded struct {
		Status string `json:"status"`
	}
	s.mustSend(ctx, http.MethodGet, s.api+"/api/verify/status?id="+id, nil, &decoded)
	return decoded.Status
}

func (s *shop) eventuallyVerified(ctx context.Context, r request) {
	GinkgoHelper()
	Eventually(s.readStatus).WithContext(ctx).WithArguments(r.ID).Should(Equal("VERIFIED"))
}

// event is an event at the receiver, with the receiver's verdict on its signature.
type event struct {
	Seq               int64             `json:"seq"`
	Headers           map[string]string `json:"headers"`
	Body              string            `json:"body"`
	Signature         string            `json:"signature"`
	StandardSignature string            `json:"standardSignature"`
	Duplicate         bool              `json:"duplicate"`
	Status            int               `json:"status"`
}

// deliveries are the last events of the receiver, as many as it keeps.
type deliveries struct {
	Deliveries []event `json:"deliveries"`
}

// listEvents returns the receiver's events for a request.
func (s *shop) listEvents(ctx context.Context, id string) []event {
	GinkgoHelper()
	var all deliveries
	s.mustSend(ctx, http.MethodGet, s.sim+"/receiver/deliveries", nil, &all)
	var mine []event
	for _, e := range all.Deliveries {
		if strings.Contains(e.Body, id) {
			mine = append(mine, e)
		}
	}
	return mine
}

// accepted matches an event that the receiver found authentic.
var accepted = And(HaveField("Signature", "valid"), HaveField("StandardSignature", "valid"), HaveField("Status", http.StatusNoContent))

func (s *shop) eventuallyAccepted(ctx context.Context, r request) {
	GinkgoHelper()
	Eventually(s.listEvents).WithContext(ctx).WithArguments(r.ID).Should(ContainElement(accepted))
}

// verifyNumber runs a verification through to the webhook.
func (s *shop) verifyNumber(ctx context.Context, method string) {
	GinkgoHelper()
	r := s.initRequest(ctx, method)
	s.sendMessage(ctx, r)
	s.eventuallyVerified(ctx, r)
	s.eventuallyAccepted(ctx, r)
}

// verifyQuickly is verifyNumber with a short timeout, for when it may not work yet.
func (s *shop) verifyQuickly(ctx context.Context, method string) {
	GinkgoHelper()
	r := s.initRequest(ctx, method)
	s.sendMessage(ctx, r)
	Eventually(s.listEvents).WithContext(ctx).WithArguments(r.ID).WithTimeout(20 * time.Second).Should(ContainElement(accepted))
}

// listPods returns the running pods of the project.
func (s *shop) listPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(s.namespace), client.MatchingLabels{verifyv1.ProjectLabel: "shop"})).To(Succeed())
	return pods.Items
}
