// Package reference writes the tables of docs/ that follow from the code: what it names has one row and one anchor there.
package reference

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/repository"
)

var update = flag.Bool("update", false, "write the tables; make reference sets it")

// tables are the tables by their names, the pages that have them, and how many rows they have at least.
var tables = []struct {
	name, page string
	rows       int
	write      func(t *testing.T, root string) []string
}{
	{"operations", "api.md", 90, writeOperations},
	{"conditions", "conditions.md", 90, writeConditions},
	{"codes", "errors.md", 50, writeCodes},
	{"hints", "errors.md", 15, writeHints},
	{"alerts", "runbook.md", 15, writeAlerts},
	{"metrics", "metrics.md", 45, writeMetrics},
	{"fields", "settings.md", 80, writeFields},
	{"flags", "settings.md", 25, writeFlags},
}

func TestTables_areThoseOfTheCode(t *testing.T) {
	root, err := repository.Root()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, table := range tables {
		t.Run(table.name, func(t *testing.T) {
			g := NewWithT(t)
			rows := table.write(t, root)
			g.Expect(len(rows)).To(BeNumerically(">=", table.rows))
			file := filepath.Join(root, "docs", table.page)
			page, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			begin, end := "<!-- "+table.name+": written by make reference -->\n", "\n<!-- end of "+table.name+" -->"
			head, rest, found := strings.Cut(string(page), begin)
			g.Expect(found).To(BeTrue())
			_, tail, found := strings.Cut(rest, end)
			g.Expect(found).To(BeTrue())
			wanted := head + begin + "\n" + strings.Join(rows, "\n") + "\n" + end + tail
			if *update {
				g.Expect(os.WriteFile(file, []byte(wanted), 0o600)).To(Succeed())
				return
			}
			g.Expect(string(page)).To(Equal(wanted), "run make reference")
		})
	}
}

// row returns a row of a table, whose first cell is code with an anchor.
func row(anchor, name string, cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return fmt.Sprintf(`| <a id="%s"></a>%s | %s |`, anchor, "`"+name+"`", strings.Join(cells, " | "))
}

// constant is a constant of a string, with its comment in one line.
type constant struct{ name, value, comment string }

// readConstants returns the constants of a file whose names have a prefix.
func readConstants(t *testing.T, file, prefix string) []constant {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var all []constant
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			return true
		}
		if value, ok := readText(spec.Values[0], nil); ok {
			all = append(all, constant{spec.Names[0].Name, value, strings.Join(strings.Fields(spec.Doc.Text()), " ")})
		}
		return true
	})
	return all
}

// readText returns the value of an expression of literals and known constants.
func readText(e ast.Expr, known map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		value, ok := known[e.Name]
		return value, ok
	case *ast.BinaryExpr:
		left, ok := readText(e.X, known)
		right, also := readText(e.Y, known)
		return left + right, ok && also
	}
	return "", false
}

var (
	goesWith   = regexp.MustCompile(`(\w+)=(True|False|Unknown)`)
	ofRequests = regexp.MustCompile(`^(Accepted|Verified|WebhookDelivered)$`)
)

// writeConditions lists the conditions, each with the reasons that go with it by their comments, and then the reasons.
func writeConditions(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(root, "api/v1alpha1/conditions.go")
	all := readConstants(t, file, "Condition")
	types := map[string]bool{}
	for _, c := range all {
		types[c.value] = true
	}
	reasons := map[bool][]string{} // those of a request, and those of a project
	links := map[string][]string{}
	for _, r := range readConstants(t, file, "Reason") {
		with, meaning, found := strings.Cut(strings.TrimPrefix(r.comment, r.name+" goes with "), ": ")
		g.Expect(found).To(BeTrue(), r.comment)
		anchor := strings.ToLower(r.value)
		if types[r.value] {
			anchor = "reason-" + anchor
		}
		of := goesWith.FindAllStringSubmatch(with, -1)
		g.Expect(of).NotTo(BeEmpty(), r.comment)
		for _, m := range of {
			g.Expect(types).To(HaveKey(m[1]), r.comment)
			links[m[1]+m[2]] = append(links[m[1]+m[2]], "[`"+r.value+"`](#"+anchor+")")
		}
		meaning, remedy, _ := strings.Cut(meaning, " To fix it, ")
		isOfRequest := ofRequests.MatchString(of[0][1])
		reasons[isOfRequest] = append(reasons[isOfRequest], row(anchor, r.value, strings.TrimSuffix(meaning, "."), strings.TrimSuffix(remedy, ".")))
	}
	rows := []string{"| condition | meaning | reasons |", "|---|---|---|"}
	for _, c := range all {
		var by []string
		for _, status := range []string{"False", "Unknown", "True"} {
			if found := links[c.value+status]; found != nil {
				by = append(by, status+": "+strings.Join(found, ", "))
			}
		}
		rows = append(rows, row(strings.ToLower(c.value), c.value, strings.TrimSuffix(strings.TrimPrefix(c.comment, c.name+" is "), "."), strings.Join(by, ". ")))
	}
	head := []string{"", "| reason | meaning | what to do |", "|---|---|---|"}
	return slices.Concat(rows, []string{"", "## Reasons of a project"}, head, reasons[false], []string{"", "## Reasons of a request"}, head, reasons[true])
}

var (
	statusOf = regexp.MustCompile(`(\w+):\s+http\.Status(\w+),`)
	adviceOf = regexp.MustCompile(`^\w+ \((retry|tell|fix|go on)\): (.*)$`)
)

