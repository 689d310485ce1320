package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// foreignNames are names in the form of a reason that are not PhoneProof's.
var foreignNames = []string{"HttpOnly", "LoginRequired", "ProgressDeadlineExceeded", "RssAnon", "RssFile", "SameSite", "ServerSideApply"}

// TestPages_nameWhatExists finds what the pages name in the code: conditions, by a status or the word; columns of kubectl get; reasons and
// other names in their form; metrics.
func TestPages_nameWhatExists(t *testing.T) {
	words := map[string]bool{}
	for _, folder := range []string{"api", "charts", "cmd", "controllers", "internal"} {
		collectMatches(t, words, folder, `\w+`)
	}
	histogram := regexp.MustCompile(`_(bucket|count|sum)$`)
	uses := []struct {
		use   *regexp.Regexp
		known map[string]bool
	}{
		{regexp.MustCompile("conditions?\\s+`([A-Za-z]+)`"), collectMatches(t, map[string]bool{}, "api", `\tCondition\w+ = "(\w+)"`)},
		{regexp.MustCompile("`([A-Z][A-Za-z]+)(?:=|`\\s+(?:is\\s+)?)(?:True|False|Unknown)\\b"), collectMatches(t, map[string]bool{}, "api", `\tCondition\w+ = "(\w+)"`)},
		{regexp.MustCompile("column\\s+`([A-Za-z ]+)`"), collectMatches(t, map[string]bool{}, "charts/phoneproof/files/crds", `jsonPath: \S+\n +name: ([A-Za-z ]+)`)},
		{regexp.MustCompile("`([A-Z][a-z]+(?:[A-Z][a-z]*)+)[`=]"), words},
		{regexp.MustCompile(`\b(phoneproof_[a-z0-9_]+[a-z0-9])`), words},
	}
	pages, err := findPages()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(root, page))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, u := range uses {
			for _, found := range u.use.FindAllStringSubmatch(string(content), -1) {
				name := histogram.ReplaceAllString(found[1], "")
				if !u.known[found[1]] && !u.known[name] && !slices.Contains(foreignNames, name) && !strings.HasPrefix(page, "docs/adr/") {
					t.Errorf("%s: %s is not in the code", page, name)
				}
			}
		}
	}
}

// collectMatches adds the last group that an expression matches in the files of a folder, but not in tests.
func collectMatches(t *testing.T, all map[string]bool, folder, expression string) map[string]bool {
	t.Helper()
	wanted := regexp.MustCompile(expression)
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) == ".md" {
			return err
		}
		content, err := os.ReadFile(path)
		for _, found := range wanted.FindAllStringSubmatch(string(content), -1) {
			all[found[len(found)-1]] = true
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(all).NotTo(BeEmpty())
	return all
}
