package v1alpha1_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	projectCRD = "../../charts/phoneproof/files/crds/phoneproof.dev_verificationprojects.yaml"
	requestCRD = "../../charts/phoneproof/files/crds/phoneproof.dev_verificationrequests.yaml"
)

// coreFields are our fields whose content is defined by Kubernetes. We neither
// document nor limit it. conditions are metav1.Condition.
var coreFields = []string{
	"tolerations", "affinity", "topologySpreadConstraints", "ingressFrom", "metricsFrom", "conditions",
}

// forbiddenFields must not exist anywhere in a project: they would let its
// author choose code, or reach beyond the namespace.
var forbiddenFields = []string{
	"image", "command", "args", "env", "podLabels", "podAnnotations", "podTemplate", "platformURL", "namespace", "serviceAccountName",
}

// The rules of kube-api-linter that matter here, checked in the CRDs: the result
// of the markers counts.
var _ = Describe("Schema", func() {
	for _, file := range []string{projectCRD, requestCRD} {
		It("documents and bounds every field of "+file, func() {
			crd := readCRD(file)
			var wrong []string
			for _, name := range []string{"spec", "status"} {
				child := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[name]
				wrong = append(wrong, findFaults(name, name, &child)...)
			}
			Expect(wrong).To(BeEmpty(), strings.Join(wrong, "\n"))
		})

		It("serves status as a subresource, with conditions first and keyed by type, in "+file, func() {
			version := readCRD(file).Spec.Versions[0]
			Expect(version.Subresources.Status).NotTo(BeNil())
			conditions := version.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
			Expect(*conditions.XListType).To(Equal("map"))
			Expect(conditions.XListMapKeys).To(Equal([]string{"type"}))
		})

		It("shows no phone number, code or link in a column of "+file, func() {
			for _, column := range readCRD(file).Spec.Versions[0].AdditionalPrinterColumns {
				Expect(strings.ToLower(column.JSONPath)).NotTo(Or(
					ContainSubstring("phone"), ContainSubstring("number"), ContainSubstring("expectedtext"), ContainSubstring("link")),
					column.Name)
			}
		})
	}

	It("has short names, a category, columns and selectable fields", func() {
		project, request := readCRD(projectCRD), readCRD(requestCRD)
		Expect(project.Spec.Names.ShortNames).To(Equal([]string{"vproj"}))
		Expect(request.Spec.Names.ShortNames).To(Equal([]string{"vreq"}))
		Expect(project.Spec.Names.Categories).To(Equal([]string{"phoneproof"}))
		Expect(request.Spec.Names.Categories).To(Equal([]string{"phoneproof"}))
		Expect(describeColumns(project)).To(Equal("Ready Reason URL Available Age +Storage +Webhook +Message"))
		Expect(describeColumns(request)).To(Equal("Project Method Phase Delivered Age +Attempts +Next attempt +Code"))
		Expect(request.Spec.Versions[0].SelectableFields).To(Equal([]apiextensionsv1.SelectableField{
			{JSONPath: ".spec.projectRef.name"}, {JSONPath: ".status.phase"},
		}))
	})

	It("has none of the fields that a tenant must not set", func() {
		var found []string
		visitFields("spec", specSchema(projectCRD), func(path, name string, _ *apiextensionsv1.JSONSchemaProps) {
			if slices.Contains(forbiddenFields, name) {
				found = append(found, path)
			}
		})
		Expect(found).To(BeEmpty())
	})

	It("has no default within a list of a spec, which tools would take for a difference", func() {
		var found []string
		for _, file := range []string{projectCRD, requestCRD} {
			visitFields("spec", specSchema(file), func(path, _ string, s *apiextensionsv1.JSONSchemaProps) {
				if strings.Contains(path, "[]") && s.Default != nil {
					found = append(found, path)
				}
			})
		}
		Expect(found).To(BeEmpty())
	})

	It("has the same patterns as Validate", func() {
		inSchema := map[string]bool{}
		for _, file := range []string{projectCRD, requestCRD} {
			for _, r := range collectRules("spec", specSchema(file)) {
				for _, match := range regexp.MustCompile(`matches\(r'([^']*)'\)`).FindAllStringSubmatch(r.text, -1) {
					inSchema[match[1]] = true
				}
			}
		}
		Expect(v1alpha1.Patterns()).To(ConsistOf(slices.Collect(maps.Keys(inSchema))))
	})
})

func readCRD(file string) *apiextensionsv1.CustomResourceDefinition {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(mustRead(file), &crd); err != nil {
		panic(file + ": " + err.Error())
	}
	return &crd
}

func specSchema(file string) *apiextensionsv1.JSONSchemaProps {
	spec := readCRD(file).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return &spec
}

func describeColumns(crd *apiextensionsv1.CustomResourceDefinition) string {
	var names []string
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		names = append(names, strings.Repeat("+", int(column.Priority))+column.Name)
	}
	return strings.Join(names, " ")
}

// findFaults returns the problems of the field at path and of those below it.
func findFaults(path, name string, s *apiextensionsv1.JSONSchemaProps) []string {
	var wrong []string
	if !strings.HasPrefix(s.Description, name+" ") && !strings.HasPrefix(s.Description, name+", ") {
		wrong = append(wrong, fmt.Sprintf("%s: the description does not begin with %q: %.40q", path, name, s.Description))
	}
	wrong = append(wrong, findUnbounded(path, s)...)
	if slices.Contains(coreFields, name) {
		return wrong
	}
	for child, schema := range s.Properties {
		wrong = append(wrong, findFaults(path+"."+child, child, &schema)...)
	}
	if s.Items == nil {
		return wrong
	}
	wrong = append(wrong, findUnbounded(path+"[]", s.Items.Schema)...)
	for child, schema := range s.Items.Schema.Properties {
		wrong = append(wrong, findFaults(path+"[]."+child, child, &schema)...)
	}
	return wrong
}

func findUnbounded(path string, s *apiextensionsv1.JSONSchemaProps) []string {
	var wrong []string
	if (s.Type == "string" || s.XIntOrString) && s.MaxLength == nil && len(s.Enum) == 0 {
		wrong = append(wrong, path+": a string without maxLength")
	}
	if s.Type == "array" && s.MaxItems == nil {
		wrong = append(wrong, path+": a list without maxItems")
	}
	if s.Type == "integer" && s.Format != "int64" && (s.Minimum == nil || s.Maximum == nil) {
		wrong = append(wrong, path+": a number without minimum and maximum")
	}
	if extra := s.AdditionalProperties; extra != nil {
		if s.MaxProperties == nil {
			wrong = append(wrong, path+": a map without maxProperties")
		}
		wrong = append(wrong, findUnbounded(path+"{}", extra.Schema)...)
	}
	return wrong
}

// visitFields visits each of our own fields below s.
func visitFields(path string, s *apiextensionsv1.JSONSchemaProps, visit func(path, name string, s *apiextensionsv1.JSONSchemaProps)) {
	if s.Items != nil {
		visitFields(path+"[]", s.Items.Schema, visit)
	}
	for name, child := range s.Properties {
		visit(path+"."+name, name, &child)
		if !slices.Contains(coreFields, name) {
			visitFields(path+"."+name, &child, visit)
		}
	}
}
