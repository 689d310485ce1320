package reference

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api"
)

// contract is what the page of the API shows of api/openapi.yaml.
type contract struct {
	Paths      map[string]map[string]operation
	Components struct {
		Parameters map[string]parameter
		Schemas    map[string]schema
	}
}

type operation struct {
	Summary, Description string
	Parameters           []parameter
	RequestBody          body
	Responses            map[string]body
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      schema
}

type body struct {
	Description string
	Content     map[string]struct {
		Schema            schema
		Example, Examples any
	}
}

type schema struct {
	Ref                  string `json:"$ref"`
	Description, Pattern string
	Enum                 []string
	Open                 []string `json:"x-extensible-enum"`
	MinLength, MaxLength int
	Minimum, Maximum     int
	Required             []string
	Properties           map[string]schema
	AnyOf, OneOf         []schema
	Items                *schema
}

var (
	fewValues = regexp.MustCompile(`^\^([A-Z|()/]+\|[A-Z|()/]+)\$$`)
	scopesOf  = regexp.MustCompile(`key needs the (scope [^.]*)`)
	presentIf = regexp.MustCompile(`\b(Not p|P)resent [^.]*`)
	noAnchor  = regexp.MustCompile(`[^a-z0-9_ -]`)
	errorCode = regexp.MustCompile(`[a-z]+(_[a-z]+)+`)
)

// ofAll are the codes that most operations have: the page speaks of them once.
var ofAll = regexp.MustCompile(`^(invalid_.*|missing_.*|body_.*|unsupported_.*|rate_limited|store_unavailable|keys_unavailable)$`)

// writeOperations describes each operation of the API with what it takes, answers and refuses.
func writeOperations(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	w := operationWriter{codes: map[string]bool{}, written: map[string]string{}}
	g.Expect(yaml.Unmarshal(api.OpenAPI, &w.contract)).To(Succeed())
	for _, code := range writeCodes(t, root) {
		code = strings.Split(code+"``", "`")[1]
		w.codes[code] = !ofAll.MatchString(code)
	}
	addresses := inOrder(w.Paths, "paths:")
	for _, address := range addresses {
		if o, isRead := w.Paths[address]["get"]; isRead { // what others answer, too, stands at the operation that reads it
			w.written[nameBody(o.Responses["200"])] = formatTitle(address, o)
		}
	}
	var lines []string
	for _, address := range addresses {
		for method, o := range w.Paths[address] {
			if address != "/openapi.json" {
				lines = append(lines, w.writeOperation(strings.ToUpper(method), address, o)...)
			}
		}
	}
	return lines
}

type operationWriter struct {
	contract

	codes   map[string]bool   // of errors
	written map[string]string // schemas, each by the title of the operation that has its fields
}

// inOrder returns the keys of a map in the order of the document, after the line that begins it.
func inOrder[V any](m map[string]V, after string) []string {
	_, rest, _ := strings.Cut(string(api.OpenAPI), "\n"+after+"\n")
	indentation := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
	if !strings.HasPrefix(after, "paths") {
		_, rest, _ = strings.Cut(rest, "\n      properties:\n")
		indentation = "        "
	}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return strings.Index("\n"+rest, "\n"+indentation+a+":") - strings.Index("\n"+rest, "\n"+indentation+b+":")
	})
}

// formatTitle returns the title of an operation, which begins with the name that pages call it by.
func formatTitle(address string, o operation) string {
	return strings.TrimPrefix(address, "/api/verify/") + ": " + strings.ToLower(o.Summary[:1]) + o.Summary[1:]
}

func nameBody(b body) string { return path.Base(b.Content["application/json"].Schema.Ref) }

