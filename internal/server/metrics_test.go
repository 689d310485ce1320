package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestMetrics_thatAreNamedElsewhereExist checks that the code defines each metric in the dashboard, the alerts and the
// documents.
func TestMetrics_thatAreNamedElsewhereExist(t *testing.T) {
	g := NewWithT(t)
	const root = "../../"
	defined := map[string]bool{}
	literal := regexp.MustCompile(`(?:Name:\s*|NewDesc\(|newGauge\(|gauge\(|counter\()"(phoneproof_[a-z_]+)"`)
	for _, folder := range []string{"internal", "controllers"} {
		g.Expect(filepath.WalkDir(root+folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, found := range literal.FindAllSubmatch(source, -1) {
				defined[string(found[1])] = true
			}
			return err
		})).To(Succeed())
	}
	g.Expect(defined).To(And(HaveKey("phoneproof_project_condition"), HaveKey("phoneproof_postgresql_up"), HaveKey("phoneproof_stored_requests")))

	histogram, used := regexp.MustCompile(`_(bucket|sum|count)$`), 0
	for file, pattern := range map[string]string{
		"charts/phoneproof/files/dashboard.json": `phoneproof_[a-z_]+`, "charts/phoneproof/files/alerts.yaml": `phoneproof_[a-z_]+`,
		"docs/operations.md": "`phoneproof_[a-z_]+", "docs/runbook.md": "`phoneproof_[a-z_]+",
	} {
		content, err := os.ReadFile(root + file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, name := range regexp.MustCompile(pattern).FindAllString(string(content), -1) {
			name = strings.Trim(name, "`")
			g.Expect(defined[name] || defined[histogram.ReplaceAllString(name, "")]).To(BeTrue(), "%s has the unknown metric %s", file, name)
			used++
		}
	}
	g.Expect(used).To(BeNumerically(">", 40))
}
