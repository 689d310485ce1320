package projectstatus

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/test/controlplane"
	"github.com/phoneproof/phoneproof/test/repository"
)

var (
	plane *controlplane.ControlPlane
	admin client.Client
	// server has the rights of the role that is installed for servers, and no others.
	server *rest.Config
)

// TestStatus runs the tests of this package that need an API server, started once.
func TestStatus(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The conditions in a project's status")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	plane, err = controlplane.Start(controlplane.Options{APIServerArgs: map[string]string{"request-timeout": "12s"}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(plane.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, verifyv1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	admin, err = client.New(plane.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	server, err = plane.ServiceAccount("default", "serve")
	Expect(err).NotTo(HaveOccurred())
	// The smaller of the two roles: conditions are written with either store.
	role := &rbacv1.ClusterRole{}
	Expect(repository.Decode(role, repository.Roles, "server_postgresql_role.yaml")).To(Succeed())
	Expect(admin.Create(ctx, role)).To(Succeed())
})

// term is a controller of a project on a real API server. The test calls it directly, and plays the watch.
type term struct {
	*Controller

	key     client.ObjectKey
	project *verifyv1.VerificationProject
	current *settings.Settings
	events  []string
	writes  atomic.Int64
}

// newTerm creates a project in a namespace of its own and begins a term.
func newTerm(ctx context.Context) *term {
	GinkgoHelper()
	namespace := "test-" + strings.ToLower(rand.Text()[:12])
	Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "serve"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "phoneproof-server-postgresql"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "serve"}},
	})).To(Succeed())
	t := &term{key: client.ObjectKey{Namespace: namespace, Name: "shop"}, current: simpleSettings()}
	t.create(ctx)
	t.look(ctx)
	t.begin()
	Eventually(func() error { // the authorizer sees the binding through a watch
		return t.Client.Get(ctx, t.key, &verifyv1.VerificationProject{})
	}).WithContext(ctx).WithTimeout(30 * time.Second).Should(Succeed())
	return t
}

func (t *term) begin() {
	GinkgoHelper()
	config := rest.CopyConfig(server)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				t.writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	direct, err := client.New(config, client.Options{Scheme: admin.Scheme(), Mapper: verifyv1.Mapper()})
	Expect(err).NotTo(HaveOccurred())
	t.events = nil
	t.Controller = New(Options{
		Projects: t, Client: direct, Board: NewBoard(), Log: GinkgoLogr,
		Tell: func(_ *verifyv1.VerificationProject, c metav1.Condition, _ bool) {
			t.events = append(t.events, c.Type+" "+c.Reason)
		},
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip makes the function an http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (t *term) create(ctx context.Context) {
	GinkgoHelper()
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	Expect(admin.Create(ctx, &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.key.Namespace, Name: t.key.Name},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref("api-key")}},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: "+4915112345670", PhoneNumberID: "1234567890", RegisterWebhook: new(false),
				AccessTokenSecretRef: ref("access-token"), AppSecretRef: ref("app-secret"),
			},
		},
	})).To(Succeed())
}

// readProject reads the object, as the watch does.
func (t *term) look(ctx context.Context) *verifyv1.VerificationProject {
	GinkgoHelper()
	t.project = &verifyv1.VerificationProject{}
	Expect(admin.Get(ctx, t.key, t.project)).To(Succeed())
	return t.project
}

