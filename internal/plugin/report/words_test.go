package report

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
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

var update = flag.Bool("update", false, "write words.txt")

var (
	// word is what the list takes: letters alone, so no number, and not as long as a secret.
	word = regexp.MustCompile(`^[A-Za-z]{1,24}$`)
	// dotted are names of fields and events, which the list takes as a whole.
	dotted = regexp.MustCompile(`^[A-Za-z]{1,24}(\.[A-Za-z]{1,24})+(/[a-z]+)?$`)
)

// shipped are the folders whose programs write logs, conditions and Events.
var shipped = []string{"api", "cmd/phoneproof", "controllers", "internal"}

// The list need not follow each change of a text: a word that it lacks is hidden.
func TestWords_areThoseOfTheSources(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, folder := range shipped {
		g.Expect(filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() && slices.Contains([]string{"simulator", "dev", "plugin", "testdata"}, entry.Name()) {
				if err == nil {
					err = filepath.SkipDir
				}
				return err
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			return collectWords(path, found)
		})).To(Succeed())
	}
	list := make([]string, 0, len(found))
	for one := range found {
		list = append(list, one)
	}
	slices.Sort(list)
	text := strings.Join(list, "\n") + "\n"
	if *update {
		g.Expect(os.WriteFile("words.txt", []byte(text), 0o600)).To(Succeed())
		return
	}
	listed := strings.Fields(words)
	for _, one := range listed {
		g.Expect(word.MatchString(one) || dotted.MatchString(one)).To(BeTrue(), one)
	}
	missing := slices.DeleteFunc(list, func(one string) bool { return slices.Contains(listed, one) })
	g.Expect(len(missing)).To(BeNumerically("<=", len(listed)/20),
		"words.txt lacks too many words, which reports would hide: run go test ./internal/plugin/report -run TestWords -update")
}

// collectWords adds the words of the texts of a file.
func collectWords(path string, found map[string]bool) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if _, isTag := n.(*ast.Field); isTag {
			return true
		}
		literal, isText := n.(*ast.BasicLit)
		if !isText || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			return true
		}
		for _, one := range tokens.FindAllString(text, -1) {
			if whole := strings.TrimRight(one, "."); dotted.MatchString(whole) {
				found[whole] = true
				continue
			}
			for _, part := range parts.Split(one, -1) {
				if word.MatchString(part) {
					found[part] = true
				}
			}
		}
		return true
	})
	return nil
}
