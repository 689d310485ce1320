package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// root is the folder of the repository.
const root = "../.."

// block is a fenced block of a page.
type block struct {
	page     string // path from the repository's root
	line     int    // of the fence
	language string
	text     string // without the indentation of the fence
}

// String returns the name of the block's test.
func (b block) String() string { return fmt.Sprintf("%d %s", b.line, b.firstLine()) }

func (b block) firstLine() string {
	first, _, _ := strings.Cut(strings.TrimSpace(b.text), "\n")
	return first
}

// findPages returns the paths of the pages from the repository's root.
func findPages() ([]string, error) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			path, err = filepath.Rel(root, path)
			pages = append(pages, filepath.ToSlash(path))
		}
		return err
	})
	return pages, err
}

// findBlocks returns the fenced blocks of a page. A fence that is not closed is an error.
func findBlocks(page, text string) ([]block, error) {
	var blocks []block
	var open *block
	var fence, indentation string
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		marker := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`~"))]
		switch {
		case open != nil && strings.HasPrefix(marker, fence) && strings.TrimSpace(trimmed) == marker:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indentation) + "\n"
		case len(marker) >= len("```"):
			fence, indentation = marker, line[:len(line)-len(trimmed)]
			open = &block{page: page, line: i + 1, language: strings.TrimSpace(strings.TrimPrefix(trimmed, marker))}
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the fence in line %d is not closed", page, open.line)
	}
	return blocks, nil
}

// matchRules maps each block to its rule. It also returns the blocks without exactly one rule, and the rules without a block.
func matchRules(blocks []block, rules []rule) (map[block]rule, []string) {
	matched := map[block]rule{}
	var wrong []string
	uses := make([]int, len(rules))
	for _, b := range blocks {
		found := 0
		for i, r := range rules {
			if r.page == b.page && r.language == b.language && strings.HasPrefix(strings.TrimSpace(b.text), r.begins) {
				matched[b] = r
				found++
				uses[i]++
			}
		}
		if found != 1 {
			wrong = append(wrong, fmt.Sprintf("%s:%d has %d rules in table_test.go: ```%s %s", b.page, b.line, found, b.language, b.firstLine()))
		}
	}
	for i, r := range rules {
		if uses[i] != 1 {
			wrong = append(wrong, fmt.Sprintf("the rule for %q in %s has %d blocks", r.begins, r.page, uses[i]))
		}
	}
	return matched, wrong
}

// TestBlocks checks every block of the pages. The blocks of a page build on each other, like for a reader.
func TestBlocks(t *testing.T) {
	g := NewWithT(t)
	pages, err := findPages()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(pages)).To(BeNumerically(">", 20))
	byPage := map[string][]block{}
	var all []block
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		g.Expect(err).NotTo(HaveOccurred())
		blocks, err := findBlocks(page, string(text))
		g.Expect(err).NotTo(HaveOccurred())
		byPage[page] = blocks
		all = append(all, blocks...)
	}
	matched, wrong := matchRules(all, rules)
	for _, problem := range wrong {
		t.Error(problem)
	}
	for _, page := range pages {
		blocks := slices.DeleteFunc(byPage[page], func(b block) bool { return matched[b].page == "" })
		if len(blocks) == 0 {
			continue
		}
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) { // in a pattern of -run, a slash separates levels
			r := newReader(t, page)
			for _, b := range blocks {
				t.Run(b.String(), func(t *testing.T) { matched[b].check(t, r, b) })
			}
			NewWithT(t).Expect(r.rewriteSamples()).To(Succeed())
		})
	}
}

func TestFindBlocks(t *testing.T) {
	g := NewWithT(t)
	g.Expect(findBlocks("p", "a\n```sh\nb `c`\n\n```\n1. d\n   ```yaml\n   e:\n     f\n   ```\n~~~\n```\n~~~\n")).To(Equal([]block{
		{"p", 2, "sh", "b `c`\n\n"}, {"p", 7, "yaml", "e:\n  f\n"}, {"p", 11, "", "```\n"},
	}))
	_, err := findBlocks("p", "```sh\nb")
	g.Expect(err).To(MatchError("p: the fence in line 1 is not closed"))
}

func TestMatchRules_refusesWhatNoRuleNames(t *testing.T) {
	g := NewWithT(t)
	known, added := block{"p", 2, "sh", "make demo\n"}, block{"p", 9, "sh", "curl example.com\n"}
	named := rule{page: "p", language: "sh", begins: "make demo"}
	_, wrong := matchRules([]block{known}, []rule{named})
	g.Expect(wrong).To(BeEmpty())
	_, wrong = matchRules([]block{known, added}, []rule{named})
	g.Expect(wrong).To(ConsistOf(ContainSubstring("p:9 has 0 rules")))
	_, wrong = matchRules(nil, []rule{named})
	g.Expect(wrong).To(ConsistOf(ContainSubstring("has 0 blocks")))
	_, wrong = matchRules([]block{known}, []rule{named, named})
	g.Expect(wrong).To(ContainElement(ContainSubstring("p:2 has 2 rules")))
}
