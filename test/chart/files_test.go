package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var _ = Describe("Files of the chart", func() {
	It("have a schema with the same values as values.yaml", func() {
		var schema, values map[string]any
		parseFile("charts/phoneproof/values.schema.json", &schema)
		parseFile("charts/phoneproof/values.yaml", &values)
		properties := schemaProperties("", schema)
		Expect(properties).NotTo(BeEmpty())
		for _, path := range properties {
			if path == "global" { // passed to every chart by Helm
				continue
			}
			var value any = values
			for key := range strings.SplitSeq(path, ".") {
				Expect(value).To(HaveKey(key), "values.yaml has no %s", path)
				value = value.(map[string]any)[key]
			}
		}
	})

	It("have a README with a description of each value", func() {
		var values map[string]any
		parseFile("charts/phoneproof/values.yaml", &values)
		described := map[string]bool{}
		row := regexp.MustCompile(`(?m)^\| (\S+) \| \w+ \| .+ \| (.*) \|$`)
		for _, match := range row.FindAllStringSubmatch(string(readFile("charts/phoneproof/README.md")), -1) {
			described[match[1]] = match[2] != ""
		}
		for _, path := range undescribed("", values, described) {
			Fail("README.md does not describe " + path + ": it has no comment with -- in values.yaml")
		}
	})

	It("have an icon in this repository", func() {
		var chart struct{ Icon string }
		parseFile("charts/phoneproof/Chart.yaml", &chart)
		path, found := strings.CutPrefix(chart.Icon, "https://raw.githubusercontent.com/phoneproof/phoneproof/main/")
		Expect(found).To(BeTrue(), chart.Icon)
		Expect(string(readFile(path))).To(ContainSubstring("<svg"))
	})

	It("leave the user to the image, which the kubelet accepts only as a number", func() {
		Expect(string(readFile("hack/release/image/image.go"))).To(MatchRegexp(`(?m)^const user = "[1-9][0-9]*:[1-9][0-9]*"$`))
	})
})

// schemaProperties returns the paths of all properties of a JSON schema, except those of array items.
func schemaProperties(prefix string, schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		paths = append(paths, prefix+key)
		if property := properties[key].(map[string]any); property["additionalProperties"] == false {
			paths = append(paths, schemaProperties(prefix+key+".", property)...)
		}
	}
	return paths
}

// undescribed returns the paths of the values that have no description, nor a parent with one.
func undescribed(prefix string, values map[string]any, described map[string]bool) []string {
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := prefix + key
		children, _ := values[key].(map[string]any)
		switch {
		case described[path]:
		case len(children) > 0:
			paths = append(paths, undescribed(path+".", children, described)...)
		default:
			paths = append(paths, path)
		}
	}
	return paths
}

func parseFile(path string, into any) {
	GinkgoHelper()
	Expect(yaml.Unmarshal(readFile(path), into)).To(Succeed(), path)
}

func readFile(path string) []byte {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, path))
	Expect(err).NotTo(HaveOccurred())
	return content
}
