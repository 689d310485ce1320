package integration_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// shop is a project with its namespace, secrets, receiver and replicas.
type shop struct {
	*cluster

	namespace  string
	key        string
	secrets    string
	token      string
	kubeconfig string
	lease      []string
	receiver   *receiver
	replicas   []*replica
	store      *kubernetes.Store
	verified   atomic.Int64
}

// leaseFlags make leases short, to keep tests of their loss short, and yet longer than the pauses of a loaded machine.
var leaseFlags = []string{"--lease-duration=6s", "--lease-renew-deadline=5s", "--lease-retry-period=250ms"}

// The secrets of shops, of which the first signs their events, and the second Meta's messages.
const (
	webhookSecret = "a webhook secret of enough length"
	appSecret     = "0123456789abcdef0123456789abcdef"
)

// newShop creates a project and its prerequisites, and starts only its receiver.
func newShop(ctx context.Context) *shop {
	GinkgoHelper()
	return newShopIn(ctx, sharedCluster)
}

// newShopIn is newShop in a cluster that the spec owns.
func newShopIn(ctx context.Context, c *cluster) *shop {
	GinkgoHelper()
	s := &shop{
		cluster: c, namespace: "shop-" + strings.ToLower(rand.Text()[:10]), secrets: GinkgoT().TempDir(), receiver: startReceiver(), lease: leaseFlags,
	}
	_, err := s.clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	s.grantAccess(ctx)
	s.writeSecrets()
	Expect(s.admin.Create(ctx, s.newProject())).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { c.printStatus(ctx, s.namespace) }, NodeTimeout(time.Minute))
	return s
}

// printStatus adds the Events of a namespace and the status of its project to what is printed. A cluster of the spec's own may be gone.
func (c *cluster) printStatus(ctx context.Context, namespace string) {
	project := &verifyv1.VerificationProject{}
	err := client.IgnoreNotFound(c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop"}, project))
	events, listErr := c.clients.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err = errors.Join(err, listErr); err != nil {
		Expect(c).NotTo(BeIdenticalTo(sharedCluster), "%v", err)
		return
	}
	public, err := json.Marshal([]any{project.Status, events.Items})
	Expect(err).NotTo(HaveOccurred())
	printed.add(string(public))
}

// writeSecrets writes the secrets of every shop, with an API key of its own.
func (s *shop) writeSecrets() {
	GinkgoHelper()
	var err error
	s.key, err = settings.NewAPIKey(rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	s.writeSecret("api-key", s.key)
	s.writeSecret("webhook", webhookSecret)
	s.writeSecret("access-token", "EAAG0123456789")
	s.writeSecret("app-secret", appSecret)
}

// writeSecret writes the file of a secret, like a kubelet. Its value becomes a canary.
func (s *shop) writeSecret(key, value string) {
	GinkgoHelper()
	canaries.add(value)
	writeFile(s.secrets, "shop/"+key, value)
}

// grantAccess lets the ServiceAccount serve in the namespace, with a token of its own.
func (s *shop) grantAccess(ctx context.Context) {
	GinkgoHelper()
	s.bindRole(ctx, s.createAccount(ctx, "serve"), "ClusterRole", kubernetesRole)
	s.token = s.tokenFor(ctx, "serve")
	s.writeKubeconfig(s.config.Host)
}

// writeKubeconfig writes the kubeconfig of replicas that start from now on, with an address of the API server.
func (s *shop) writeKubeconfig(host string) {
	GinkgoHelper()
	s.kubeconfig = s.writeConfig(host, s.token, s.config.CAData)
}

// writeConfig writes a kubeconfig with a token and returns its path.
func (s *shop) writeConfig(host, token string, authority []byte) string {
	GinkgoHelper()
	config := rest.AnonymousClientConfig(s.config)
	config.Host, config.BearerToken, config.CAData = host, token, authority
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(controlplane.WriteKubeconfig(file, config)).To(Succeed())
	return file
}

func (s *shop) newProject() *verifyv1.VerificationProject {
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	return &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref("api-key")}},
			Webhook: &verifyv1.Webhook{URL: s.receiver.url, SecretRef: new(ref("webhook"))},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: "+4915112345670", PhoneNumberID: "1234567890", RegisterWebhook: new(false),
				AccessTokenSecretRef: ref("access-token"), AppSecretRef: ref("app-secret"),
			},
			RateLimit: verifyv1.RateLimit{
				PerKey:         &verifyv1.Rate{Requests: 1_000_000, Period: "1m"},
				PerPhoneNumber: &verifyv1.Rate{Requests: 1_000_000, Period: "1m"},
			},
		},
	}
}

// allowSlowAnswers has servers wait for the receiver for as long as they can, so that an attempt that the spec holds is not given up.
func (s *shop) allowSlowAnswers(ctx context.Context) {
	GinkgoHelper()
	s.editProject(ctx, func(p *verifyv1.VerificationProject) { p.Spec.Webhook.Timeout = "30s" })
}

// start starts replicas and waits until they are ready.
func (s *shop) start(ctx context.Context, n int) {
	GinkgoHelper()
	var started []*replica
	for range n {
		started = append(started, s.startOne())
	}
	for _, r := range started {
		Eventually(r.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), r.output)
	}
}

