package v1alpha1_test

import (
	"context"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Every example runs through a real API server and through Default and
// Validate; both must agree, and accepted objects must come out equal.
var _ = Describe("Examples", func() {
	for file, examples := range readExamples("testdata/project/*.yaml") {
		Context(file, func() {
			for _, e := range examples {
				It(e.It, func(ctx context.Context) { checkProject(ctx, e) })
			}
		})
	}
	for file, examples := range readExamples("testdata/request/*.yaml") {
		Context("request/"+file, func() {
			for _, e := range examples {
				It(e.It, func(ctx context.Context) { checkRequest(ctx, e) })
			}
		})
	}

	It("accepts every field at once, and completes it alike", func(ctx context.Context) {
		expectSameProject(ctx, readObject("testdata/full.yaml"))
	})
})

func checkProject(ctx context.Context, e example) {
	object := patched(readObject("testdata/minimal.yaml"), e.Set)
	if len(e.Refuse) == 0 {
		expectSameProject(ctx, object)
		return
	}
	_, onServerErr := onServer(ctx, newNamespace(ctx), object)
	_, inGoErr := projectInGo(object)
	expectRefused(e, onServerErr, inGoErr)
}

func checkRequest(ctx context.Context, e example) {
	object := patched(readObject("testdata/request.yaml"), e.Set)
	answer, onServerErr := onServer(ctx, newNamespace(ctx), object)
	request, inGoErr := requestInGo(object)
	if len(e.Refuse) > 0 {
		expectRefused(e, onServerErr, inGoErr)
		return
	}
	Expect(onServerErr).NotTo(HaveOccurred())
	Expect(inGoErr).NotTo(HaveOccurred())
	got := typed[v1alpha1.VerificationRequest](answer)
	Expect(equality.Semantic.DeepEqual(request.Spec, got.Spec)).To(BeTrue(), cmp.Diff(request.Spec, got.Spec))
	Expect(request.Status).To(Equal(got.Status))
}

func expectSameProject(ctx context.Context, object map[string]any) {
	GinkgoHelper()
	answer, err := onServer(ctx, newNamespace(ctx), object)
	Expect(err).NotTo(HaveOccurred())
	project, err := projectInGo(object)
	Expect(err).NotTo(HaveOccurred())
	got := typed[v1alpha1.VerificationProject](answer)
	Expect(equality.Semantic.DeepEqual(project.Spec, got.Spec)).To(BeTrue(), cmp.Diff(project.Spec, got.Spec))
	Expect(project.Status).To(Equal(got.Status))
}

func expectRefused(e example, onServerErr, inGoErr error) {
	GinkgoHelper()
	Expect(onServerErr).To(HaveOccurred(), "the API server accepted it")
	Expect(inGoErr).To(HaveOccurred(), "Validate accepted it")
	goSays := e.Refuse
	if len(e.GoSays) > 0 {
		goSays = e.GoSays
	}
	for _, text := range e.Refuse {
		Expect(onServerErr.Error()).To(ContainSubstring(text), "the API server's message")
	}
	for _, text := range goSays {
		Expect(inGoErr.Error()).To(ContainSubstring(text), "Validate's message")
	}
}
