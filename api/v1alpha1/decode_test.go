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
		"- a\n- b\n":                           "cannot unmarshal array",
		head + "spec: {server: {replicas: a}}": "spec.server.replicas",
	} {
		_, err := v1alpha1.DecodeProject([]byte(text))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)), text)
	}
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
