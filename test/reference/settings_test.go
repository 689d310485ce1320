package reference

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/internal/operator"
	"github.com/phoneproof/phoneproof/test/repository"
)

// labels are those of a template in an alert's text.
var labels = regexp.MustCompile(`\{\{ \$labels\.(\w+) \}\}`)

// writeAlerts lists the alerts, whose anchors are the titles of their sections.
func writeAlerts(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	read := func(file string) []byte {
		content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof", file))
		g.Expect(err).NotTo(HaveOccurred())
		return content
	}
	rows := []string{"| alert | severity | fires when |", "|---|---|---|"}
	add := func(name, severity, summary string) {
		summary = labels.ReplaceAllStringFunc(summary, func(label string) string {
			return strings.ToUpper(labels.FindStringSubmatch(label)[1])
		})
		rows = append(rows, "| ["+name+"](#"+strings.ToLower(name)+") | "+severity+" | "+summary+" |")
	}
	own := alertOfChart.FindSubmatch(read("templates/prometheusrule.yaml"))
	g.Expect(own).NotTo(BeNil())
	add(string(own[1]), string(own[2]), string(own[3]))
	var alerts []struct {
		Alert               string
		Labels, Annotations map[string]string
	}
	g.Expect(yaml.Unmarshal(read("files/alerts.yaml"), &alerts)).To(Succeed())
	for _, a := range alerts {
		add(a.Alert, a.Labels["severity"], a.Annotations["summary"])
	}
	return rows
}

// alertOfChart is the alert that the template itself has.
var alertOfChart = regexp.MustCompile(`alert: (\w+)[^#]*?severity: (\w+)[^#]*?summary: (.*)`)

// others are fields whose parts Kubernetes documents, or that say themselves what is in them.
var others = regexp.MustCompile(`([sS]ecretRef|logoRef|affinity|tolerations|topologySpreadConstraints|resources|parentRefs|ingressFrom|metricsFrom|texts\[\])[.\[]|\[\]$|^rateLimit\.\w+\.(requests|period)$`)

// writeFields lists the fields of a VerificationProject, each by the first sentence of its description.
func writeFields(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof/files/crds/phoneproof.dev_verificationprojects.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(content, &crd)).To(Succeed())
	rows := []string{"| field of `spec` | meaning |", "|---|---|"}
	var walk func(path string, p apiextensionsv1.JSONSchemaProps)
	walk = func(path string, p apiextensionsv1.JSONSchemaProps) {
		// A part that is there with its defaults says nothing of its own.
		if isPart := len(p.Properties) > 0 && strings.HasPrefix(p.Description, path[strings.LastIndex(path, ".")+1:]+" says "); path != "" && !isPart && !others.MatchString(path) {
			rows = append(rows, row(path, path, describeField(path, p.Description)+writeDefault(p)))
		}
		for _, name := range sortedKeys(p.Properties) {
			walk(strings.TrimPrefix(path+"."+name, "."), p.Properties[name])
		}
		if p.Items != nil && p.Items.Schema != nil {
			walk(path+"[]", *p.Items.Schema)
		}
	}
	walk("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	return rows
}

func sortedKeys(m map[string]apiextensionsv1.JSONSchemaProps) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// writeDefault returns the default of a field: that of the schema, or where it depends on others that of the description.
func writeDefault(p apiextensionsv1.JSONSchemaProps) string {
	if p.Default == nil {
		_, text, _ := strings.Cut(strings.Join(strings.Fields(p.Description), " "), "Default: ")
		text, isDerived := strings.CutPrefix(text, "unset, which means ")
		if !isDerived && len(p.Enum) == 0 && p.Items == nil || strings.HasPrefix(text, "unset") || text == "" || len(text) > 200 {
			return ""
		}
		return " (" + cutSentence(text) + ")"
	}
	var text string
	if string(p.Default.Raw) == "{}" {
		return ""
	}
	if json.Unmarshal(p.Default.Raw, &text) != nil {
		text = string(p.Default.Raw)
	}
	return " (`" + text + "`)"
}

// beginning is the field's name before what its description says of it.
var beginning = regexp.MustCompile(`^(\w+)( is | are | names | says |, | (lists|bounds|allows|makes|offers|receives|lets|tells|asks) )`)

