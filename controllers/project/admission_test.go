package project

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/test/repository"
)

// warnings collects the warnings of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

func warnedClient(config *rest.Config) (client.Client, *warnings) {
	GinkgoHelper()
	w := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = w
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c, w
}

func manualRequest(namespace, project string) *verifyv1.VerificationRequest {
	return &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "by-hand-"},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: project}, PhoneNumber: "+15550100199", Method: verifyv1.MethodTelegram,
		},
	}
}

// The policies of the chart on a real API server, with a real operator.
var _ = Describe("A manual request", Ordered, func() {
	var (
		user   client.Client
		warned *warnings
	)
	// create creates a request, which succeeds, and returns the warnings.
	create := func(ctx context.Context, r *verifyv1.VerificationRequest) []string {
		GinkgoHelper()
		Expect(user.Create(ctx, r)).To(Succeed())
		return warned.take()
	}
	unserved := func(namespace, project string) []string {
		const policy = "verificationrequests-unserved.phoneproof.dev"
		return []string{"Validation failed for ValidatingAdmissionPolicy '" + policy + "' with binding '" + policy + "': " +
			"spec.projectRef.name: nothing works on requests of VerificationProject " + project + " in namespace " + namespace +
			": there is none of that name, or the operator has not taken it up yet; until it does, this request stays Pending"}
	}
	// awaitWarnings waits for the warnings of a request, because the API server sees policies and bindings through a watch.
	awaitWarnings := func(ctx context.Context, namespace, project string, want []string) {
		GinkgoHelper()
		Eventually(func() []string { return create(ctx, manualRequest(namespace, project)) }).WithContext(ctx).Should(Equal(want))
	}

	BeforeAll(func(ctx SpecContext) {
		root, err := repository.Root()
		Expect(err).NotTo(HaveOccurred())
		content, err := os.ReadFile(filepath.Join(root, "charts", "phoneproof", "files", "admission", "requests.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal(document, &object.Object)).To(Succeed())
			Expect(admin.Create(ctx, object)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, object)).To(Succeed()) })
		}
		user, warned = warnedClient(plane.Config)
		namespace := newNamespace(ctx)
		awaitWarnings(ctx, namespace, "any", unserved(namespace, "any"))
	})

	It("is accepted with a warning until the operator has reconciled its project, and without one after that", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(create(ctx, manualRequest(namespace, "shop"))).To(Equal(unserved(namespace, "shop")), "no project at all")

		project := newProject(namespace, "shop")
		Expect(admin.Create(ctx, project)).To(Succeed())
		Expect(create(ctx, manualRequest(namespace, "shop"))).To(Equal(unserved(namespace, "shop")), "the operator has not seen it")

		startSteppedOperator(ctx, operator, usual())
		deployment(ctx, project)
		awaitWarnings(ctx, namespace, "shop", nil)
		Expect(create(ctx, manualRequest(namespace, "shopp"))).To(Equal(unserved(namespace, "shopp")), "another name beside it")

		By("deleting the project, and what the garbage collector deletes with it")
		Expect(admin.Delete(ctx, project)).To(Succeed())
		Expect(admin.DeleteAllOf(ctx, &rbacv1.RoleBinding{}, client.InNamespace(namespace))).To(Succeed())
		awaitWarnings(ctx, namespace, "shop", unserved(namespace, "shop"))
	})

	It("differs from requests of the API, which are accepted without a warning", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		r := manualRequest(namespace, "shop")
		now := time.Now()
		r.Spec.Init = &verifyv1.Init{CreatedAt: metav1.NewMicroTime(now), ExpiresAt: metav1.NewMicroTime(now.Add(time.Minute))}
		Expect(create(ctx, r)).To(BeEmpty(), "even without a project")

		project := newProject(namespace, "shop")
		Expect(admin.Create(ctx, project)).To(Succeed())
		startSteppedOperator(ctx, operator, usual())
		deployment(ctx, project)
		account := asAccount(ctx, namespace, render.Name("shop"))
		awaitRights(ctx, account, namespace, ContainElement(HavePrefix("verificationrequests.")))
		serve, seen := warnedClient(account)
		r.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, GenerateName: "vr"}
		Expect(serve.Create(ctx, r)).To(Succeed(), "by the project's own ServiceAccount")
		Expect(seen.take()).To(BeEmpty())
	})

	It("is refused for a project on PostgreSQL", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		project := newProject(namespace, "shop")
		project.Spec.Storage = verifyv1.Storage{
			Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "db"}},
		}
		Expect(admin.Create(ctx, project)).To(Succeed())
		Eventually(func() error { return user.Create(ctx, manualRequest(namespace, "shop")) }).WithContext(ctx).
			Should(MatchError(ContainSubstring("keeps its requests in PostgreSQL")))
		warned.take()
	})

	It("gets no wrong warning where the children's names are shortened", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		warnsOf := []string{}
		plain := []string{}
		for _, project := range []string{
			"a", "a1", "shop", "shop-2", strings.Repeat("a", 37), strings.Repeat("a", 38), strings.Repeat("a", 39), strings.Repeat("a", 253),
			"shop.example.com", "a.b", "shop-0123456789", "0123456789", "shop-012345678", "shop-01234567890", "shop-012345678g",
		} {
			if render.Name(project) == "phoneproof-"+project {
				plain = append(plain, project)
			}
			if slices.Equal(create(ctx, manualRequest(namespace, project)), unserved(namespace, project)) {
				warnsOf = append(warnsOf, project)
			}
		}
		Expect(warnsOf).To(Equal(plain))
		Expect(len(plain)).To(BeNumerically(">=", 7))
	})
})