func (w *operationWriter) writeOperation(method, address string, o operation) []string {
	title, description := formatTitle(address, o), strings.Join(strings.Fields(o.Description), " ")
	lines := []string{"## " + title, "", "`" + method + " " + address + "`, " + scopesOf.FindStringSubmatch(description)[1] + ". " + cutSentence(description) + ".", ""}
	takes := []string{"| takes | |", "|---|---|"}
	for _, p := range o.Parameters {
		if p.Ref != "" {
			p = w.Components.Parameters[path.Base(p.Ref)]
		}
		if p.Schema.Description = p.Description; p.Name != "X-Request-Id" {
			takes = append(takes, w.writeField(p.In+" `"+p.Name+"`", p.Required, p.Schema)...)
		}
	}
	if len(o.RequestBody.Content) > 0 {
		takes = append(takes, w.writeFields(nameBody(o.RequestBody), "")...)
	}
	for _, row := range takes {
		lines = append(lines, strings.Replace(row, "`, always |", "`, required |", 1))
	}
	lines = append(lines, "")
	var refused []string
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		if status < "300" {
			if len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], "Answers") {
				lines = append(lines, "")
			}
			lines = append(lines, w.writeAnswer(status, r, title)...)
			continue
		}
		var codes []string
		for _, code := range errorCode.FindAllString(fmt.Sprint(r), -1) {
			if link := "[`" + code + "`](errors.md#" + code + ")"; w.codes[code] && !slices.Contains(codes, link) {
				codes = append(codes, link)
			}
		}
		if len(codes) > 0 {
			refused = append(refused, status+" "+strings.Join(codes, ", "))
		}
	}
	if len(refused) > 0 {
		lines = append(lines, "", "Errors: "+strings.Join(refused, "; ")+".")
	}
	return append(lines, "")
}

// writeAnswer lists the fields of an answer, or leads to the operation that has the same.
func (w *operationWriter) writeAnswer(status string, b body, title string) []string {
	name := nameBody(b)
	if name == "." { // its schema has no name
		return []string{"Answers " + status + ": " + strings.ToLower(b.Description[:1]) + b.Description[1:]}
	}
	if w.written[name] == "" {
		w.written[name] = title
	}
	if at := w.written[name]; at != title {
		anchor := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(at), ""), " ", "-")
		return []string{"Answers " + status + " as [" + at + "](#" + anchor + ")."}
	}
	return append([]string{"| answers " + status + " | |", "|---|---|"}, w.writeFields(name, "")...)
}

// writeFields returns the rows of a schema's fields, with those of what they hold.
func (w *operationWriter) writeFields(name, prefix string) (rows []string) {
	s, status := w.Components.Schemas[name], w.Components.Schemas["StatusResponse"]
	if name == "StoredRequest" {
		rows = append(rows, "| all fields of [status](#status-read-the-state-of-a-verification) | they mean the same |")
		for field := range status.Properties {
			delete(s.Properties, field)
		}
	}
	for _, field := range inOrder(s.Properties, "    "+name+":") {
		rows = append(rows, w.writeField("`"+prefix+field+"`", slices.Contains(s.Required, field), s.Properties[field])...)
		if item := s.Properties[field].Items; item != nil && path.Base(item.Ref) != "StoredRequest" {
			rows = append(rows, w.writeFields(path.Base(item.Ref), field+"[].")...)
		}
	}
	return rows
}

// writeField returns the row of a field: the first sentence of its description, when it is there, and its values or bounds.
func (w *operationWriter) writeField(name string, isRequired bool, s schema) []string {
	for _, of := range slices.Concat([]schema{s}, s.AnyOf, s.OneOf) {
		if of.Ref != "" {
			target := w.Components.Schemas[path.Base(of.Ref)]
			if s.Description != "" {
				target.Description = s.Description
			}
			s = target
		}
	}
	description := strings.Join(strings.Fields(s.Description), " ")
	text := cutSentence(description)
	values := slices.DeleteFunc(slices.Concat(s.Enum, s.Open), func(value string) bool { return value == "" })
	if len(values) > 1 && strings.HasPrefix(text, values[0]+":") { // it says what each value means
		text, values = strings.TrimSuffix(description, "."), nil
	}
	if when := presentIf.FindString(description); when != "" && !strings.Contains(text, when) {
		text += ". " + when
	}
	if m := fewValues.FindStringSubmatch(s.Pattern); m != nil {
		values = []string{strings.TrimSuffix(strings.TrimPrefix(m[1], "("), ")")}
		if strings.Contains(m[1], "/") {
			values[0] = m[1]
		}
	}
	switch {
	case len(values) > 0 && len(values) < 8:
		text += " (`" + strings.Join(values, "`, `") + "`)"
	case s.MaxLength > 0:
		text += fmt.Sprintf(" (%d to %d characters)", s.MinLength, s.MaxLength)
	case s.Maximum > 0:
		text += fmt.Sprintf(" (%d to %d)", s.Minimum, s.Maximum)
	}
	if isRequired {
		name += ", always"
	}
	rows := []string{"| " + name + " | " + strings.ReplaceAll(text, "|", `\|`) + " |"}
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		rows = append(rows, w.writeField(strings.TrimSuffix(strings.Split(name, ",")[0], "`")+"."+field+"`", slices.Contains(s.Required, field), s.Properties[field])...)
	}
	return rows
}
