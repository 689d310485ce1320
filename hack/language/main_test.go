package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheckFiles(t *testing.T) {
	for name, test := range map[string]struct {
		files    map[string]string
		problems []string
		report   string
	}{
		"a phrase in a page": {
			files:    map[string]string{"a.md": "one\nIt tells whether.\n"},
			problems: []string{`a.md:2: "tells whether"`},
		},
		"a phrase in a comment and in a text, and not in a name": {
			files:    map[string]string{"a.go": "package a\n\n// A is told.\nvar A = http.NoBody\n\nvar B = `\nfor nobody`\n"},
			problems: []string{`a.go:3: "is told"`, `a.go:7: "nobody"`},
		},
		"a title of a test, word by word": {
			files: map[string]string{"a.md": "see *is told of nothing* in a\n"},
		},
		"a test that overwrites a variable": {
			files: map[string]string{
				"a.go":      "package a\n\nvar clock = 1\n",
				"b.go":      "package a\n\nvar counter int\n",
				"a_test.go": "package a\n\nfunc f() {\n\tclock = 2\n\tcounter++\n}\n",
			},
			problems: []string{
				"a_test.go:4:2: a test overwrites the variable clock of its package",
				"a_test.go:5:2: a test overwrites the variable counter of its package",
			},
		},
		"a test with a variable of its own": {
			files: map[string]string{
				"a.go":      "package a\n\nvar clock = 1\n",
				"a_test.go": "package a\n\nvar own int\n\nfunc f() {\n\tclock := 2\n\tclock = 3\n\town = clock\n}\n",
			},
		},
		"counts": {
			files: map[string]string{
				"a.go": "package a\n\nfunc run() error {\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn fmt.Errorf(\"run: %w\", err)\n}\n" +
					"func take() {}\nfunc takeNext() {}\nfunc Take() {}\n",
				"test/a.go": "package a\n\nfunc take() {}\n",
			},
			report: "unexported functions: 3, of which 1 (33 %) have a name of one word\nerrors: 1 wrapped, 1 returned as they are (1.0 : 1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Chdir(t.TempDir())
			var names []string
			for name, content := range test.files {
				g.Expect(os.MkdirAll(filepath.Dir(name), 0o700)).To(Succeed())
				g.Expect(os.WriteFile(name, []byte(content), 0o600)).To(Succeed())
				names = append(names, name)
			}
			problems, report, err := checkFiles(names)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(problems).To(ConsistOf(test.problems))
			if test.report != "" {
				g.Expect(report).To(Equal(test.report))
			}
		})
	}
}

func TestCheckFiles_refusesWhatIsNotGo(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.WriteFile("a.go", []byte("no Go"), 0o600)).To(Succeed())
	_, _, err := checkFiles([]string{"a.go"})
	g.Expect(err).To(MatchError(ContainSubstring("parse file")))
}
