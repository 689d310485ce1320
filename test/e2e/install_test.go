//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// theShop is the project of most specs; the first one creates it.
var theShop *shop

func installSpecs() {
	It("installs, and runs where the restricted Pod Security level is enforced", func(ctx SpecContext) {
		runKubectl(ctx, "create namespace "+releaseNamespace)
		runKubectl(ctx, "label namespace "+releaseNamespace+" pod-security.kubernetes.io/enforce=restricted")
		Eventually(func() error {
			_, err := run(ctx, "kubectl", "--namespace", releaseNamespace, "run", "careless", "--image="+image)
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring("violates PodSecurity")), "the level must be enforced")

		helm4.install(ctx, baseChart, baseImage, "--set", "admin.simulatorURL=http://simulator.shop.svc:8090")
		runKubectl(ctx, "wait --for=condition=Established crd/verificationprojects.phoneproof.dev crd/verificationrequests.phoneproof.dev")

		theShop = openShop(ctx, shopNamespace, "4915112345670", "ada_books_bot")
		Expect(theShop.listPods(ctx)).To(HaveLen(2))
	})

	It("sends nothing to a receiver inside the cluster unless an administrator allows it", func(ctx SpecContext) {
		r := theShop.initRequest(ctx, "WHATSAPP")
		theShop.sendMessage(ctx, r)
		theShop.eventuallyVerified(ctx, r)
		Eventually(func(g Gomega) {
			stored, err := readRequest(ctx, r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stored.Status.Delivery).NotTo(BeNil())
			g.Expect(stored.Status.Delivery.LastReason).To(Equal("blocked_address"))
			p, err := readProject(ctx, shopNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionWebhookHealthy),
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", verifyv1.ReasonAddressRefused))))
		}).WithContext(ctx).Should(Succeed())
		Expect(theShop.listEvents(ctx, r.ID)).To(BeEmpty())
	})

	It("upgrades chart, operator and every server from the last release, without a failed request", func(ctx SpecContext) {
		stored := []request{theShop.initRequest(ctx, "WHATSAPP"), theShop.initRequest(ctx, "TELEGRAM")}
		load := theShop.startLoad(ctx)
		helm4.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml")
		theShop.awaitRollout(ctx, image)
		load.awaitMore(ctx)
		Expect(load.stop()).To(BeEmpty())
		for _, r := range stored {
			theShop.sendMessage(ctx, r)
			theShop.eventuallyVerified(ctx, r)
			theShop.eventuallyAccepted(ctx, r)
		}
	})
}

func removalSpecs() {
	It("keeps CRDs, projects and their service when it is uninstalled, and manages them again when it is reinstalled", func(ctx SpecContext) {
		helm4.run(ctx, "uninstall", "phoneproof", "--wait")
		expectRemoved(ctx)
		_, err := readProject(ctx, shopNamespace)
		Expect(err).NotTo(HaveOccurred())
		runKubectl(ctx, "--namespace "+shopNamespace+" get deployment/phoneproof-shop service/phoneproof-shop")
		theShop.verifyNumber(ctx, "WHATSAPP")

		helm3.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml")
		patchProject(ctx, shopNamespace, `{"spec":{"displayName":"Ada's Books"}}`)
		eventuallyReady(ctx, shopNamespace) // only an operator records the new generation
		theShop.verifyNumber(ctx, "WHATSAPP")
	})

	It("collects everything that a project had when it is deleted", func(ctx SpecContext) {
		pending := theShop.initRequest(ctx, "WHATSAPP")
		_, err := readRequest(ctx, pending)
		Expect(err).NotTo(HaveOccurred())

		runKubectl(ctx, "--namespace "+shopNamespace+" delete vproj/shop --timeout=5m")
		Eventually(func(g Gomega) {
			left := runKubectl(ctx, "--namespace "+shopNamespace+" get --output=name "+
				"verificationrequests,deployments,services,serviceaccounts,rolebindings,pods,networkpolicies,leases")
			for name := range strings.FieldsSeq(left) {
				g.Expect(name).NotTo(Or(ContainSubstring("phoneproof-shop"), ContainSubstring("verificationrequest")))
			}
		}).WithContext(ctx).Should(Succeed())
	})

	It("is upgraded and uninstalled by Helm 3, too, which installed it the second time", func(ctx SpecContext) {
		helm3.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml", "--set", "operator.replicas=1")
		operator, err := clientset.AppsV1().Deployments(releaseNamespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(operator.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		helm3.run(ctx, "uninstall", "phoneproof", "--wait")
		expectRemoved(ctx)
	})
}

// expectRemoved checks that the operator is gone and that the CRDs remain.
func expectRemoved(ctx context.Context) {
	GinkgoHelper()
	runKubectl(ctx, "get crd verificationprojects.phoneproof.dev verificationrequests.phoneproof.dev")
	_, err := clientset.AppsV1().Deployments(releaseNamespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
	Expect(err).To(Satisfy(apierrors.IsNotFound))
}

// compareGolden compares a text with a file of testdata; UPDATE_GOLDENS=1 writes it.
func compareGolden(file, text string) {
	GinkgoHelper()
	path := filepath.Join("testdata", file)
	if os.Getenv("UPDATE_GOLDENS") != "" {
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)), fmt.Sprintf("%s; UPDATE_GOLDENS=1 make e2e rewrites it", path))
}
