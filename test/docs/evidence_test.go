package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// evidence matches a test that a page names, by its folder and title.
var evidence = regexp.MustCompile("`((?:internal|controllers|cmd|test)/[a-z/0-9]+) ([^`]+)`")

// TestSecurity_namesTestsThatExist finds each test that docs/security.md names, and checks that each row of its tables names one or says
// why there is none.
func TestSecurity_namesTestsThatExist(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	g.Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "\n### What holds at which level\n")
	g.Expect(found).To(BeTrue())
	section, _, _ = strings.Cut(section, "\n### ")
	rows := 0
	for _, line := range tableRows(section) {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		last := cells[len(cells)-1]
		named := evidence.FindAllStringSubmatch(last, -1)
		if len(named) == 0 {
			g.Expect(last).To(Or(HavePrefix("none: "), Equal("the same")), line)
		}
		for _, test := range named {
			if err := findTest(test[1], test[2]); err != nil {
				t.Error(err)
			}
		}
		rows++
	}
	g.Expect(rows).To(BeNumerically(">=", 30))
}

// tableRows returns the lines of the tables in a text, without their heads.
func tableRows(text string) []string {
	var rows []string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isHead := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if strings.HasPrefix(line, "| ") && !isHead {
			rows = append(rows, line)
		}
	}
	return rows
}

// findTest returns an error if no file of a folder has a test with that title: the name of a function, or a text.
func findTest(folder, title string) error {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	slices.Sort(files)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read file: %w", err)
		}
		if strings.Contains(string(content), "func "+title+"(t *testing.T)") || strings.Contains(string(content), `"`+title+`"`) {
			return nil
		}
	}
	return fmt.Errorf("%s has no test %q", folder, title)
}

func TestFindTest(t *testing.T) {
	g := NewWithT(t)
	g.Expect(findTest("test/docs", "TestFindTest")).To(Succeed())
	g.Expect(findTest("test/docs", t.Name()+"_not")).To(MatchError(`test/docs has no test "` + t.Name() + `_not"`))
	g.Expect(findTest("test/nowhere", "TestFindTest")).NotTo(Succeed())
}
