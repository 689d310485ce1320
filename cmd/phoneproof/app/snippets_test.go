package app

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// TestDev_printsSnippets runs the one in Go, and expects all to have the address and the key.
func TestDev_printsSnippets(t *testing.T) {
	d := startDev(t)
	_, printed, found := strings.Cut(string(d.out.Contents()), "\n"+printedSnippets)
	d.Expect(found).To(BeTrue())
	_, printed, _ = strings.Cut(printed, "sdk/go\":\n\n")
	inGo, others, _ := strings.Cut(printed, "\nTypeScript:\n\n")
	inTypeScript, inPython, _ := strings.Cut(others, "\nPython:\n\n")
	for _, snippet := range []string{inGo, inTypeScript, inPython} {
		d.Expect(snippet).To(And(ContainSubstring(d.api), ContainSubstring(d.key), ContainSubstring("user-1")))
	}

	library, err := filepath.Abs("../../../sdk/go")
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(filepath.Join(library, "client.go")).To(BeARegularFile(), "which go test has to know, too: it caches results")
	dir := t.TempDir()
	const module = "github.com/phoneproof/phoneproof/sdk/go"
	writeSecret(t, dir, "go.mod", "module snippet\ngo 1.24\nrequire "+module+" v0.0.0\nreplace "+module+" => "+library+"\n")
	writeSecret(t, dir, "main.go", `package main

import (
	"context"
	"fmt"

	phoneproof "`+module+`"
)

func run(ctx context.Context) error {
`+inGo+`
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println(err)
	}
}
`)
	built := filepath.Join(dir, "snippet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", built, ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	d.Expect(err).NotTo(HaveOccurred(), string(out))
	program := exec.CommandContext(t.Context(), built)
	stdout, err := program.StdoutPipe()
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(program.Start()).To(Succeed())
	lines := bufio.NewScanner(stdout)
	d.Expect(lines.Scan()).To(BeTrue())
	d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/+4915112345678/send", map[string]string{"link": lines.Text()})
	d.Expect(lines.Scan()).To(BeTrue())
	d.Expect(lines.Text()).To(Equal("VERIFIED"))
	d.Expect(program.Wait()).To(Succeed())
}