func (s *shop) startOne(flags ...string) *replica {
	GinkgoHelper()
	r := startReplica(slices.Concat([]string{
		"--project", s.namespace + "/shop", "--kubeconfig", s.kubeconfig, "--secrets-dir", s.secrets, "--log-level=debug",
	}, s.lease, flags)...)
	s.replicas = append(s.replicas, r)
	return r
}

// findLeader returns the replica that holds the lease, according to the logs.
func (s *shop) findLeader(ctx context.Context) *replica {
	GinkgoHelper()
	var leader *replica
	Eventually(func() *replica {
		for _, r := range s.replicas {
			if r.Running() && r.isLeading() {
				leader = r
				return r
			}
		}
		return nil
	}).WithContext(ctx).ShouldNot(BeNil(), "a replica leads")
	return leader
}

// openStore opens a store for the spec itself, like another replica.
func (s *shop) openStore(ctx context.Context) *kubernetes.Store {
	GinkgoHelper()
	if s.store != nil {
		return s.store
	}
	project := &verifyv1.VerificationProject{}
	Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "shop"}, project)).To(Succeed())
	store, err := kubernetes.New(kubernetes.Options{
		Config: s.config, Project: s.namespace + "/shop", ProjectUID: func() types.UID { return project.UID },
	})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- store.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	Eventually(store.HasSynced).WithContext(ctx).Should(BeTrue())
	s.store = store
	return store
}

// initRequest starts a verification through a replica and returns its id.
func (s *shop) initRequest(ctx context.Context, through *replica, number string) string {
	GinkgoHelper()
	answer := through.mustCall(ctx, s.key, http.MethodPost, "/api/verify/init", fmt.Sprintf(`{"phoneNumber": %q, %s}`, number, clientData))
	canaries.addText(answer["expectedText"].(string))
	return answer["requestId"].(string)
}

// verifyRequest makes a request VERIFIED by the store's transition, like an authentic message.
func (s *shop) verifyRequest(ctx context.Context, id string) error {
	again := false
	return retryUnavailable(ctx, func() error {
		_, err := s.openStore(ctx).Update(ctx, id, func(r *verification.Request, now time.Time) error {
			if again && r.Phase == verification.Verified {
				return verification.ErrUnchanged // the previous try succeeded
			}
			return r.Verify(verification.Evidence{Method: r.Method, Sender: r.Phone, SentAt: now}, now, verification.NewEventKinds(verification.EventSuccess))
		})
		again = true
		return err
	})
}

// retryUnavailable repeats a store call that times out, as it may on a loaded machine.
func retryUnavailable(ctx context.Context, do func() error) error {
	for {
		err := do()
		if known, ok := errors.AsType[*verification.Error](err); !ok || known.Code != verification.CodeStoreUnavailable || ctx.Err() != nil {
			return err
		}
	}
}

// createVerifiedRequest stores a request and verifies it, without a replica.
func (s *shop) createVerifiedRequest(ctx context.Context) (string, error) {
	id, err := s.storeRequest(ctx, 10*time.Minute)
	if err != nil {
		return "", err
	}
	return id, s.verifyRequest(ctx, id)
}

// storeRequest stores a pending request of a new number, without a replica.
func (s *shop) storeRequest(ctx context.Context, ttl time.Duration) (string, error) {
	id, _, err := s.storeRequestOf(ctx, fmt.Sprintf("+49151%08d", s.verified.Add(1)), ttl)
	return id, err
}

// storeRequestOf is storeRequest for a number of the spec's own, with the code that verifies it. A ttl may be shorter than a project
// may set.
func (s *shop) storeRequestOf(ctx context.Context, claimed string, ttl time.Duration) (string, verification.Code, error) {
	number, err := phone.FromE164(claimed)
	if err != nil {
		return "", verification.Code{}, err
	}
	project := verification.NewCodeSpace(s.namespace + "/shop")
	code, err := project.NewCode(rand.Reader)
	if err != nil {
		return "", verification.Code{}, err
	}
	id := project.RequestID(code)
	return id, code, retryUnavailable(ctx, func() error {
		_, err := s.openStore(ctx).Create(ctx, verification.New{
			ID: id, Phone: number, Method: verification.WhatsApp, TTL: ttl, KeyName: "backend",
		}, verification.Limits{})
		return err
	})
}

func (s *shop) readRequest(ctx context.Context, id string) *verifyv1.VerificationRequest {
	GinkgoHelper()
	object := &verifyv1.VerificationRequest{}
	Eventually(func() error {
		return s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: id}, object)
	}).WithContext(ctx).Should(Succeed())
	return object
}

func (s *shop) isDeleted(ctx context.Context, id string) bool {
	err := s.admin.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: id}, &verifyv1.VerificationRequest{})
	return apierrors.IsNotFound(err)
}

// runKubectl runs kubectl as the cluster's administrator.
func (s *shop) runKubectl(args ...string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "admin")
	Expect(controlplane.WriteKubeconfig(file, s.config)).To(Succeed())
	cmd := exec.CommandContext(context.Background(), s.kubectl, append([]string{"--kubeconfig", file, "--namespace", s.namespace}, args...)...)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return string(out)
}
