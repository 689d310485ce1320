package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

// TestMapper_agreesWithTheCRDs compares the mapper, which works without discovery, with the CRDs.
func TestMapper_agreesWithTheCRDs(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../charts/phoneproof/files/crds/phoneproof.dev_*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(2))
	mapper := v1alpha1.Mapper()
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		var crd apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.UnmarshalStrict(data, &crd)).To(Succeed())
		g.Expect(crd.Spec.Versions).To(HaveLen(1))
		kind := v1alpha1.GroupVersion.WithKind(crd.Spec.Names.Kind)
		g.Expect(crd.Spec.Group).To(Equal(kind.Group))
		g.Expect(crd.Spec.Versions[0].Name).To(Equal(kind.Version))

		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(mapping.Resource).To(Equal(v1alpha1.GroupVersion.WithResource(crd.Spec.Names.Plural)))
		g.Expect(string(mapping.Scope.Name())).To(Equal("namespace"))
		g.Expect(string(crd.Spec.Scope)).To(Equal("Namespaced"))
	}
}

func TestMapper_knowsNothingElse(t *testing.T) {
	g := NewWithT(t)
	_, err := v1alpha1.Mapper().RESTMapping(v1alpha1.GroupVersion.WithKind("Secret").GroupKind())
	g.Expect(meta.IsNoMatchError(err)).To(BeTrue())
}
