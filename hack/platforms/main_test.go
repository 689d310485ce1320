package main

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCheckPlatform(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	write := func(name, content string) { g.Expect(os.WriteFile(name, []byte(content), 0o600)).To(Succeed()) }
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write("send.go", "package m\n\nimport \"syscall\"\n\n"+
		"func Send() error { return syscall.Sendto(0, nil, syscall.MSG_EOR, nil) }\n")
	g.Expect(checkPlatform(t.Context(), "linux/arm64", ".")).To(Succeed())
	g.Expect(checkPlatform(t.Context(), "windows/amd64", ".")).To(MatchError(ContainSubstring("undefined: syscall.MSG_EOR")))
	g.Expect(checkPlatform(t.Context(), "windows", ".")).To(MatchError(ContainSubstring("is not like windows/amd64")))
	g.Expect(checkPlatform(t.Context(), "plan10/amd64", ".")).NotTo(Succeed())
}
