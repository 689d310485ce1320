package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/apply"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

var _ = Describe("With a cache of labelled objects alone", func() {
	It("a steady project costs no request at all", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		requests := w.useCache(ctx)

		By("creating the children")
		children := len(render.Project(w.project, w.options).List())
		_, writes := w.apply(ctx)
		Expect(writes).To(Equal(children))

		By("waiting until the cache shows them")
		Eventually(func(g Gomega) {
			_, writes := w.apply(ctx)
			g.Expect(writes).To(BeZero())
		}).WithTimeout(timeout).Should(Succeed())

		requests.reset()
		result, _ := w.apply(ctx)
		Expect(result).To(Equal(apply.Result{}))
		Expect(requests.all()).To(BeEmpty())
	})

	It("a foreign object without the label is a conflict", func(ctx SpecContext) {
		w := newAppliedProject(ctx, everything())
		taken := w.takeNames(ctx, kinds, unlabelled)
		w.useCache(ctx)
		result, _ := w.apply(ctx)
		expectUntouched(ctx, taken)
		Expect(result.Applied).To(BeEmpty())
		Expect(append(result.Conflicts, result.Waiting...)).To(HaveLen(len(taken)))
	})
})

// useCache makes the applier read from a cache like the operator's. It returns the counter of all later requests, without those
// of the cache itself.
func (w *appliedProject) useCache(ctx context.Context) *writes {
	GinkgoHelper()
	labelled, err := labels.NewRequirement(verifyv1.ProjectLabel, selection.Exists, nil)
	Expect(err).NotTo(HaveOccurred())
	reader, err := cache.New(operator, cache.Options{
		DefaultLabelSelector: labels.NewSelector().Add(*labelled),
		DefaultNamespaces:    map[string]cache.Config{w.project.Namespace: {}},
	})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer GinkgoRecover()
		Expect(reader.Start(running)).To(Succeed())
	}()
	DeferCleanup(func() { stop(); <-ended })
	for _, object := range apply.Objects(true) {
		_, err := reader.GetInformer(ctx, object)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(reader.WaitForCacheSync(ctx)).To(BeTrue())

	all := &writes{reads: true}
	config := rest.CopyConfig(operator)
	config.Wrap(w.writes.count)
	config.Wrap(all.count)
	w.applier.Client, err = client.New(config, client.Options{Cache: &client.CacheOptions{Reader: reader, Unstructured: true}})
	Expect(err).NotTo(HaveOccurred())
	w.applier.Live, err = client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return all
}
