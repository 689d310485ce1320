package apiproxy_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/phoneproof/phoneproof/test/apiproxy"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

const (
	patience  = time.Minute
	namespace = "default"
)

// fixture is a proxy of a real API server that breaks watches of leases.
type fixture struct {
	Gomega

	plane *controlplane.ControlPlane
	proxy *apiproxy.Proxy
	// direct calls the API server directly, leases through the proxy and with a token.
	direct, leases coordination.LeaseInterface
	config         *rest.Config
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{Gomega: NewWithT(t)}
	plane, err := controlplane.Start(controlplane.Options{WithoutCRDs: true})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(plane.Stop()).To(Succeed()) })
	w.plane = plane
	admin := kubernetes.NewForConfigOrDie(plane.Config)
	w.direct = admin.CoordinationV1().Leases(namespace)
	w.proxy, err = apiproxy.Listen(plane.Config, "leases", nil)
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.proxy.Close)
	w.config = rest.AnonymousClientConfig(plane.Config)
	w.config.Host, w.config.CAData = "https://"+w.proxy.Address, w.proxy.CA
	_, err = w.newClient().List(t.Context(), metav1.ListOptions{})
	w.Expect(err).To(Satisfy(apierrors.IsForbidden), "without a token")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "client"}}
	_, err = admin.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "client"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "client"}},
	}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	token, err := admin.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), "client", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	w.config.BearerToken = token.Status.Token
	w.leases = w.newClient()
	// The authorizer receives bindings through its own watch.
	w.Eventually(func() error {
		_, err := w.leases.List(t.Context(), metav1.ListOptions{})
		return err
	}).WithTimeout(patience).Should(Succeed())
	return w
}

// newClient returns a client that calls through the proxy and never retries.
func (w *fixture) newClient() coordination.LeaseInterface {
	config := rest.CopyConfig(w.config)
	config.ContentType, config.AcceptContentTypes, config.QPS = "application/json", "application/json", -1
	return kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(namespace)
}

func newLease(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// setHolder sets the holder of a lease.
func (w *fixture) setHolder(ctx context.Context, through coordination.LeaseInterface, name, holder string) error {
	l, err := w.direct.Get(ctx, name, metav1.GetOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	l.Spec.HolderIdentity = &holder
	_, err = through.Update(ctx, l, metav1.UpdateOptions{})
	return err
}

func TestProxy(t *testing.T) {
	w := newFixture(t)
	t.Run("passesOn", w.testPassesOn)
	t.Run("lagsBehind", w.testLagsBehind)
	t.Run("repeatsOldStates", w.testRepeatsOldStates)
	t.Run("repeatsWhatIsKnown", w.testRepeatsWhatIsKnown)
	t.Run("stopsOneMarkedWrite", w.testStopsOneMarkedWrite)
	t.Run("notesWhatIsNotAnswered", w.testNotesWhatIsNotAnswered)
}

func (w *fixture) testPassesOn(t *testing.T) {
	ctx := t.Context()
	_, err := w.leases.Create(ctx, newLease("plain"), metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.leases.Create(ctx, newLease("plain"), metav1.CreateOptions{})
	w.Expect(err).To(Satisfy(apierrors.IsAlreadyExists), "the API server's own response")
	w.Expect(w.setHolder(ctx, w.leases, "plain", "ada")).To(Succeed())
	w.Expect(w.leases.Delete(ctx, "plain", metav1.DeleteOptions{})).To(Succeed())
}

func (w *fixture) testLagsBehind(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	now, err := w.direct.List(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	watch, err := w.leases.Watch(ctx, metav1.ListOptions{ResourceVersion: now.ResourceVersion, TimeoutSeconds: new(int64(600))})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	w.proxy.LagWatches(time.Hour)
	_, err = w.leases.Create(ctx, newLease("late"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Consistently(watch.ResultChan()).WithTimeout(300 * time.Millisecond).ShouldNot(Receive())
	_, err = w.leases.Get(ctx, "late", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "a read of the present is answered at once")
	w.proxy.LagWatches(0)
	g.Eventually(watch.ResultChan()).WithTimeout(patience).Should(Receive())
	g.Expect(w.proxy.Late()).To(BeNumerically(">=", 1))
}

// testNotesWhatIsNotAnswered has a client give up a call that a frozen API server does not answer.
func (w *fixture) testNotesWhatIsNotAnswered(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	_, err := w.direct.Create(ctx, newLease("waiting"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = w.leases.Get(ctx, "waiting", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.proxy.Unanswered()).To(BeEmpty(), "it was answered")

	thaw, err := w.plane.FreezeAPIServer()
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(thaw()).To(Succeed()) }()
	began := time.Now()
	patient, cancel := context.WithTimeout(ctx, 2*apiproxy.MinUnanswered)
	defer cancel()
	_, err = w.leases.Get(patient, "waiting", metav1.GetOptions{})
	g.Expect(err).To(MatchError(context.DeadlineExceeded))
	g.Eventually(w.proxy.Unanswered).WithTimeout(patience).Should(HaveLen(1))
	call := w.proxy.Unanswered()[0]
	g.Expect(call.Resource + " " + call.Object).To(Equal("leases waiting"))
	g.Expect(call.Client).NotTo(BeEmpty())
	g.Expect(call.From).To(BeTemporally(">", began))
	g.Expect(call.Until.Sub(call.From)).To(BeNumerically(">=", apiproxy.MinUnanswered))
}

// testStopsOneMarkedWrite holds a write back, or its answer.
func (w *fixture) testStopsOneMarkedWrite(t *testing.T) {
	for name, after := range map[string]bool{"held-before": false, "held-after": true} {
		var held error
		w.proxy.StopWrite(&apiproxy.Stop{Method: "POST", Marks: [][]byte{[]byte(name)}, After: after, Do: func(client string) {
			w.Expect(client).To(HavePrefix("127.0.0.1:"))
			_, held = w.direct.Get(t.Context(), name, metav1.GetOptions{})
		}})
		_, err := w.leases.Create(t.Context(), newLease("other"), metav1.CreateOptions{})
		w.Expect(err).NotTo(HaveOccurred(), "another is not held")
		w.Expect(w.direct.Delete(t.Context(), "other", metav1.DeleteOptions{})).To(Succeed())
		_, err = w.leases.Create(t.Context(), newLease(name), metav1.CreateOptions{})
		w.Expect(err).To(HaveOccurred())
		w.Expect(apierrors.IsNotFound(held)).To(Equal(!after), "while it is held")
		_, err = w.leases.Create(t.Context(), newLease(name), metav1.CreateOptions{})
		w.Expect(apierrors.IsAlreadyExists(err)).To(Equal(after), "it stops one")
	}
	w.proxy.StopWrite(nil)
}
