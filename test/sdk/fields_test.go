package sdk

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// schema is a schema of api/openapi.yaml, as far as it is read.
type schema struct {
	Properties map[string]schema `json:"properties"`
}

// description is api/openapi.yaml, as far as it is read.
type description struct {
	Paths map[string]map[string]struct {
		OperationID string
		Parameters  []struct{ Name, In string }
	} `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`
}

// sources are the files of each library, and how it declares a type and its fields.
var sources = map[string]struct {
	files       string
	declaration string // a format of a regular expression with a group for what the type extends, and one for its body
	field       *regexp.Regexp
}{
	"go":         {"../../sdk/go/*.go", `(?ms)^type %s struct \{(x?)\n(.*?^\}\n\n// UnmarshalJSON .*?^\}|.*?^\})`, regexp.MustCompile(`json:"(\w+)[,"]`)},
	"typescript": {"../../sdk/typescript/src/*.ts", `(?ms)^(?:export )?(?:interface|class) %s(?: extends (\w+))? \{\n(.*?)^\}`, regexp.MustCompile(`(?m)^  (?:readonly )?(\w+)\??:(?: |$)`)},
	"python":     {"../../sdk/python/phoneproof/*.py", `(?ms)^class %s\((\w+).*?\):\n(.*?)^\S`, regexp.MustCompile(`(?m)^    ([a-z]\w*): `)},
}

// typeNames name the types of each library that have the fields of a schema.
var typeNames = map[string]map[string]string{
	// Python's are arguments.
	"InitRequest":            {"go": "StartParams", "typescript": "StartParams"},
	"DeliverRequest":         {"go": "DeliverParams", "typescript": "DeliverParams"},
	"FindRequest":            {"go": "FindParams", "typescript": "FindParams"},
	"DeliverResponse":        {"go": "Delivered", "typescript": "Delivered", "python": "Delivered"},
	"InitResponse":           {"go": "Started", "typescript": "Started", "python": "Started"},
	"StatusResponse":         {"go": "Status", "typescript": "Status", "python": "Status"},
	"StoredRequest":          {"go": "Request", "typescript": "StoredRequest", "python": "StoredRequest"},
	"StoredRequest.delivery": {"go": "Delivery", "typescript": "EventDelivery", "python": "Delivery"},
	"DeliveryAttempt":        {"go": "DeliveryAttempt", "typescript": "DeliveryAttempt", "python": "DeliveryAttempt"},
	"VerificationSuccess":    {"go": "Event", "typescript": "VerificationSuccess", "python": "VerificationSuccess"},
	"VerificationUpdate":     {"go": "Event", "typescript": "VerificationUpdate", "python": "VerificationAttention"},
	"Error.error":            {"typescript": "PhoneProofError", "python": "PhoneProofError"}, // Go's is read below
}

// parameters are the sections of each library that have the query parameters of a path: a regular expression with a group, and one of each
// parameter.
var parameters = map[string]map[string]struct{ section, parameter string }{
	"/api/verify/status": {
		"go":         {`\) readStatus\((.*?)\n\}`, `"NAME"`},
		"typescript": {`async wait\((.*?)\n  \}`, `\bNAME: `},
		"python":     {`    def status\((.*?)\n\n    def `, `"NAME": `},
	},
	"/api/verify/requests": {
		"go":         {`\) List\((.*?)\n\}`, `"NAME"`},
		"typescript": {`interface ListParams \{(.*?)\n\}`, `\n  NAME\?: `},
		"python":     {`\n    def list\((.*?)\) -> `, `\bNAME: `},
	},
}

// cursor is a field that the libraries send by themselves: a scenario has it.
const cursor = "cursor"

// operations are what the drivers call the operations of the API.
var operations = map[string]string{
	"initVerification": "start", "deliverCode": "deliver", "getVerificationStatus": "status", "confirmVerification": "confirm", "cancelVerification": "cancel",
	"redeliverEvent": "redeliver", "listRequests": "list", "findRequests": "find", "getRequest": "get", "getOpenAPI": "openapi",
}