// countWrites reconciles and returns the number of writes.
func (t *term) steps(ctx context.Context) int64 {
	GinkgoHelper()
	before := t.writes.Load()
	pause, err := t.reconcileOnce(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(pause).To(BeZero())
	return t.writes.Load() - before
}

// Project implements Projects.
func (t *term) Project() *verifyv1.VerificationProject { return t.project }

// Current implements Projects.
func (t *term) Current() *settings.Settings { return t.current }

// Observe implements Projects and is not used.
func (*term) Observe() (changes <-chan struct{}, cancel func()) { return nil, func() {} }

// Subscribe implements Projects and is not used.
func (*term) Subscribe() (changes <-chan struct{}, cancel func()) { return nil, func() {} }

var _ = Describe("Conditions in a status", func() {
	It("belong to one field owner, beside the conditions of others", func(ctx SpecContext) {
		t := newTerm(ctx)
		foreign := metav1.Condition{
			Type: verifyv1.ConditionReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonReady,
			LastTransitionTime: metav1.NewTime(time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)),
		}
		t.project.Status.ObservedRedeliver = "a/1"
		t.project.Status.Conditions = []metav1.Condition{foreign}
		Expect(admin.Status().Update(ctx, t.project, client.FieldOwner("operator"))).To(Succeed())
		t.Board.Set(conditionTrue(verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered, ""))
		t.current.Simulated = true
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))

		status := t.look(ctx).Status
		Expect(status.ObservedRedeliver).To(Equal("a/1"))
		Expect(*meta.FindStatusCondition(status.Conditions, foreign.Type)).To(HaveField("LastTransitionTime.Time", BeTemporally("==", foreign.LastTransitionTime.Time)))
		Expect(typesOf(servedConditions(status.Conditions))).To(Equal([]string{
			verifyv1.ConditionSecretsReady, verifyv1.ConditionWhatsAppReady, verifyv1.ConditionSimulated,
		}))
		Expect(servedConditions(status.Conditions)[0].ObservedGeneration).To(BeEquivalentTo(7))
		Expect(t.events).To(Equal([]string{"Simulated SimulatorCredentials"}))
		Expect(t.steps(ctx)).To(BeZero())

		t.current.Simulated = false
		t.Board.Withdraw(verifyv1.ConditionWhatsAppReady)
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		Expect(typesOf(t.look(ctx).Status.Conditions)).To(ConsistOf(verifyv1.ConditionReady, verifyv1.ConditionSecretsReady))
		for _, entry := range t.project.ManagedFields {
			if strings.Contains(entry.FieldsV1.GetRawString(), verifyv1.ConditionSecretsReady) {
				Expect(entry.Manager).To(BeEquivalentTo(fieldOwner))
			}
		}
	})

	It("cost no write while they are unchanged, also for another leader and behind a watch that lags", func(ctx SpecContext) {
		t := newTerm(ctx)
		t.current.Problems = missing
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		for range 3 {
			Expect(t.steps(ctx)).To(BeZero(), "the watch has not brought the write")
		}
		version := t.look(ctx).ResourceVersion
		Expect(t.steps(ctx)).To(BeZero())
		t.begin()
		t.project.Status = verifyv1.VerificationProjectStatus{} // as before the write
		Expect(t.steps(ctx)).To(BeZero())
		Expect(t.events).To(BeEmpty())
		Expect(t.look(ctx).ResourceVersion).To(Equal(version))
		t.current.Problems = nil
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		Expect(t.events).To(Equal([]string{"SecretsReady SecretsRead"}))
	})

	It("never reach another object, and never create one", func(ctx SpecContext) {
		t := newTerm(ctx)
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		Expect(admin.Delete(ctx, t.look(ctx).DeepCopy())).To(Succeed())
		t.current.Problems = missing
		Expect(t.steps(ctx)).To(BeEquivalentTo(1), "the watch has not brought the deletion")
		Expect(apierrors.IsNotFound(admin.Get(ctx, t.key, &verifyv1.VerificationProject{}))).To(BeTrue())
		Expect(t.events).To(BeEmpty())

		t.create(ctx)
		Expect(t.steps(ctx)).To(BeEquivalentTo(1), "nor the new object")
		Expect(t.look(ctx).Status.Conditions).To(BeEmpty())
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		Expect(servedConditions(t.look(ctx).Status.Conditions)).To(HaveLen(1))
		Expect(t.events).To(Equal([]string{"SecretsReady SecretMissing"}))
	})

	It("are never written by a former leader", func(ctx SpecContext) {
		t := newTerm(ctx)
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		old, seen := t.Controller, t.look(ctx)
		t.begin()
		t.current.Problems = missing
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))

		t.Controller, t.project, t.current = old, seen, simpleSettings()
		t.Board.Set(conditionTrue(verifyv1.ConditionWhatsAppReady, verifyv1.ReasonRegistered, ""))
		t.events = nil
		Expect(t.steps(ctx)).To(BeEquivalentTo(1), "it tries")
		Expect(typesOf(t.look(ctx).Status.Conditions)).To(Equal([]string{verifyv1.ConditionSecretsReady}))
		Expect(t.project.Status.Conditions[0].Reason).To(Equal(verifyv1.ReasonSecretMissing))
		Expect(t.events).To(BeEmpty())
	})

	It("leave those of other field owners alone, without repeated writes", func(ctx SpecContext) {
		t := newTerm(ctx)
		t.project.Status.Conditions = []metav1.Condition{{
			Type: verifyv1.ConditionTelegramReady, Status: metav1.ConditionTrue, Reason: "Foreign", LastTransitionTime: metav1.Now(),
		}}
		Expect(admin.Status().Update(ctx, t.project, client.FieldOwner("foreign"))).To(Succeed())
		Expect(t.steps(ctx)).To(BeEquivalentTo(1))
		t.look(ctx)
		for range 3 {
			Expect(t.steps(ctx)).To(BeZero())
		}
	})
})
