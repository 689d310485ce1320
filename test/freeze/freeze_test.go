package freeze_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/freeze"
)

// TestProcesses_noneRunsAfterIt writes to an echo process, many times: a byte that is written after the freeze is answered only
// after the thaw.
func TestProcesses_noneRunsAfterIt(t *testing.T) {
	g := NewWithT(t)
	echo := exec.CommandContext(t.Context(), "cat")
	in, err := echo.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	out, err := echo.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(echo.Start()).To(Succeed())
	defer func() {
		_ = echo.Process.Kill()
		_ = echo.Wait()
	}()

	answers := make(chan byte)
	go func() {
		defer close(answers)
		one := make([]byte, 1)
		for {
			if _, err := io.ReadFull(out, one); err != nil {
				return
			}
			answers <- one[0]
		}
	}()
	for i := range byte(100) {
		g.Expect(freeze.Processes(echo.Process.Pid)).To(Succeed())
		_, err := in.Write([]byte{i})
		g.Expect(err).NotTo(HaveOccurred())
		g.Consistently(answers, 2*time.Millisecond, time.Millisecond).ShouldNot(Receive(), "answered while frozen")
		g.Expect(freeze.Thaw(echo.Process.Pid)).To(Succeed())
		g.Eventually(answers).Should(Receive(Equal(i)))
	}
}

// TestFamily_noChildRunsAfterIt freezes a shell that keeps forking, many times: none of its children writes after that.
func TestFamily_noChildRunsAfterIt(t *testing.T) {
	g := NewWithT(t)
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(output.Close()).To(Succeed()) }()
	shell := exec.CommandContext(t.Context(), "sh", "-c", "while :; do echo & echo & echo & echo & wait; done")
	shell.Stdout = output
	g.Expect(shell.Start()).To(Succeed())
	defer func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
	}()

	written := func() int64 {
		t.Helper()
		info, err := output.Stat()
		g.Expect(err).NotTo(HaveOccurred())
		return info.Size()
	}
	for range 100 {
		thaw, err := freeze.Family(shell.Process.Pid)
		g.Expect(err).NotTo(HaveOccurred())
		before := written()
		g.Consistently(written, 2*time.Millisecond, time.Millisecond).Should(Equal(before), "written while frozen")
		g.Expect(thaw()).To(Succeed())
		g.Eventually(written).Should(BeNumerically(">", before))
	}
}

func TestProcesses_oneThatHasEndedCountsAsStopped(t *testing.T) {
	g := NewWithT(t)
	ended := exec.CommandContext(t.Context(), "true")
	g.Expect(ended.Run()).To(Succeed())
	g.Expect(freeze.Processes(ended.Process.Pid)).To(Succeed())
	g.Expect(freeze.Thaw(ended.Process.Pid)).To(Succeed())
}