// TestFields expects each library to have each field of the API, and the table each operation.
func TestFields(t *testing.T) {
	var api description
	content, err := os.ReadFile("../../api/openapi.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(yaml.Unmarshal(content, &api)).To(Succeed())
	for name, inLanguage := range typeNames {
		schemaName, nested, _ := strings.Cut(name, ".")
		s := api.Components.Schemas[schemaName]
		if nested != "" {
			s = s.Properties[nested]
		}
		for language, typeName := range inLanguage {
			t.Run(name+" in "+language, func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(s.Properties).NotTo(BeEmpty())
				known := fieldsOf(t, language, typeName)
				for field := range s.Properties {
					if field == cursor {
						continue
					}
					g.Expect(known).To(ContainElement(field), "%s of %s", field, typeName)
				}
			})
		}
	}
	for name, method := range map[string]string{"InitRequest": "start", "DeliverRequest": "deliver", "FindRequest": "find"} {
		t.Run(name+" in python", func(t *testing.T) {
			g := NewWithT(t)
			arguments := sectionOf(t, "python", `\n    def `+method+`\((.*?)\) -> `)
			g.Expect(api.Components.Schemas[name].Properties).NotTo(BeEmpty())
			for field := range api.Components.Schemas[name].Properties {
				if field != cursor {
					g.Expect(arguments).To(MatchRegexp(`\b` + snakeCase(field) + `: `))
				}
			}
		})
	}
	for path, inLanguage := range parameters {
		for language, p := range inLanguage {
			t.Run("parameters of "+path+" in "+language, func(t *testing.T) {
				g := NewWithT(t)
				section, found := sectionOf(t, language, p.section), 0
				for _, parameter := range api.Paths[path]["get"].Parameters {
					if parameter.In == "query" && parameter.Name != cursor {
						found++
						g.Expect(section).To(MatchRegexp(strings.ReplaceAll(p.parameter, "NAME", parameter.Name)))
					}
				}
				g.Expect(found).To(BeNumerically(">", 0))
			})
		}
	}
	t.Run("Error.error in go", func(t *testing.T) {
		for field := range api.Components.Schemas["Error"].Properties["error"].Properties {
			NewWithT(t).Expect(sourceOf(t, "go")).To(ContainSubstring("answer.Error." + strings.ToUpper(field[:1]) + field[1:]))
		}
	})
	t.Run("operations", func(t *testing.T) {
		g := NewWithT(t)
		scenarios, err := filepath.Glob("scenarios_*.go")
		g.Expect(err).NotTo(HaveOccurred())
		played := readAll(t, scenarios)
		found := 0
		for path, methods := range api.Paths {
			for _, operation := range methods {
				found++
				g.Expect(operations).To(HaveKey(operation.OperationID), path)
				g.Expect(played).To(MatchRegexp(`"` + operations[operation.OperationID] + `", (p|object|args)`))
			}
		}
		g.Expect(found).To(Equal(len(operations)))
	})
}

// TestConstantTime expects each library to compare signatures in constant time, which no play would notice.
func TestConstantTime(t *testing.T) {
	for language, comparison := range map[string]string{
		"go": "hmac.Equal(", "typescript": "(difference |= byte ^ (got[i] ?? 0))", "python": "hmac.compare_digest(",
	} {
		NewWithT(t).Expect(sourceOf(t, language)).To(ContainSubstring(comparison))
	}
}

// fieldsOf returns the fields of a type and of what it extends, as they are on the wire.
func fieldsOf(t *testing.T, language, name string) (fields []string) {
	t.Helper()
	source := sources[language]
	declaration := regexp.MustCompile(strings.Replace(source.declaration, "%s", name, 1)).FindStringSubmatch(sourceOf(t, language))
	NewWithT(t).Expect(declaration).NotTo(BeNil(), "type %s", name)
	for _, found := range source.field.FindAllStringSubmatch(declaration[2], -1) {
		fields = append(fields, found[1])
		if language == "python" {
			fields[len(fields)-1] = camelCase(found[1])
		}
	}
	switch base := declaration[1]; base {
	case "", "Answer", "Exception":
		return fields
	case "Error":
		return append(fields, "message")
	default:
		return append(fields, fieldsOf(t, language, base)...)
	}
}

// sectionOf returns the part of a library's source that a regular expression names.
func sectionOf(t *testing.T, language, section string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)` + section).FindStringSubmatch(sourceOf(t, language))
	NewWithT(t).Expect(found).NotTo(BeNil(), section)
	return found[1]
}

// sourceOf returns a library's source.
func sourceOf(t *testing.T, language string) string {
	t.Helper()
	files, err := filepath.Glob(sources[language].files)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).NotTo(BeEmpty())
	return readAll(t, files)
}

func readAll(t *testing.T, files []string) string {
	t.Helper()
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		all.Write(content)
	}
	return all.String()
}

// camelCase returns the name of a field on the wire.
func camelCase(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word == "url" {
			words[i+1] = "URL"
		} else {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// snakeCase is the reverse.
func snakeCase(name string) string {
	return strings.ToLower(regexp.MustCompile(`[A-Z]+`).ReplaceAllString(name, "_$0"))
}
