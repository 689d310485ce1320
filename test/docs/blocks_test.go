package docs

import (
	"fmt"
	"os"
	"path/filepath"
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

// TestBlocks checks the blocks that the rules name, each of which is there once. Those of a page build on each other, like for a reader.
func TestBlocks(t *testing.T) {
	for page, rules := range rules {
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) { // in a pattern of -run, a slash separates levels
			g := NewWithT(t)
			text, err := os.ReadFile(filepath.Join(root, page))
			g.Expect(err).NotTo(HaveOccurred())
			blocks, err := findBlocks(page, string(text))
			g.Expect(err).NotTo(HaveOccurred())
			r, uses := newReader(t, page), make([]int, len(rules))
			for _, b := range blocks {
				for i, rule := range rules {
					if rule.language == b.language && strings.HasPrefix(strings.TrimSpace(b.text), rule.begins) {
						uses[i]++
						t.Run(b.String(), func(t *testing.T) { rule.check(t, r, b) })
					}
				}
			}
			for i, rule := range rules {
				g.Expect(uses[i]).To(Equal(1), "blocks that begin with %s", rule.begins)
			}
			g.Expect(r.rewriteSamples()).To(Succeed())
		})
	}
}
