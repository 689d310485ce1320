package v1alpha1_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mutation is a full object with one field beyond or at the limit of what is
// allowed.
type mutation struct {
	title   string
	object  map[string]any
	refused bool // false: both must agree on either answer
}

// For each limit of the schema, both must refuse a value beyond it and agree on a
// value at it.
var _ = Describe("Bounds", func() {
	inGo := map[string]func(map[string]any) error{
		"testdata/full.yaml":    func(o map[string]any) error { _, err := validateProjectInGo(o); return err },
		"testdata/request.yaml": func(o map[string]any) error { _, err := validateRequestInGo(o); return err },
	}
	for file, schema := range map[string]*apiextensionsv1.JSONSchemaProps{
		"testdata/full.yaml": specSchema(projectCRD), "testdata/request.yaml": specSchema(requestCRD),
	} {
		It("are kept by both, starting from "+file, func(ctx context.Context) {
			namespace, base := newNamespace(ctx), normalizeNumbers(readObject(file))
			w := &mutator{base: base, accepts: func(o map[string]any) bool { return inGo[file](o) == nil }}
			w.mutateValue(schema, []any{"spec"})
			Expect(len(w.mutations)).To(BeNumerically(">", 20))
			for _, m := range w.mutations {
				_, onServerErr := createOnServer(ctx, namespace, m.object, client.DryRunAll)
				inGoErr := inGo[file](m.object)
				Expect(inGoErr != nil).To(Equal(onServerErr != nil), "%s: API server: %v, Go: %v", m.title, onServerErr, inGoErr)
				if m.refused {
					Expect(onServerErr).To(HaveOccurred(), m.title)
				}
			}
			GinkgoWriter.Printf("%d mutations\n", len(w.mutations))
		})
	}
})

type mutator struct {
	base      map[string]any
	accepts   func(map[string]any) bool // in Go
	mutations []mutation
}

// mutateValue adds the mutations of the value at path, which the base object must
// set, and of our own fields below it.
func (w *mutator) mutateValue(s *apiextensionsv1.JSONSchemaProps, path []any) {
	if slices.Contains(coreFields, fmt.Sprint(path[len(path)-1])) {
		if s.MaxItems != nil { // we limit the length, Kubernetes defines the entries
			w.addMutation(path, "too long", slices.Repeat(w.valueAt(path).([]any)[:1], int(*s.MaxItems)+1), true)
		}
		return
	}
	w.addMutation(path, "of another type", otherType(s), true)
	switch {
	case s.XIntOrString:
		w.addMutation(path, "too long", strings.Repeat("1", int(*s.MaxLength)+1), true)
		w.addMutation(path, "empty", "", true)
	case s.Type == "object":
		w.mutateObject(s, path)
	case s.Type == "array":
		w.mutateArray(s, path)
	case s.Type == "string":
		w.mutateString(s, path)
	case s.Type == "integer":
		w.addMutation(path, "below the minimum", int64(*s.Minimum)-1, true)
		w.addMutation(path, "at the minimum", int64(*s.Minimum), false)
		w.addMutation(path, "at the maximum", int64(*s.Maximum), false)
		w.addMutation(path, "above the maximum", int64(*s.Maximum)+1, true)
		w.addMutation(path, "far above the maximum", int64(1)<<40, true)
	}
}