// describeField returns the first sentence of a description, without the field's name before it.
func describeField(path, description string) string {
	sentence := cutSentence(strings.Join(strings.Fields(description), " "))
	name := strings.TrimSuffix(path[strings.LastIndex(path, ".")+1:], "[]")
	if m := beginning.FindStringSubmatch(sentence); m != nil && m[1] == name {
		sentence = m[3] + sentence[len(m[0])-min(len(m[3]), 1):]
	}
	return strings.ReplaceAll(sentence, "docs/testing.md", "[testing](testing.md#numbers)")
}

// cutSentence returns the first sentence of a text, or its part before a semicolon. What is in brackets or quotes ends neither.
func cutSentence(text string) string {
	depth, quoted := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '(':
			depth++
		case c == ')':
			depth--
		case (c == '.' || c == ';') && strings.HasPrefix(text[i+1:], " ") && depth == 0 && !quoted:
			return text[:i]
		}
	}
	return strings.TrimSuffix(text, ".")
}

// TestSentences_endProperly has the texts that were cut in the middle.
func TestSentences_endProperly(t *testing.T) {
	g := NewWithT(t)
	for text, sentence := range map[string]string{
		`the name in replies: "... for NAME". At most 64.`:            `the name in replies: "... for NAME"`,
		"Kubernetes (objects; about 5 a second) or other. Not moved.": "Kubernetes (objects; about 5 a second) or other",
		"hostnames; a name may begin with *. At most 16.":             "hostnames",
	} {
		g.Expect(cutSentence(text)).To(Equal(sentence))
	}
	g.Expect(describeField("rateLimit.perKey", "perKey bounds the requests. More.")).To(Equal("bounds the requests"))
	g.Expect(describeField("a.host", "host that answers")).To(Equal("host that answers"))
	g.Expect(describeField("a.level", "level is one of two.")).To(Equal("one of two"))
}

// TestDashboard_isDrawn compares docs/images/dashboard.svg with the dashboard of the chart: which panel is where.
func TestDashboard_isDrawn(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof/files/dashboard.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			GridPos struct {
				X int `json:"x"`
				Y int `json:"y"`
				W int `json:"w"`
				H int `json:"h"`
			} `json:"gridPos"`
		} `json:"panels"`
	}
	g.Expect(json.Unmarshal(content, &dashboard)).To(Succeed())
	g.Expect(dashboard.Panels).NotTo(BeEmpty())
	var boxes strings.Builder
	bottom := 0
	for _, p := range dashboard.Panels {
		at := p.GridPos
		fmt.Fprintf(&boxes, `<rect x="%d" y="%d" width="%d" height="%d" rx="4"/><text x="%d" y="%d">%s</text>`+"\n",
			at.X*34+4, at.Y*6+4, at.W*34-8, at.H*6-8, at.X*34+14, at.Y*6+at.H*3+4, html.EscapeString(p.Title))
		bottom = max(bottom, at.Y+at.H)
	}
	picture := fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 816 %d\" font-family=\"sans-serif\" font-size=\"13\">\n"+
		"<style>rect { fill: #f6f6f7; stroke: #8e8e93 } text { fill: #1b1b1f }</style>\n%s</svg>\n", bottom*6, boxes.String())
	file := filepath.Join(root, "docs/images/dashboard.svg")
	if *update {
		g.Expect(os.WriteFile(file, []byte(picture), 0o600)).To(Succeed())
		return
	}
	drawn, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(drawn)).To(Equal(picture), "run make reference")
}

// writeFlags lists the flags of the operator.
func writeFlags(t *testing.T, _ string) []string {
	t.Helper()
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	new(operator.Options).AddFlags(flags)
	rows := []string{"| flag of the operator | meaning |", "|---|---|"}
	flags.VisitAll(func(f *pflag.Flag) {
		value := strings.Trim(f.DefValue, "[]")
		if value != "" {
			value = " (`" + strings.ReplaceAll(value, ",", "`, `") + "`)"
		}
		usage, _, _ := strings.Cut(f.Usage, "; ")
		rows = append(rows, row(f.Name, "--"+f.Name, usage+value))
	})
	return rows
}
