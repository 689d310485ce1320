package integration_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/phoneproof/phoneproof/test/repository"
)

var _ = Describe("The operator's metrics", func() {
	It("are served to clients that the API server authorizes", func(ctx SpecContext) {
		s := newShop(ctx)
		op := startOperator(ctx, s, "--metrics-secure=true")
		s.bindInCluster(ctx, "metrics_auth_role.yaml", "phoneproof-operator")
		s.bindInCluster(ctx, "metrics_reader_role.yaml", s.createAccount(ctx, "prometheus"))
		Eventually(op.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), op.output)

		scrape := func(token string) (int, string) { return s.scrapeMetrics(ctx, "https://"+op.API+"/metrics", token) }
		for token, want := range map[string]int{
			"":                                  http.StatusUnauthorized,
			"a-guess":                           http.StatusUnauthorized,
			s.tokenFor(ctx, "serve"):            http.StatusForbidden,
			s.tokenFor(ctx, "prometheus"):       http.StatusOK,
			s.tokenFor(ctx, "prometheus") + "x": http.StatusUnauthorized,
		} {
			status, body := scrape(token)
			Expect(status).To(Equal(want), body)
			if want == http.StatusOK {
				Expect(body).To(ContainSubstring("\ncontroller_runtime_webhook_panics_total"))
			} else {
				Expect(body).NotTo(ContainSubstring("controller_runtime"))
			}
		}
		status, _ := s.scrapeMetrics(ctx, "http://"+op.API+"/metrics", s.tokenFor(ctx, "prometheus"))
		Expect(status).NotTo(Equal(http.StatusOK), "plain HTTP serves nothing")
	}, SpecTimeout(hang))

	It("cost the API server little, whatever tokens strangers send, and still serve Prometheus", func(ctx SpecContext) {
		const strangers, tokens = 8, 400
		s := newShop(ctx)
		way := s.startProxy()
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		s.cluster = &cluster{config: config, kubectl: s.kubectl, admin: s.admin, clients: s.clients} // the operator uses the proxy, too
		var reviews atomic.Int64
		way.AnswerWith(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
				reviews.Add(1)
			}
			return false
		})
		op := startOperator(ctx, s, "--metrics-secure=true")
		s.bindInCluster(ctx, "metrics_auth_role.yaml", "phoneproof-operator")
		s.bindInCluster(ctx, "metrics_reader_role.yaml", s.createAccount(ctx, "prometheus"))
		Eventually(op.Ready).WithContext(ctx).WithArguments(ctx).Should(BeTrue(), op.output)
		url, prometheus := "https://"+op.API+"/metrics", s.tokenFor(ctx, "prometheus")
		status, body := s.scrapeMetrics(ctx, url, prometheus)
		Expect(status).To(Equal(http.StatusOK), body)

		before, began := reviews.Load(), time.Now()
		var refused, limited atomic.Int64
		var all sync.WaitGroup
		for range strangers {
			all.Go(func() {
				defer GinkgoRecover()
				for range tokens / strangers {
					switch status, _ := s.scrapeMetrics(ctx, url, rand.Text()); status {
					case http.StatusUnauthorized:
						refused.Add(1)
					case http.StatusTooManyRequests:
						limited.Add(1)
					}
				}
			})
		}
		all.Wait()
		asked := reviews.Load() - before
		AddReportEntry("reviews", fmt.Sprintf("%d tokens in %s: %d reviews, %d answered 401, %d answered 429",
			tokens, time.Since(began).Round(time.Millisecond), asked, refused.Load(), limited.Load()))
		Expect(limited.Load()).To(BeNumerically(">", 0))
		Expect(asked).To(BeNumerically("<=", 5+time.Since(began).Seconds()), "a burst of four, and one a second")
		status, body = s.scrapeMetrics(ctx, url, prometheus)
		Expect(status).To(Equal(http.StatusOK), body)
	}, SpecTimeout(hang))
})

// scrapeMetrics returns the status and the body; the status is 0 without a response.
func (s *shop) scrapeMetrics(ctx context.Context, url, token string) (int, string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: true,
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	Expect(response.ProtoMajor).To(Equal(1), "HTTP/2 is disabled")
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, ""
	}
	return response.StatusCode, string(body)
}

// createAccount creates a ServiceAccount and returns its name.
func (s *shop) createAccount(ctx context.Context, name string) string {
	GinkgoHelper()
	_, err := s.clients.CoreV1().ServiceAccounts(s.namespace).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return name
}

func (s *shop) tokenFor(ctx context.Context, account string) string {
	GinkgoHelper()
	token, err := s.clients.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// bindInCluster binds a ServiceAccount to a ClusterRole of the chart, like an installation.
func (s *shop) bindInCluster(ctx context.Context, file, account string) {
	GinkgoHelper()
	role := &rbacv1.ClusterRole{}
	Expect(repository.Decode(role, repository.Roles, file)).To(Succeed())
	if _, err := s.clients.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	_, err := s.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: account}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