// statusNumbers are the statuses of errors by their names in net/http.
var statusNumbers = map[string]int{
	"BadRequest": 400, "Unauthorized": 401, "Forbidden": 403, "NotFound": 404, "MethodNotAllowed": 405, "RequestTimeout": 408, "Conflict": 409,
	"RequestEntityTooLarge": 413, "UnsupportedMediaType": 415, "UnprocessableEntity": 422, "TooManyRequests": 429,
	"InternalServerError": 500, "ServiceUnavailable": 503,
}

// writeCodes lists the codes of errors by status, with the advice in their comments.
func writeCodes(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	constants := map[string]constant{}
	for file, prefix := range map[string]string{"internal/httpapi/errors.go": "code", "internal/verification/errors.go": "Code"} {
		for _, c := range readConstants(t, filepath.Join(root, file), prefix) {
			constants[c.name] = c
		}
	}
	source, err := os.ReadFile(filepath.Join(root, "internal/httpapi/errors.go"))
	g.Expect(err).NotTo(HaveOccurred())
	rows := []string{"| code | status | move | advice |", "|---|---|---|---|"}
	for _, m := range statusOf.FindAllStringSubmatch(string(source), -1) {
		c, advice := constants[m[1]], adviceOf.FindStringSubmatch(constants[m[1]].comment)
		g.Expect(advice).NotTo(BeNil(), m[0])
		g.Expect(statusNumbers).To(HaveKey(m[2]))
		rows = append(rows, row(c.value, c.value, strconv.Itoa(statusNumbers[m[2]]), advice[1], strings.TrimSuffix(advice[2], ".")))
	}
	return rows
}

func writeHints(t *testing.T, root string) []string {
	t.Helper()
	g := NewWithT(t)
	rows := []string{"| hint | what happened | what to do, and what to tell |", "|---|---|---|"}
	for _, h := range readConstants(t, filepath.Join(root, "internal/verification/hints.go"), "Hint") {
		happened, toDo, found := strings.Cut(strings.TrimPrefix(h.comment, h.name+" means that "), ". To do: ")
		g.Expect(found).To(BeTrue(), h.comment)
		rows = append(rows, row(strings.ToLower(h.value), h.value, happened, toDo))
	}
	return rows
}

// metricParts returns name, help and labels of the metric that a node defines.
func metricParts(n ast.Node, known map[string]string) (name, help string, labels []string) {
	texts := func(all []ast.Expr) (found []string) {
		for _, e := range all {
			if text, ok := readText(e, known); ok {
				found = append(found, text)
			}
		}
		return found
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		for _, element := range n.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				value, _ := readText(pair.Value, known)
				switch fmt.Sprint(pair.Key) {
				case "Name":
					name = value
				case "Help":
					help = value
				case "ConstLabels":
					labels = append(labels, readKeys(pair.Value)...)
				}
			}
		}
	case *ast.CallExpr:
		if len(n.Args) < 2 {
			break
		}
		if all := texts(n.Args); len(all) >= 2 {
			name, help, labels = all[0], all[1], append(readFixed(n.Fun), all[2:]...)
		} else {
			name, help, labels = metricParts(n.Args[0], known)
		}
		for _, argument := range n.Args[1:] {
			if list, ok := argument.(*ast.CompositeLit); ok {
				labels = append(labels, texts(list.Elts)...)
			}
		}
	}
	return name, help, labels
}

// readKeys returns the keys of a map.
func readKeys(e ast.Expr) (keys []string) {
	if m, ok := e.(*ast.CompositeLit); ok {
		for _, element := range m.Elts {
			key, _ := readText(element.(*ast.KeyValueExpr).Key, nil)
			keys = append(keys, key)
		}
	}
	return keys
}

// readFixed returns the labels that a function of the same file gives to each metric.
func readFixed(fun ast.Expr) (labels []string) {
	name, ok := fun.(*ast.Ident)
	if !ok || name.Obj == nil {
		return nil
	}
	ast.Inspect(name.Obj.Decl.(ast.Node), func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == "ConstLabels" {
			labels = append(labels, readKeys(pair.Value)...)
		}
		return true
	})
	return labels
}

// valuesOf are the constants whose values a label has.
var valuesOf = map[string][2]string{
	"phoneproof_messages_total":          {"internal/messenger/outcome.go", "Outcome"},
	"phoneproof_callback_requests_total": {"internal/messenger/metrics.go", "Request"},
}

// writeMetrics lists the metrics by their definitions.
func writeMetrics(t *testing.T, root string) []string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"internal", "controllers"} {
		NewWithT(t).Expect(filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/simulator/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			known := map[string]string{}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
					if text, ok := readText(spec.Values[0], nil); ok {
						known[spec.Names[0].Name] = text
					}
				}
				name, help, labels := metricParts(n, known)
				if strings.HasPrefix(name, "phoneproof_") && strings.Contains(help, " ") && found[name] == "" {
					series := name
					if len(labels) > 0 {
						series += "{" + strings.Join(labels, ",") + "}"
					}
					found[name] = row(name, series, strings.TrimSuffix(help, "."))
				}
				return true
			})
			return nil
		})).To(Succeed())
	}
	rows := []string{"| metric | meaning |", "|---|---|"}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if from, ok := valuesOf[name]; ok {
			var values []string
			for _, c := range readConstants(t, filepath.Join(root, from[0]), from[1]) {
				values = append(values, c.value)
			}
			found[name] = strings.TrimSuffix(found[name], " |") + ": " + strings.Join(values, ", ") + " |"
		}
		rows = append(rows, found[name])
	}
	return rows
}
