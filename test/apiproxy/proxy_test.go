package apiproxy_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
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

// fixture is a proxy of a real API server that breaks calls about leases.
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

// readHolder returns the holder of a lease on the API server, and reports whether it has the lease.
func (w *fixture) readHolder(ctx context.Context, name string) (holder string, stored bool) {
	l, err := w.direct.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", false
	}
	w.Expect(err).NotTo(HaveOccurred())
	if l.Spec.HolderIdentity == nil {
		return "", true
	}
	return *l.Spec.HolderIdentity, true
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
	t.Run("failsWrites", w.testFailsWrites)
	t.Run("meetsConflicts", w.testMeetsConflicts)
	t.Run("cutsTheWholeConnection", w.testCutsTheWholeConnection)
	t.Run("lagsBehind", w.testLagsBehind)
	t.Run("repeatsOldStates", w.testRepeatsOldStates)
	t.Run("repeatsWhatIsKnown", w.testRepeatsWhatIsKnown)
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
	w.Expect(w.proxy.Spoiled()).To(BeEmpty())
}

func (w *fixture) testFailsWrites(t *testing.T) {
	for name, c := range map[string]struct {
		how    apiproxy.Spoiling
		stored bool
		// status reports whether the client gets a response instead of the end of its connection.
		status bool
	}{
		"fail-before": {apiproxy.FailBefore, false, true},
		"fail-after":  {apiproxy.FailAfter, true, true},
		"cut-before":  {apiproxy.CutBefore, false, false},
		"cut-after":   {apiproxy.CutAfter, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			before := w.proxy.Spoiled().Of("create")
			w.proxy.Spoil(c.how, 2)
			codes := map[int32]bool{}
			for _, suffix := range []string{"-1", "-2", "-3", "-4", "-5", "-6", "-7", "-8"} {
				_, err := w.leases.Create(ctx, newLease(name+suffix), metav1.CreateOptions{})
				_, stored := w.readHolder(ctx, name+suffix)
				if err == nil {
					g.Expect(stored).To(BeTrue())
					continue
				}
				g.Expect(stored).To(Equal(c.stored), "%s", suffix)
				status := apierrors.APIStatus(nil)
				g.Expect(errors.As(err, &status)).To(Equal(c.status), "%v", err)
				if c.status {
					codes[status.Status().Code] = true
				}
			}
			g.Expect(w.proxy.Spoiled().Of("create")-before).To(Equal(4), "every second one")
			if c.status {
				g.Expect(codes).To(And(HaveKey(int32(500)), HaveKey(int32(504))))
			}

			// A refusal of the API server is forwarded, because nothing was stored.
			w.proxy.Spoil(c.how, 1)
			if c.stored {
				_, err := w.leases.Create(ctx, newLease(name+"-1"), metav1.CreateOptions{})
				g.Expect(err).To(Satisfy(apierrors.IsAlreadyExists))
			}
			w.proxy.Spoil(apiproxy.Nothing, 0)
			g.Expect(w.setHolder(ctx, w.leases, name+"-1", "ada")).To(Succeed())
			w.proxy.Spoil(c.how, 1)
			g.Expect(w.setHolder(ctx, w.leases, name+"-1", "bob")).NotTo(Succeed())
			holder, _ := w.readHolder(ctx, name+"-1")
			g.Expect(holder).To(Equal(map[bool]string{true: "bob", false: "ada"}[c.stored]))
			g.Expect(w.leases.Delete(ctx, name+"-1", metav1.DeleteOptions{})).NotTo(Succeed())
			_, stored := w.readHolder(ctx, name+"-1")
			g.Expect(stored).NotTo(Equal(c.stored))
			w.proxy.Spoil(apiproxy.Nothing, 0)
		})
	}
}

func (w *fixture) testMeetsConflicts(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	w.proxy.Spoil(apiproxy.Conflict, 2)
	defer w.proxy.Spoil(apiproxy.Nothing, 0)
	_, err := w.leases.Create(ctx, newLease("contested"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "only updates conflict")
	g.Expect(w.setHolder(ctx, w.leases, "contested", "ada")).To(Succeed())
	g.Expect(w.setHolder(ctx, w.leases, "contested", "bob")).To(Satisfy(apierrors.IsConflict))
	holder, _ := w.readHolder(ctx, "contested")
	g.Expect(holder).To(Equal("ada"))
	g.Expect(w.setHolder(ctx, w.leases, "contested", "bob")).To(Succeed())
}

func (w *fixture) testCutsTheWholeConnection(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	watch, err := w.leases.Watch(ctx, metav1.ListOptions{TimeoutSeconds: new(int64(600))})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	w.proxy.Spoil(apiproxy.CutBefore, 1)
	_, err = w.leases.Create(ctx, newLease("never"), metav1.CreateOptions{})
	w.proxy.Spoil(apiproxy.Nothing, 0)
	g.Expect(err).To(HaveOccurred())
	ended := make(chan struct{})
	go func() { // ends with the watch
		defer close(ended)
		for range watch.ResultChan() {
		}
	}()
	g.Eventually(ended).WithTimeout(patience).Should(BeClosed(), "calls on the same connection end, too")
}

// TestProxy_withdraws withdraws an order while a write that it chose is in flight: Spoil returns only after that write ended.
func TestProxy_withdraws(t *testing.T) {
	g := NewWithT(t)
	arrived, store := make(chan struct{}), make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-store
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	release := sync.OnceFunc(func() { close(store) })
	t.Cleanup(release)
	config := &rest.Config{Host: server.URL}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy, err := apiproxy.Listen(config, "leases", func(address string) string { return "client at " + address })
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(proxy.Close)
	config.Host, config.CAData = "https://"+proxy.Address, proxy.CA
	leases := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(namespace)

	proxy.Spoil(apiproxy.CutAfter, 1)
	ended := make(chan error, 1)
	go func() { // ends with the write
		_, err := leases.Create(context.WithoutCancel(t.Context()), newLease("slow"), metav1.CreateOptions{})
		ended <- err
	}()
	g.Eventually(arrived).WithTimeout(patience).Should(Receive())
	withdrawn := make(chan int, 1)
	go func() { // ends with the write
		proxy.Spoil(apiproxy.Nothing, 0)
		withdrawn <- proxy.Spoiled().Of(apiproxy.Create)
	}()
	g.Consistently(withdrawn).WithTimeout(200 * time.Millisecond).ShouldNot(Receive())
	release()
	g.Eventually(withdrawn).WithTimeout(patience).Should(Receive(Equal(1)))
	g.Eventually(ended).WithTimeout(patience).Should(Receive(HaveOccurred()))
	for hit := range proxy.Spoiled() {
		g.Expect(hit.Client).To(HavePrefix("client at 127.0.0.1:"))
	}
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
