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

// mutation is a full object with one thing wrong, or with one thing at the edge
// of what is allowed.
type mutation struct {
	what    string
	object  map[string]any
	refused bool // false: either answer will do, as long as both give it
}

// Every bound of the schema, one at a time: beyond it both must refuse, at its
// edge both must agree.
var _ = Describe("Bounds", func() {
	inGo := map[string]func(map[string]any) error{
		"testdata/full.yaml":    func(o map[string]any) error { _, err := projectInGo(o); return err },
		"testdata/request.yaml": func(o map[string]any) error { _, err := requestInGo(o); return err },
	}
	for file, schema := range map[string]*apiextensionsv1.JSONSchemaProps{
		"testdata/full.yaml": specSchema(projectCRD), "testdata/request.yaml": specSchema(requestCRD),
	} {
		It("are kept by both, starting from "+file, func(ctx context.Context) {
			namespace, base := newNamespace(ctx), normal(readObject(file))
			w := &mutator{base: base}
			w.walk(schema, []any{"spec"})
			Expect(len(w.mutations)).To(BeNumerically(">", 20))
			for _, m := range w.mutations {
				_, onServerErr := onServer(ctx, namespace, m.object, client.DryRunAll)
				inGoErr := inGo[file](m.object)
				Expect(inGoErr != nil).To(Equal(onServerErr != nil), "%s: API server: %v, Go: %v", m.what, onServerErr, inGoErr)
				if m.refused {
					Expect(onServerErr).To(HaveOccurred(), m.what)
				}
			}
			GinkgoWriter.Printf("%d mutations\n", len(w.mutations))
		})
	}
})

type mutator struct {
	base      map[string]any
	mutations []mutation
}

// walk adds the mutations of the value at path, which the base object has set,
// and of everything below it that is our own.
func (w *mutator) walk(s *apiextensionsv1.JSONSchemaProps, path []any) {
	if slices.Contains(coreFields, fmt.Sprint(path[len(path)-1])) {
		if s.MaxItems != nil { // the length is ours, what the entries hold is Kubernetes' business
			w.add(path, "too long", slices.Repeat(w.get(path).([]any)[:1], int(*s.MaxItems)+1), true)
		}
		return
	}
	w.add(path, "of another type", otherType(s), true)
	switch {
	case s.XIntOrString:
		w.add(path, "too long", strings.Repeat("1", int(*s.MaxLength)+1), true)
		w.add(path, "empty", "", true)
	case s.Type == "object":
		w.walkObject(s, path)
	case s.Type == "array":
		w.walkArray(s, path)
	case s.Type == "string":
		w.walkString(s, path)
	case s.Type == "integer":
		w.add(path, "below the minimum", int64(*s.Minimum)-1, true)
		w.add(path, "at the minimum", int64(*s.Minimum), false)
		w.add(path, "at the maximum", int64(*s.Maximum), false)
		w.add(path, "above the maximum", int64(*s.Maximum)+1, true)
		w.add(path, "far above the maximum", int64(1)<<40, true)
	}
}

func (w *mutator) walkObject(s *apiextensionsv1.JSONSchemaProps, path []any) {
	if s.AdditionalProperties != nil {
		tooMany := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			tooMany[fmt.Sprintf("example.com/key-%d", i)] = "v"
		}
		w.add(path, "with too many entries", tooMany, true)
		for key := range w.get(path).(map[string]any) {
			w.add(append(slices.Clone(path), key), "too long", strings.Repeat("v", int(*s.AdditionalProperties.Schema.MaxLength)+1), true)
		}
		return
	}
	w.add(append(slices.Clone(path), "unknownField"), "unknown", "x", true)
	for _, name := range s.Required {
		w.remove(append(slices.Clone(path), name))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		w.walk(&child, append(slices.Clone(path), name))
	}
}

func (w *mutator) walkArray(s *apiextensionsv1.JSONSchemaProps, path []any) {
	entries := w.get(path).([]any)
	w.add(path, "with no entries", []any{}, s.MinItems != nil)
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
	w.add(path, "with as many entries as allowed", many[:*s.MaxItems], false)
	w.add(path, "with too many entries", many, true)
	for i := range entries {
		w.walk(s.Items.Schema, append(slices.Clone(path), i))
	}
}

func (w *mutator) walkString(s *apiextensionsv1.JSONSchemaProps, path []any) {
	value := w.get(path).(string)
	w.add(path, "empty", "", true)
	w.add(path, "with NUL", value+"\x00", true)
	w.add(path, "a number", int64(7), true)
	if len(s.Enum) > 0 {
		w.add(path, "not one of those allowed", "Bogus", true)
		return
	}
	for n := int64(1); n <= *s.MaxLength+1; n *= 2 { // the length that rules allow is shorter for some
		w.add(path, fmt.Sprintf("of %d letters", n), strings.Repeat("a", int(n)), false)
	}
	w.add(path, "as long as allowed", strings.Repeat("a", int(*s.MaxLength)), false)
	w.add(path, "too long", strings.Repeat("a", int(*s.MaxLength)+1), true)
	w.add(path, "of three-byte characters", strings.Repeat("あ", int(*s.MaxLength)), false)
	w.add(path, "cut short", value[:len(value)-1], false)
}

func otherType(s *apiextensionsv1.JSONSchemaProps) any {
	if s.Type == "object" {
		return []any{"no", "list"}
	}
	return map[string]any{"no": "object"}
}

func (w *mutator) get(path []any) any {
	var value any = w.base
	for _, step := range path {
		switch s := step.(type) {
		case string:
			value = value.(map[string]any)[s]
		case int:
			value = value.([]any)[s]
		}
	}
	Expect(value).NotTo(BeNil(), "the base object must set every field, and %v is unset", path)
	return value
}

func (w *mutator) add(path []any, what string, value any, refused bool) {
	w.change(path, what, refused, func(parent map[string]any, name string) { parent[name] = value })
}

func (w *mutator) remove(path []any) {
	w.change(path, "missing", true, func(parent map[string]any, name string) { delete(parent, name) })
}

func (w *mutator) change(path []any, what string, refused bool, change func(map[string]any, string)) {
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
			if last { // an entry of a list is replaced through a map of one
				box := map[string]any{"entry": at.([]any)[s]}
				change(box, "entry")
				at.([]any)[s] = box["entry"]
				break
			}
			at = at.([]any)[s]
		}
	}
	w.mutations = append(w.mutations, mutation{what: fmt.Sprint(path) + " " + what, object: object, refused: refused})
}
