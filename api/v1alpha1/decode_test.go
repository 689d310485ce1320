package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

const head = "apiVersion: phoneproof.dev/v1alpha1\nkind: VerificationProject\nmetadata: {name: shop}\n"

func TestDecodeProject_readsOneDocument(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{
		head + "spec: {projectID: a}\n",
		"---\n" + head + "spec: {projectID: a}\n---\n",
		"# a comment\n---\n" + head + "spec: {projectID: a}\nstatus: {observedGeneration: 7}\n",
		`{"apiVersion":"phoneproof.dev/v1alpha1","kind":"VerificationProject","metadata":{"name":"shop"},"spec":{"projectID":"a"}}`,
	} {
		project, err := v1alpha1.DecodeProject([]byte(text))
		g.Expect(err).NotTo(HaveOccurred(), text)
		g.Expect(project.Name).To(Equal("shop"))
		g.Expect(project.Spec.ProjectID).To(Equal("a"))
		g.Expect(project.Status).To(Equal(v1alpha1.VerificationProjectStatus{}))
	}
}

func TestDecodeProject_refuses(t *testing.T) {
	for text, message := range map[string]string{
		"":                                     "no YAML document",
		"---\n---\n# nothing\n":                "no YAML document",
		head + "---\n" + head:                  "more than one VerificationProject",
		"kind: VerificationProject\n":          "apiVersion and kind must be phoneproof.dev/v1alpha1 and VerificationProject",
		head + "spec: {image: evil}\n":         `unknown field "spec.image"`,
		head + "spec: {baseUrl: a}\n":          `unknown field "spec.baseUrl"`,
		head + "spec: {}\nspec: {}\n":          `key "spec" already set`,
		head + "spec: {suspend: 'true'}\n":     "spec.suspend",
		head + "spec: {projectID: ''}\n":       "spec.projectID: Invalid value: \"\": must not be empty; remove the field",
		head + "spec: [\n":                     "yaml",
		head + "spec: {a: *nothing}\n":         "yaml",
		"- a\n- b\n":                           "the document must be a map",
		head + "spec: {server: {replicas: a}}": "spec.server.replicas",
	} {
		_, err := v1alpha1.DecodeProject([]byte(text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)), text)
	}
}

// TestDecodeProject_names_the_field_of_a_wrong_type without the value, which may be a secret.
func TestDecodeProject_names_the_field_of_a_wrong_type(t *testing.T) {
	for spec, message := range map[string]string{
		"{whatsapp: {phoneNumber: +4915112345670}}":     "spec.whatsapp.phoneNumber: must be a text, and YAML reads a number: put it in quotes",
		"{whatsapp: {phoneNumberID: 1e5}}":              "spec.whatsapp.phoneNumberID: must be a text, and YAML reads a number: put it in quotes",
		"{displayName: yes}":                            "spec.displayName: must be a text, and YAML reads true or false (yes, no, on and off mean that, too): put it in quotes",
		"{request: {ttl: 600}}":                         "spec.request.ttl: must be a text, and YAML reads a number: put it in quotes",
		"{suspend: 'true'}":                             "spec.suspend: must be true or false, and YAML reads a text",
		"{server: {replicas: 1.5}}":                     "spec.server.replicas: must be a whole number of ordinary size, and YAML reads a number",
		"{server: {replicas: 1e12}}":                    "spec.server.replicas: must be a whole number of ordinary size, and YAML reads a number",
		"{webhook: [url]}":                              "spec.webhook: must be a map, and YAML reads a list",
		"{webhook: https://shop.example.com}":           "spec.webhook: must be a map, and YAML reads a text",
		"{apiKeys: {name: a}}":                          "spec.apiKeys: must be a list, and YAML reads a map",
		"{apiKeys: [{name: a, secretRef: s3cret}]}":     "spec.apiKeys.secretRef: must be a map, and YAML reads a text",
		"{apiKeys: [{name: [a]}]}":                      "spec.apiKeys.name: must be a text, and YAML reads a list",
		"{apiKeys: [{name: a, expiresAt: 20270101}]}":   "spec.apiKeys.expiresAt: must be a text, and YAML reads a number: put it in quotes",
		"{apiKeys: [{name: a, expiresAt: s3cret}]}":     "a time must be like 2027-01-31T10:00:00Z, in a request like 2027-01-31T10:00:00.000000Z, and a quantity like 256Mi",
		"{expose: {service: {annotations: {a: true}}}}": "spec.expose.service.annotations: must be a text, and YAML reads true or false (yes, no, on and off mean that, too): put it in quotes",
	} {
		_, err := v1alpha1.DecodeProject([]byte(head + "spec: " + spec))
		NewWithT(t).Expect(err).To(MatchError("decode VerificationProject: "+message), spec)
	}
	_, err := v1alpha1.DecodeProject([]byte(head + "spec: {displayName: null, webhook: }"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "null is not set, as for the API server")
}

func FuzzDecodeProject(f *testing.F) {
	for _, file := range []string{"testdata/full.yaml", "testdata/minimal.yaml", "testdata/project/addresses.yaml"} {
		f.Add(mustRead(file))
	}
	f.Add([]byte(head + "spec: {apiKeys: [null], webhook: {}, server: {resources: {limits: {cpu: 1e3}}}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		project, err := v1alpha1.DecodeProject(data)
		if err != nil {
			return
		}
		project.Default()
		if len(project.Validate()) > 0 {
			return
		}
		again := project.DeepCopy()
		again.Default()
		NewWithT(t).Expect(again).To(Equal(project), "Default must change nothing the second time")
		NewWithT(t).Expect(again.ValidateUpdate(project)).To(BeEmpty())
	})
}

func TestDecodeProject_errors_name_the_line(t *testing.T) {
	g := NewWithT(t)
	for _, before := range []string{"", "---\n", "# a comment\n"} {
		line := strings.Count(before, "\n") + 4
		_, err := v1alpha1.DecodeProject([]byte(before + "apiVersion: phoneproof.dev/v1alpha1\nkind: VerificationProject\nspec: {}\nspec: {}\n"))
		g.Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("line %d", line))))
	}
}
