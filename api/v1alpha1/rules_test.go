package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule is one CEL rule of a CRD.
type rule struct {
	text, message string
	// field is what a refusal names, with [] for every entry of a list: the field with the rule, or the one below it
	// that the rule points to.
	field string
}

// rules returns the CEL rules of s, which is at path, and of everything below it.
func rules(path string, s *apiextensionsv1.JSONSchemaProps) []rule {
	var found []rule
	for _, r := range s.XValidations {
		found = append(found, rule{text: r.Rule, message: r.Message, field: path + r.FieldPath})
	}
	for name, child := range s.Properties {
		found = append(found, rules(strings.TrimPrefix(path+"."+name, "."), &child)...)
	}
	if s.Items != nil {
		found = append(found, rules(path+"[]", s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil {
		found = append(found, rules(path+"[]", s.AdditionalProperties.Schema)...)
	}
	return found
}

// trial is what the API server made of examples: the fields that accepted
// objects had, and what it said of those that it refused.
type trial struct {
	accepted map[string]bool
	refused  []metav1.StatusCause
}

func (t *trial) note(answer map[string]any, err error) {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		t.noteFields("", answer)
	case errors.As(err, &status) && status.Status().Details != nil:
		t.refused = append(t.refused, status.Status().Details.Causes...)
	}
}

func (t *trial) noteFields(path string, value any) {
	t.accepted[path] = true
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			t.noteFields(strings.TrimPrefix(path+"."+name, "."), child)
		}
	case []any:
		for _, child := range v {
			t.noteFields(path+"[]", child)
		}
	}
}

var index = regexp.MustCompile(`\[[^]]*\]`)

// missing says what the rule still needs: an accepted object that has its
// field, and an object that it refused.
func (t *trial) missing(r rule) []string {
	var out []string
	if !t.accepted[r.field] {
		out = append(out, fmt.Sprintf("%s: no accepted example for: %s", r.field, r.message))
	}
	for _, cause := range t.refused {
		if index.ReplaceAllString(cause.Field, "[]") == r.field && strings.HasSuffix(cause.Message, ": "+r.message) {
			return out
		}
	}
	return append(out, fmt.Sprintf("%s: no refused example for: %s", r.field, r.message))
}

// Every rule needs an accepted and a refused example. Rules are distinguished by field and message, so that the rule for a
// Secret's name in one place does not stand in for the same rule in another.
var _ = Describe("Rules", func() {
	for _, kind := range []struct{ crd, base, full, examples, statuses, update string }{
		{projectCRD, "testdata/minimal.yaml", "testdata/full.yaml", "testdata/project/*.yaml", "testdata/status/project.yaml",
			`{"spec":{"projectID":"another"}}`},
		{requestCRD, "testdata/request.yaml", "testdata/request.yaml", "testdata/request/*.yaml", "testdata/status/request.yaml",
			`{"spec":{"phoneNumber":"+15550100111"}}`},
	} {
		schema := readCRD(kind.crd).Spec.Versions[0].Schema.OpenAPIV3Schema

		It("can be told apart in "+kind.crd, func() {
			seen := map[rule]bool{}
			for _, r := range rules("", schema) {
				r.text = ""
				Expect(seen).NotTo(HaveKey(r))
				seen[r] = true
			}
			Expect(seen).To(HaveLen(strings.Count(string(mustRead(kind.crd)), " rule: ")), "the walk over the schema missed some")
		})

		It("have an accepted and a refused example each in "+kind.crd, func(ctx context.Context) {
			tried := &trial{accepted: map[string]bool{}}
			for _, examples := range readExamples(kind.examples) {
				for _, e := range examples {
					tried.note(sendExample(ctx, kind.base, e))
				}
			}
			created, err := onServer(ctx, newNamespace(ctx), readObject(kind.full))
			tried.note(created, err)
			Expect(err).NotTo(HaveOccurred())
			for _, examples := range readExamples(kind.statuses) {
				for _, e := range examples {
					tried.note(patchedStatus(ctx, created, e.Set, client.DryRunAll))
				}
			}
			update := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(created)}
			err = api.Patch(ctx, update, client.RawPatch(types.MergePatchType, []byte(kind.update)), client.DryRunAll)
			tried.note(update.Object, err)

			var missing []string
			for _, r := range rules("", schema) {
				missing = append(missing, tried.missing(r)...)
			}
			Expect(missing).To(BeEmpty(), strings.Join(missing, "\n"))
		})
	}
})
