//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// theShop is the project of most specs; the first one opens it.
var theShop *shop

func installSpecs() {
	It("installs, and runs where the restricted Pod Security level is enforced", func(ctx SpecContext) {
		kubectl(ctx, "create namespace "+releaseNamespace)
		kubectl(ctx, "label namespace "+releaseNamespace+" pod-security.kubernetes.io/enforce=restricted")
		Eventually(func() error {
			_, err := run(ctx, "kubectl", "--namespace", releaseNamespace, "run", "careless", "--image="+image)
			return err
		}).WithContext(ctx).Should(MatchError(ContainSubstring("violates PodSecurity")), "or the level is not enforced at all")

		helm4.install(ctx, previousChart(ctx), image, "--set", "admin.simulatorURL=http://simulator.shop.svc:8090")
		kubectl(ctx, "wait --for=condition=Established crd/verificationprojects.phoneproof.dev crd/verificationrequests.phoneproof.dev")

		theShop = openShop(ctx, shopNamespace, "4915112345670", "ada_books_bot")
		Expect(theShop.pods(ctx)).To(HaveLen(2))
	})

	It("sends nothing to a receiver inside the cluster that no administrator allowed", func(ctx SpecContext) {
		r := theShop.init(ctx, "WHATSAPP")
		theShop.send(ctx, r)
		theShop.eventuallyVerified(ctx, r)
		Eventually(func(g Gomega) {
			stored, err := stored(ctx, r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stored.Status.Delivery).NotTo(BeNil())
			g.Expect(stored.Status.Delivery.LastReason).To(Equal("blocked_address"))
			p, err := project(ctx, shopNamespace)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(p.Status.Conditions).To(ContainElement(And(HaveField("Type", verifyv1.ConditionWebhookHealthy),
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", verifyv1.ReasonAddressRefused))))
		}).WithContext(ctx).Should(Succeed())
		Expect(theShop.events(ctx, r.ID)).To(BeEmpty())
	})

	It("upgrades chart, operator and every server, without a failed request", func(ctx SpecContext) {
		load := theShop.load(ctx)
		image = nextImage(ctx)
		helm4.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml")
		kubectl(ctx, "--namespace "+shopNamespace+" wait --timeout=3m deployment/phoneproof-shop --for",
			"jsonpath={.spec.template.spec.containers[0].image}="+image)
		kubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=3m deployment/phoneproof-shop")
		eventuallyReady(ctx, shopNamespace)
		load.keepsOn(ctx)
		// Until it is gone, the old leader may deliver by the old rules.
		Eventually(theShop.pods).WithContext(ctx).Should(And(HaveLen(2), HaveEach(HaveField("Spec.Containers",
			ContainElement(HaveField("Image", image))))))
		Expect(load.end()).To(BeEmpty())
	})
}

// previousChart returns the chart of the last release, or today's before there is one.
func previousChart(ctx context.Context) string {
	GinkgoHelper()
	tag, err := run(ctx, "git", "describe", "--tags", "--abbrev=0", "--match=v*")
	if err != nil {
		AddReportEntry("upgrade from an earlier release", "NOT PROVEN: there is none yet, so it begins with today's chart")
		return "charts/phoneproof"
	}
	dir := GinkgoT().TempDir()
	archive := filepath.Join(dir, "chart.tar")
	_, err = run(ctx, "git", "archive", "--output", archive, strings.TrimSpace(tag), "charts/phoneproof")
	Expect(err).NotTo(HaveOccurred())
	_, err = run(ctx, "tar", "-C", dir, "-xf", archive)
	Expect(err).NotTo(HaveOccurred())
	return filepath.Join(dir, "charts", "phoneproof")
}

// nextImage packs the same program under another name, as a new version would come.
func nextImage(ctx context.Context) string {
	GinkgoHelper()
	next := image + "-next"
	archive := filepath.Join(GinkgoT().TempDir(), "next.tar")
	_, err := run(ctx, "hack/image.sh", "Dockerfile", ".", "linux/"+runtime.GOARCH, next, archive, "VERSION=next")
	Expect(err).NotTo(HaveOccurred())
	_, err = run(ctx, "hack/cluster.sh", "load", archive)
	Expect(err).NotTo(HaveOccurred())
	return next
}

func removalSpecs() {
	It("keeps CRDs, projects and their service when it is uninstalled, and takes them up again when it is back", func(ctx SpecContext) {
		helm4.run(ctx, "uninstall", "phoneproof", "--wait")
		expectRemoved(ctx)
		_, err := project(ctx, shopNamespace)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "--namespace "+shopNamespace+" get deployment/phoneproof-shop service/phoneproof-shop")
		theShop.verify(ctx, "WHATSAPP")

		helm3.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml")
		eventuallyReady(ctx, shopNamespace)
		theShop.verify(ctx, "WHATSAPP")
	})

	It("collects everything that a project had when it is deleted", func(ctx SpecContext) {
		pending := theShop.init(ctx, "WHATSAPP")
		_, err := stored(ctx, pending)
		Expect(err).NotTo(HaveOccurred())

		kubectl(ctx, "--namespace "+shopNamespace+" delete vproj/shop --timeout=2m")
		Eventually(func(g Gomega) {
			left := kubectl(ctx, "--namespace "+shopNamespace+" get --output=name "+
				"verificationrequests,deployments,services,serviceaccounts,rolebindings,pods,networkpolicies,leases")
			for name := range strings.FieldsSeq(left) {
				g.Expect(name).NotTo(Or(ContainSubstring("phoneproof-shop"), ContainSubstring("verificationrequest")))
			}
		}).WithContext(ctx).Should(Succeed())
	})

	It("is upgraded and uninstalled by Helm 3 too, which installed it the second time", func(ctx SpecContext) {
		helm3.install(ctx, "charts/phoneproof", image, "--values", "test/e2e/testdata/values.yaml", "--set", "operator.replicas=1")
		operator, err := clientset.AppsV1().Deployments(releaseNamespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(operator.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		helm3.run(ctx, "uninstall", "phoneproof", "--wait")
		expectRemoved(ctx)
	})
}

// expectRemoved looks that the operator is gone and the CRDs are not.
func expectRemoved(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "get crd verificationprojects.phoneproof.dev verificationrequests.phoneproof.dev")
	_, err := clientset.AppsV1().Deployments(releaseNamespace).Get(ctx, "phoneproof-operator", metav1.GetOptions{})
	Expect(err).To(Satisfy(apierrors.IsNotFound))
}

// golden compares a text with a file of testdata; UPDATE_GOLDENS=1 writes it.
func golden(file, text string) {
	GinkgoHelper()
	path := filepath.Join("testdata", file)
	if os.Getenv("UPDATE_GOLDENS") != "" {
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)), fmt.Sprintf("%s; UPDATE_GOLDENS=1 make e2e writes it anew", path))
}
