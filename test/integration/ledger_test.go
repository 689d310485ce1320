package integration_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// byRequest returns the deliveries of each request, and fails if a repetition differs or a signature with the current secret
// is wrong.
func (r *receiver) byRequest(secret string) map[string][]delivery {
	GinkgoHelper()
	got := map[string][]delivery{}
	ids := map[string]string{}
	for _, d := range r.deliveries() {
		var body struct {
			RequestID string `json:"requestId"`
		}
		Expect(json.Unmarshal([]byte(d.body), &body)).To(Succeed())
		Expect(d.id).NotTo(BeEmpty())
		if first := got[body.RequestID]; len(first) > 0 {
			Expect(d.id).To(Equal(first[0].id), "the webhook-id of a repetition")
			Expect(d.body).To(Equal(first[0].body), "the body of a repetition")
		} else {
			Expect(ids).NotTo(HaveKey(d.id), "two requests with one webhook-id")
			ids[d.id] = body.RequestID
		}
		Expect(d.headers.Get("X-Webhook-Signature")).To(Equal(hex.EncodeToString(computeHMAC(secret, d.body))))
		standard := "v1," + base64.StdEncoding.EncodeToString(computeHMAC(secret, d.id+"."+d.headers.Get("Webhook-Timestamp")+"."+d.body))
		Expect(strings.Fields(d.headers.Get("Webhook-Signature"))).To(ContainElement(standard))
		got[body.RequestID] = append(got[body.RequestID], d)
	}
	return got
}

func computeHMAC(key, message string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

// listRequests returns the project's requests by name.
func (s *shop) listRequests(ctx context.Context) map[string]verifyv1.VerificationRequest {
	GinkgoHelper()
	list := &verifyv1.VerificationRequestList{}
	Eventually(func() error {
		return s.admin.List(ctx, list, client.InNamespace(s.namespace))
	}).WithContext(ctx).Should(Succeed())
	objects := make(map[string]verifyv1.VerificationRequest, len(list.Items))
	for _, o := range list.Items {
		objects[o.Name] = o
	}
	return objects
}

func isDelivered(o verifyv1.VerificationRequest) bool {
	return meta.IsStatusConditionTrue(o.Status.Conditions, verifyv1.ConditionWebhookDelivered)
}

// listUndelivered returns the requests whose delivery is not recorded.
func (s *shop) listUndelivered(ctx context.Context, ids []string) []string {
	GinkgoHelper()
	objects := s.listRequests(ctx)
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return isDelivered(objects[id]) })
}

// awaitDelivered waits until the delivery of all requests is recorded, each after that many attempts.
func (s *shop) awaitDelivered(ctx context.Context, ids []string, attempts int32) {
	GinkgoHelper()
	Eventually(s.listUndelivered).WithContext(ctx).WithArguments(ids).WithPolling(250*time.Millisecond).
		Should(BeEmpty(), "all are delivered")
	objects := s.listRequests(ctx)
	for _, id := range ids {
		Expect(objects[id].Status.Delivery.Attempts).To(Equal(attempts), "attempts recorded for %s", id)
	}
}

// createVerifiedRequests stores and verifies n requests.
func (s *shop) createVerifiedRequests(ctx context.Context, n int) []string {
	GinkgoHelper()
	ids := make([]string, n)
	for i := range ids {
		id, err := s.createVerifiedRequest(ctx)
		Expect(err).NotTo(HaveOccurred())
		ids[i] = id
	}
	return ids
}

// phaseHistory has the phases of each request that a watch reported, in order and without repetitions.
type phaseHistory struct {
	mu     sync.Mutex
	phases map[string][]verifyv1.Phase
}

// followPhases watches the project's requests until the spec ends.
func (s *shop) followPhases(ctx context.Context) *phaseHistory {
	GinkgoHelper()
	h := &phaseHistory{phases: map[string][]verifyv1.Phase{}}
	s.watchRequests(ctx, h.recordChange)
	return h
}

// watchRequests calls record with each change of the project's requests, one after the other, until the spec ends. An API server may
// end a watch at any time, and does so if its client is slow: then it goes on from the last change.
func (s *shop) watchRequests(ctx context.Context, record func(watch.EventType, *verifyv1.VerificationRequest)) {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(verifyv1.AddToScheme(scheme)).To(Succeed())
	watcher, err := client.NewWithWatch(s.config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	present := &verifyv1.VerificationRequestList{}
	Expect(watcher.List(ctx, present, client.InNamespace(s.namespace))).To(Succeed())
	for i := range present.Items {
		record(watch.Added, &present.Items[i])
	}
	from := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return watcher.Watch(ctx, &verifyv1.VerificationRequestList{}, client.InNamespace(s.namespace), &client.ListOptions{Raw: &o})
	}}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, present.ResourceVersion, from)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	go func() {
		for change := range changes.ResultChan() {
			if o, ok := change.Object.(*verifyv1.VerificationRequest); ok {
				record(change.Type, o)
			}
		}
	}()
}

func (h *phaseHistory) recordChange(change watch.EventType, o *verifyv1.VerificationRequest) {
	if change == watch.Deleted {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.phases[o.Name]
	if len(seen) == 0 || seen[len(seen)-1] != o.Status.Phase {
		h.phases[o.Name] = append(seen, o.Status.Phase)
	}
}

func (h *phaseHistory) phasesOf(id string) []verifyv1.Phase {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.phases[id])
}
