package v1alpha1_test

import (
	"context"
	"encoding/json"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// These examples are not tested in Go: only the API server checks a status,
// and only PhoneProof writes it.
var _ = Describe("Examples of a status", func() {
	for file, base := range map[string]string{
		"testdata/status/project.yaml": "testdata/minimal.yaml", "testdata/status/request.yaml": "testdata/request.yaml",
	} {
		Context(file, func() {
			for _, e := range readExamples(file)[filepath.Base(file)] {
				It(e.It, func(ctx context.Context) {
					created, err := createOnServer(ctx, newNamespace(ctx), readObject(base))
					Expect(err).NotTo(HaveOccurred())
					checkStatus(ctx, created, e)
				})
			}
		})
	}
})

func checkStatus(ctx context.Context, created map[string]any, e example) {
	GinkgoHelper()
	answer, err := patchStatus(ctx, created, e.Set)
	for _, text := range e.Refuse {
		Expect(err).To(MatchError(ContainSubstring(text)))
	}
	if len(e.Refuse) > 0 {
		return
	}
	Expect(err).NotTo(HaveOccurred())
	set := normalizeNumbers(map[string]any{"kind": answer["kind"], "status": e.Set})["status"].(map[string]any)
	Expect(mergePatch(answer["status"], set)).To(Equal(answer["status"]), "what was set is there")
	switch answer["kind"] {
	case v1alpha1.VerificationProjectKind:
		decodeAs[v1alpha1.VerificationProject](answer)
	case v1alpha1.VerificationRequestKind:
		decodeAs[v1alpha1.VerificationRequest](answer)
	}
}

// patchStatus applies an RFC 7386 patch to the status subresource of an existing object and returns the API server's answer.
func patchStatus(
	ctx context.Context, created, patch map[string]any, opts ...client.SubResourcePatchOption,
) (map[string]any, error) {
	GinkgoHelper()
	content, err := json.Marshal(map[string]any{"status": patch})
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(created)}
	err = api.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, content), opts...)
	return object.Object, err
}
