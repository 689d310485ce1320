package v1alpha1_test

import (
	"context"
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// Every example is tested with a real API server and with Default and Validate.
// Both must agree, and accepted objects must be equal.
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

// answer is the API server's answer to an object.
type answer struct {
	object map[string]any
	err    error
}

// answers holds the answers to examples, by base object and patch.
var answers = map[string]answer{}

// sendExample returns the API server's answer to an example. Several specs share one request.
func sendExample(ctx context.Context, base string, e example) (map[string]any, error) {
	GinkgoHelper()
	patch, err := json.Marshal(e.Set)
	Expect(err).NotTo(HaveOccurred())
	key := base + " " + string(patch)
	if _, sent := answers[key]; !sent {
		object, err := createOnServer(ctx, dryNamespace, applyPatch(readObject(base), e.Set), client.DryRunAll)
		answers[key] = answer{object, err}
	}
	return answers[key].object, answers[key].err
}

func checkProject(ctx context.Context, e example) {
	const base = "testdata/minimal.yaml"
	sent := applyPatch(readObject(base), e.Set)
	answer, onServerErr := sendExample(ctx, base, e)
	if len(e.Refuse) > 0 {
		_, inGoErr := validateProjectInGo(sent)
		expectRefused(e, onServerErr, inGoErr)
		return
	}
	Expect(onServerErr).NotTo(HaveOccurred())
	expectSameInGo(sent, answer)
}

func checkRequest(ctx context.Context, e example) {
	const base = "testdata/request.yaml"
	object := applyPatch(readObject(base), e.Set)
	answer, onServerErr := sendExample(ctx, base, e)
	request, inGoErr := validateRequestInGo(object)
	if len(e.Refuse) > 0 {
		expectRefused(e, onServerErr, inGoErr)
		return
	}
	Expect(onServerErr).NotTo(HaveOccurred())
	Expect(inGoErr).NotTo(HaveOccurred())
	got := decodeAs[v1alpha1.VerificationRequest](answer)
	Expect(equality.Semantic.DeepEqual(request.Spec, got.Spec)).To(BeTrue(), cmp.Diff(request.Spec, got.Spec))
	Expect(request.Status).To(Equal(got.Status))
}

func expectSameProject(ctx context.Context, object map[string]any) {
	GinkgoHelper()
	answer, err := createOnServer(ctx, newNamespace(ctx), object)
	Expect(err).NotTo(HaveOccurred())
	expectSameLists(object, answer)
	expectSameInGo(object, answer)
}

// expectSameLists checks that the API server completed nothing within a list: a tool that compares what is applied with what is
// live, and takes a list as one value, as the deduced type does, would find a difference for ever.
func expectSameLists(object, answer map[string]any) {
	GinkgoHelper()
	sent, err := typed.DeducedParseableType.FromUnstructured(normalizeNumbers(object)["spec"])
	Expect(err).NotTo(HaveOccurred())
	live, err := typed.DeducedParseableType.FromUnstructured(answer["spec"])
	Expect(err).NotTo(HaveOccurred())
	diff, err := sent.Compare(live)
	Expect(err).NotTo(HaveOccurred())
	Expect(diff.Modified.Union(diff.Removed).String()).To(BeEmpty())
}

// expectSameInGo checks that Go produces the same object as the API server.
func expectSameInGo(object, answer map[string]any) {
	GinkgoHelper()
	project, err := validateProjectInGo(object)
	Expect(err).NotTo(HaveOccurred())
	got := decodeAs[v1alpha1.VerificationProject](answer)
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