func (w *mutator) mutateObject(s *apiextensionsv1.JSONSchemaProps, path []any) {
	if s.AdditionalProperties != nil {
		tooMany := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			tooMany[fmt.Sprintf("example.com/key-%d", i)] = "v"
		}
		w.addMutation(path, "with too many entries", tooMany, true)
		for key := range w.valueAt(path).(map[string]any) {
			w.addMutation(append(slices.Clone(path), key), "too long", strings.Repeat("v", int(*s.AdditionalProperties.Schema.MaxLength)+1), true)
		}
		return
	}
	w.addMutation(append(slices.Clone(path), "unknownField"), "unknown", "x", true)
	for _, name := range s.Required {
		w.addRemoval(append(slices.Clone(path), name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		if set := w.valueAt(path).(map[string]any); set[name] == nil && set[insteadOf[name]] != nil {
			continue // another entry of the list sets it
		}
		w.mutateValue(&child, append(slices.Clone(path), name))
	}
}

// insteadOf has the fields that exclude one another.
var insteadOf = map[string]string{"secretRef": "signingSecretRef", "signingSecretRef": "secretRef"}

func (w *mutator) mutateArray(s *apiextensionsv1.JSONSchemaProps, path []any) {
	entries := w.valueAt(path).([]any)
	w.addMutation(path, "with no entries", []any{}, s.MinItems != nil)
	many := make([]any, *s.MaxItems+1)
	for i := range many {
		many[i] = runtime.DeepCopyJSONValue(entries[0])
		switch entry := many[i].(type) {
		case map[string]any:
			entry["name"] = fmt.Sprintf("entry-%d", i)
		case string:
			many[i] = fmt.Sprintf("entry-%d", i)
		}
	}
	w.addMutation(path, "with as many entries as allowed", many[:*s.MaxItems], false)
	w.addMutation(path, "with too many entries", many, true)
	for i := range entries {
		w.mutateValue(s.Items.Schema, append(slices.Clone(path), i))
	}
}

func (w *mutator) mutateString(s *apiextensionsv1.JSONSchemaProps, path []any) {
	value := w.valueAt(path).(string)
	w.addMutation(path, "empty", "", true)
	w.addMutation(path, "with NUL", value+"\x00", true)
	w.addMutation(path, "a number", int64(7), true)
	if len(s.Enum) > 0 {
		w.addMutation(path, "not one of those allowed", "Bogus", true)
		return
	}
	w.addMutation(path, "of one letter", "a", false)
	for n := 1; n < int(*s.MaxLength); n *= 2 { // some rules allow less
		w.addEdges(path, n, min(2*n, int(*s.MaxLength)))
	}
	w.addMutation(path, "as long as allowed", strings.Repeat("a", int(*s.MaxLength)), false)
	w.addMutation(path, "too long", strings.Repeat("a", int(*s.MaxLength)+1), true)
	w.addMutation(path, "of three-byte characters", strings.Repeat("あ", int(*s.MaxLength)), false)
	w.addMutation(path, "cut short", value[:len(value)-1], false)
}

// addEdges adds the two lengths of a string between which Go changes its answer, if the answers to two lengths differ.
func (w *mutator) addEdges(path []any, short, long int) {
	change := func(n int) mutation {
		probe := &mutator{base: w.base}
		probe.addMutation(path, fmt.Sprintf("of %d letters", n), strings.Repeat("a", n), false)
		return probe.mutations[0]
	}
	accepted := w.accepts(change(short).object)
	if accepted == w.accepts(change(long).object) {
		return
	}
	for long-short > 1 {
		if middle := (short + long) / 2; w.accepts(change(middle).object) == accepted {
			short = middle
		} else {
			long = middle
		}
	}
	w.mutations = append(w.mutations, change(short), change(long))
}

func otherType(s *apiextensionsv1.JSONSchemaProps) any {
	if s.Type == "object" {
		return []any{"no", "list"}
	}
	return map[string]any{"no": "object"}
}

func (w *mutator) valueAt(path []any) any {
	var value any = w.base
	for _, step := range path {
		switch s := step.(type) {
		case string:
			value = value.(map[string]any)[s]
		case int:
			value = value.([]any)[s]
		}
	}
	Expect(value).NotTo(BeNil(), "the base object must set every field, but %v is unset", path)
	return value
}

func (w *mutator) addMutation(path []any, what string, value any, refused bool) {
	w.addChange(path, what, refused, func(parent map[string]any, name string) { parent[name] = value })
}

func (w *mutator) addRemoval(path []any) {
	w.addChange(path, "missing", true, func(parent map[string]any, name string) { delete(parent, name) })
}

func (w *mutator) addChange(path []any, what string, refused bool, change func(map[string]any, string)) {
	object := runtime.DeepCopyJSON(w.base)
	var at any = object
	for i, step := range path {
		last := i == len(path)-1
		switch s := step.(type) {
		case string:
			if last {
				change(at.(map[string]any), s)
				break
			}
			at = at.(map[string]any)[s]
		case int:
			if last { // replace the entry of a list through a temporary map
				box := map[string]any{"entry": at.([]any)[s]}
				change(box, "entry")
				at.([]any)[s] = box["entry"]
				break
			}
			at = at.([]any)[s]
		}
	}
	w.mutations = append(w.mutations, mutation{title: fmt.Sprint(path) + " " + what, object: object, refused: refused})
}
