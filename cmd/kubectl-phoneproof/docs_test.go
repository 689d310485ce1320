package main

import (
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

func newRoot() *cobra.Command {
	root := newCommandIn(&plugin.Env{Streams: genericiooptions.NewTestIOStreamsDiscard()})
	root.InitDefaultCompletionCmd() // cobra adds it when a command runs
	return root
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
