//go:build e2e

package e2e

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func poolSpecs() {
	It("serves two projects of a pool by the same pods, and what becomes of one leaves the other alone", func(ctx SpecContext) {
		applyFile(ctx, "pool.yaml", map[string]string{"NAMESPACE": shopNamespace, "API_KEY": firstAPIKey, "WEBHOOK_SECRET": firstSecret})
		runKubectl(ctx, "--namespace "+shopNamespace+" wait --for=condition=Ready --timeout=5m vproj/books vproj/toys")
		books, toys := newMember(ctx, "books"), newMember(ctx, "toys")
		pods := awaitPoolPods(ctx)
		for _, s := range []*shop{books, toys} {
			s.eventuallyServed(ctx)
			s.verifyNumber(ctx, "TELEGRAM")
		}
		Eventually(leaseHolder).WithContext(ctx).WithArguments(shopNamespace, "phoneproofpool-small").Should(HavePrefix(pods[0].Name))
		Expect(books.runPlugin(ctx, "status", "books")).To(ContainSubstring("small"))

		By("suspending one")
		stored := toys.initRequest(ctx, "TELEGRAM")
		runKubectl(ctx, "--namespace "+shopNamespace+" patch vproj/toys --type=merge --patch", `{"spec":{"suspend":true}}`)
		Eventually(func() error {
			_, err := toys.sendRequest(ctx, toys.http, http.MethodGet, toys.api+"/openapi.json", "", nil)
			return err
		}).WithContext(ctx).Should(HaveOccurred())
		books.verifyNumber(ctx, "TELEGRAM")
		runKubectl(ctx, "--namespace "+shopNamespace+" patch vproj/toys --type=merge --patch", `{"spec":{"suspend":false}}`)
		runKubectl(ctx, "--namespace "+shopNamespace+" wait --for=condition=Ready --timeout=5m vproj/toys")
		toys.eventuallyServed(ctx)
		toys.sendMessage(ctx, stored)
		toys.eventuallyVerified(ctx, stored)
		toys.eventuallyAccepted(ctx, stored)
		again := listPoolPods(ctx)
		Expect(again).To(HaveLen(1))
		Expect(again[0].UID).To(Equal(pods[0].UID), "no new pod")
		Expect(again[0].Status.ContainerStatuses[0].RestartCount).To(BeZero())

		By("deleting one")
		runKubectl(ctx, "--namespace "+shopNamespace+" delete vproj/toys")
		Eventually(listPoolPods).WithContext(ctx).Should(And(HaveLen(1), HaveEach(HaveField("UID", Not(Equal(pods[0].UID))))))
		runKubectl(ctx, "--namespace "+shopNamespace+" rollout status --timeout=5m deployment/phoneproofpool-small")
		books.eventuallyServed(ctx)
		books.verifyNumber(ctx, "TELEGRAM")

		By("deleting the last, with which the garbage collector deletes what they shared")
		runKubectl(ctx, "--namespace "+shopNamespace+" delete vproj/books")
		Eventually(func() ([]string, error) {
			var names []string
			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{}} {
				if err := kube.List(ctx, list, client.InNamespace(shopNamespace)); err != nil {
					return nil, err
				}
				names = append(names, namesOf(list)...)
			}
			return names, nil
		}).WithContext(ctx).ShouldNot(ContainElement(Or(HavePrefix("phoneproofpool-"), HaveSuffix("-books"), HaveSuffix("-toys"))))
		runKubectl(ctx, "--namespace "+shopNamespace+" delete secret/pool lease/phoneproofpool-small")
	})
}

// newMember returns a client of a project of the pool.
func newMember(ctx context.Context, name string) *shop {
	GinkgoHelper()
	s := newShop(ctx, shopNamespace)
	s.api = "http://" + clusterIP(ctx, shopNamespace, "phoneproof-"+name)
	return s
}

// listPoolPods returns the pods of the pool.
func listPoolPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	var pods corev1.PodList
	Expect(kube.List(ctx, &pods, client.InNamespace(shopNamespace), client.MatchingLabels{verifyv1.PoolLabel: "small"})).To(Succeed())
	return pods.Items
}

// awaitPoolPods waits until a rollout has left one pod of the pool: a project that joins a moment later than another one makes it
// replace its pod, which may still be ending when both are ready.
func awaitPoolPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	Eventually(func() []corev1.Pod {
		pods = listPoolPods(ctx)
		return pods
	}).WithContext(ctx).Should(HaveLen(1))
	return pods
}

// namesOf returns the names of the objects of a list.
func namesOf(list client.ObjectList) []string {
	GinkgoHelper()
	var names []string
	Expect(meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})).To(Succeed())
	return names
}
