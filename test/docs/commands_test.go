package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
)

var (
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	makeVariable = regexp.MustCompile(`^[A-Z_]+$`)
)

// makeTargets checks that the targets and variables of a make command exist.
func makeTargets(t *testing.T, _ *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	g.Expect(err).NotTo(HaveOccurred())
	var targets []string
	for _, found := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, found[1])
	}
	for line := range strings.Lines(b.text) {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(command)
		g.Expect(words[0]).To(Equal("make"))
		for _, word := range words[1:] {
			if name, _, ok := strings.Cut(word, "="); ok {
				g.Expect(name).To(MatchRegexp(makeVariable.String()))
				g.Expect(string(makefile)).To(MatchRegexp(`(?m)^`+name+` \?=|\$[({]`+name+`[)}]`), "a variable")
			} else {
				g.Expect(targets).To(ContainElement(word))
			}
		}
	}
}

// commandLines returns the commands of a console or a script, one per line, without comments.
func commandLines(b block) []string {
	var commands []string
	for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
		line = strings.TrimSpace(line)
		if b.language == "console" {
			var ok bool
			if line, ok = strings.CutPrefix(line, "$ "); !ok {
				continue
			}
		}
		if command, _, _ := strings.Cut(line, " # "); strings.TrimSpace(command) != "" {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// checkInstall runs the commands with programs that only record their calls: the chart must exist and have the values.
// hack/chart.sh renders it with Helm, and test/e2e installs it.
func checkInstall(t *testing.T, r *reader, b block) {
	t.Helper()
	g := NewWithT(t)
	r.run(t, strings.Join(commandLines(b), "\n"))
	var values map[string]any
	content, err := os.ReadFile(filepath.Join(root, "charts/phoneproof/values.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.Unmarshal(content, &values)).To(Succeed())
	helm := 0
	for _, call := range r.recordedCalls(t) {
		words := strings.Fields(call)
		switch words[0] {
		case "make":
			makeTargets(t, r, block{text: call})
		case "helm":
			helm++
			g.Expect(words[2:4]).To(Equal([]string{"phoneproof", "charts/phoneproof"}))
			for i, word := range words {
				if word == "--set" {
					checkValue(t, values, words[i+1])
				}
			}
		}
	}
	g.Expect(helm).To(Equal(1))
}

// checkValue checks that the chart has the value that is set.
func checkValue(t *testing.T, values map[string]any, setting string) {
	t.Helper()
	path, _, ok := strings.Cut(setting, "=")
	NewWithT(t).Expect(ok).To(BeTrue(), setting)
	var at any = values
	for name := range strings.SplitSeq(path, ".") {
		object, _ := at.(map[string]any)
		NewWithT(t).Expect(object).To(HaveKey(name), path)
		at = object[name]
	}
}

var flagPattern = regexp.MustCompile(`--[a-z-]+`)

// flagsExist checks that phoneproof has the subcommands and flags. The values are up to the reader.
func flagsExist(t *testing.T, r *reader, b block) {
	t.Helper()
	for _, line := range commandLines(b) {
		help := r.run(t, strings.Join(strings.Fields(line)[:2], " ")+" --help")
		flags := flagPattern.FindAllString(line, -1)
		NewWithT(t).Expect(flags).NotTo(BeEmpty())
		for _, name := range flags {
			NewWithT(t).Expect(help).To(MatchRegexp(name+`\b`), line)
		}
	}
}

// verifyTokenBlock checks that the command prints the verify token that phoneproof expects from Meta.
func verifyTokenBlock(t *testing.T, r *reader, b block) {
	t.Helper()
	lookPathOrSkip(t, "openssl")
	r.env["APP_SECRET"] = "0123456789abcdef0123456789abcdef"
	NewWithT(t).Expect(r.run(t, b.text)).To(Equal(whatsapp.VerifyToken("NAMESPACE/NAME", []byte(r.env["APP_SECRET"])) + "\n"))
}
