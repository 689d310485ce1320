package sdk

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// aroundGo makes a program of the lines in Go, which stand in a function that returns an error.
const aroundGo = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	phoneproof "github.com/phoneproof/phoneproof/sdk/go"
)

func verify(ctx context.Context) error {
%s	if err == nil {
		fmt.Println(status.Status, status.PhoneNumber)
	}
	return err
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := verify(ctx); err != nil {
		panic(err)
	}
}
`

// programs are the languages of the programs in README.md, and what runs each in the folder of its library.
var programs = map[string]struct {
	block, file string
	command     []string
}{
	"go":         {"go", "source/readme/main.go", []string{"go", "run", "-C", "source", "./readme"}},
	"typescript": {"js", "readme.mjs", []string{"node", "readme.mjs"}},
	"python":     {"python", "readme.py", []string{"python3", "-B", "readme.py"}},
}

// TestReadme runs the programs of README.md with the packed libraries, and plays their user.
func TestReadme(t *testing.T) {
	packed(t)
	w := startWorld(t)
	content, err := os.ReadFile("../../README.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for language, program := range programs {
		t.Run(language, func(t *testing.T) {
			g := NewWithT(t)
			folder := installed(t, language)
			blocks := regexp.MustCompile("(?ms)^```"+program.block+"\n(.*?)^```$").FindAllSubmatch(content, -1)
			g.Expect(blocks).To(HaveLen(1))
			source := blocks[0][1]
			g.Expect(bytes.Count(source, []byte("\n"))).To(BeNumerically("<=", 10), "ten lines")
			if language == "go" {
				source = bytes.Replace([]byte(aroundGo), []byte("%s"), source, 1)
			}
			file := filepath.Join(folder, program.file)
			g.Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
			g.Expect(os.WriteFile(file, source, 0o600)).To(Succeed())

			run := exec.CommandContext(t.Context(), program.command[0], program.command[1:]...)
			run.Dir = folder
			run.Env = append(os.Environ(), "PHONEPROOF_URL="+w.api, "PHONEPROOF_KEY="+w.key,
				"GOMODCACHE="+filepath.Join(packed(t), "modules"), "GOPROXY=off", "GODEBUG=goindex=0")
			var stderr bytes.Buffer
			run.Stderr = &stderr
			stdout, err := run.StdoutPipe()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(run.Start()).To(Succeed())
			lines := bufio.NewReader(stdout)
			link, err := lines.ReadString('\n')
			g.Expect(err).NotTo(HaveOccurred(), "%s", &stderr)
			g.Expect(w.send("+4915112345678", link[:len(link)-1])).To(Succeed())
			rest, err := io.ReadAll(lines)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(run.Wait()).To(Succeed(), "%s", &stderr)
			g.Expect(string(rest)).To(Equal("VERIFIED +4915112345678\n"))
		})
	}
}

// TestSizes expects the artefacts to be small.
func TestSizes(t *testing.T) {
	for pattern, limit := range map[string]int64{"*.tgz": 15 << 10, "*.whl": 20 << 10} {
		t.Run(pattern, func(t *testing.T) {
			g := NewWithT(t)
			installed(t, map[string]string{"*.tgz": "typescript", "*.whl": "python"}[pattern])
			files, err := filepath.Glob(filepath.Join(packed(t), "artefacts", pattern))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(files).To(HaveLen(1))
			info, err := os.Stat(files[0])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Size()).To(BeNumerically("<=", limit), files[0])
		})
	}
}
