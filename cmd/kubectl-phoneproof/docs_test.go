package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/test/repository"
)

var updateDocs = flag.Bool("update", false, "write the table of rights into docs/kubectl-plugin.md")

func newRoot() *cobra.Command {
	root := newCommandIn(&plugin.Env{Streams: genericiooptions.NewTestIOStreamsDiscard()})
	root.InitDefaultCompletionCmd() // cobra adds it when a command runs
	return root
}

// rightsTable returns the table of what each command declares.
func rightsTable() string {
	var table strings.Builder
	table.WriteString("\n| command | rights |\n|---|---|\n")
	for _, cmd := range runnable(newRoot()) {
		declared := plugin.RightsOf(cmd)
		if declared == nil {
			continue
		}
		lines := make([]string, 0, len(declared))
		for _, right := range declared {
			lines = append(lines, right.String())
		}
		fmt.Fprintf(&table, "| `%s` | %s |\n", strings.TrimPrefix(cmd.CommandPath(), "kubectl phoneproof "), strings.Join(lines, "<br>"))
	}
	return table.String() + "\n"
}

func TestDocs_rights(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(root, "docs", "kubectl-plugin.md")
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	before, rest, found := strings.Cut(string(content), "<!-- rights -->\n")
	g.Expect(found).To(BeTrue())
	table, after, found := strings.Cut(rest, "<!-- end -->")
	g.Expect(found).To(BeTrue())
	if *updateDocs {
		g.Expect(os.WriteFile(file, []byte(before+"<!-- rights -->\n"+rightsTable()+"<!-- end -->"+after), 0o600)).To(Succeed())
		return
	}
	g.Expect(table).To(Equal(rightsTable()), "run go test ./cmd/kubectl-phoneproof -run TestDocs_rights -update")
}

// command is a command of the plugin as pages name it.
var command = regexp.MustCompile("`(kubectl phoneproof [^`]+)`")

// What pages tell readers to type exists: the command, its flags, and as many arguments.
func TestDocs_commandsExist(t *testing.T) {
	g := NewWithT(t)
	root, err := repository.Root()
	g.Expect(err).NotTo(HaveOccurred())
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	specs, err := filepath.Glob(filepath.Join(root, "docs", "spec", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	commands := 0
	for _, page := range append(pages, specs...) {
		content, err := os.ReadFile(page)
		g.Expect(err).NotTo(HaveOccurred())
		for _, found := range command.FindAllStringSubmatch(string(content), -1) {
			commands++
			words := splitWords(found[1])[2:]
			cmd, rest, err := newRoot().Find(words)
			g.Expect(err).NotTo(HaveOccurred(), found[1])
			g.Expect(cmd.ParseFlags(rest)).To(Succeed(), found[1])
			g.Expect(cmd.ValidateArgs(cmd.Flags().Args())).To(Succeed(), found[1])
		}
	}
	g.Expect(commands).To(BeNumerically(">", 20))
}

// quoted are words of a command line.
var quoted = regexp.MustCompile(`"[^"]*"|\S+`)

func splitWords(line string) []string {
	words := quoted.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.Trim(words[i], `"`)
	}
	return words
}
