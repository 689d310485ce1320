//go:build linux

package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// bin is the folder of the programs: phoneproof, as make builds it, and quickdemo.
var bin string

func TestMain(m *testing.M) {
	// A process starts with the signals ignored that this one ignores, as under nohup; those that it catches have their default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	bin, _ = os.MkdirTemp("", "quickdemo-test-")
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

var buildPrograms = sync.OnceValues(func() (string, error) {
	script := `source ../quickdemo.sh; build "$1"`
	output, err := exec.Command("bash", "-c", script, "bash", bin).CombinedOutput()
	return string(output), err
})

// process is a command, which a test starts and looks at while it runs.
type process struct {
	Gomega

	cmd    *exec.Cmd
	tmp    string // its folder for temporary files
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	output string // what it has printed so far
	stderr bytes.Buffer
}

// startDemo starts the demo. All that it starts can be known by an environment variable.
func startDemo(t *testing.T, args ...string) *process {
	t.Helper()
	output, err := buildPrograms()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), output)
	return startCommand(t, append([]string{filepath.Join(bin, "quickdemo"), "-program=" + filepath.Join(bin, "phoneproof")}, args...)...)
}

func startCommand(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Gomega: NewWithT(t), tmp: t.TempDir(), cmd: exec.Command(args[0], args[1:]...)}
	p.cmd.Env = append(os.Environ(), "TMPDIR="+p.tmp, "QUICKDEMO_TEST="+p.tmp)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	p.Expect(err).NotTo(HaveOccurred())
	p.stdin, err = p.cmd.StdinPipe()
	p.Expect(err).NotTo(HaveOccurred())
	p.lines = bufio.NewScanner(stdout)
	p.Expect(p.cmd.Start()).To(Succeed())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// readTo reads on until a line holds a text, and returns that line; an empty text reads to the end.
func (p *process) readTo(text string) string {
	for p.lines.Scan() {
		p.output += p.lines.Text() + "\n"
		if text != "" && strings.Contains(p.lines.Text(), text) {
			return p.lines.Text()
		}
	}
	return ""
}

// awaitEnd returns the exit code; -1 stands for a signal.
func (p *process) awaitEnd() int {
	p.readTo("")
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// findRunning returns the processes that the command has started, and itself.
func (p *process) findRunning() []string {
	var running []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environments {
		content, _ := os.ReadFile(name) // nothing if it has just ended
		if bytes.Contains(content, []byte("QUICKDEMO_TEST="+p.tmp+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			running = append(running, filepath.Dir(name)+": "+string(line))
		}
	}
	return running
}

// expectNothingLeft expects that processes and files are gone.
func (p *process) expectNothingLeft() {
	p.Expect(p.findRunning()).To(BeEmpty())
	p.Expect(os.ReadDir(p.tmp)).To(BeEmpty())
}

// differing is what differs from run to run, and its names.
var differing = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`/\S*/phoneproof-demo-\d+`), "FOLDER"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+|v1,[A-Za-z0-9+/=]+|\b[0-9a-f]{64}\b`), "SIGNATURE"},
	{regexp.MustCompile(`\b(evt_|vr)[a-z0-9]{24,}|wamid\.[A-Za-z0-9+/=]+|/v/[A-Za-z0-9_-]{40,}`), "ID"},
	{regexp.MustCompile(`([0-9A-Z]{4}-){3}[0-9A-Z]{4}\b`), "CODE"},
	{regexp.MustCompile(`(: |"code": ")\d{6}(\d\d)?\b|\b\d{8} is your`), "DIGITS"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|webhook-timestamp: \d+`), "TIME"},
	{regexp.MustCompile(`"state":"(sending|delivered","status":200|delivered)"?`), "STATE"},
	{regexp.MustCompile(`[0-9.]+ s to start and play`), "SECONDS"},
}

func mask(output string) string {
	for _, d := range differing {
		output = d.pattern.ReplaceAllString(output, d.name)
	}
	return output
}

// TestDemo_pastedLinesHaveTheSameAnswers runs the demo, and once more in which a shell makes each call, from the line as it is printed.
func TestDemo_pastedLinesHaveTheSameAnswers(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed, so no line is pasted")
	}
	alone := startDemo(t)
	alone.Expect(alone.awaitEnd()).To(BeZero(), "%s", &alone.stderr)
	alone.expectNothingLeft()

	pasted := startDemo(t, "-paste")
	key := strings.TrimPrefix(pasted.readTo("$ API_KEY="), "  $ ")
	calls := 0
	for line := pasted.readTo("$ curl "); line != ""; line = pasted.readTo("$ curl ") {
		output, err := exec.Command("bash", "-c", key+"\n"+strings.TrimPrefix(line, "  $ ")).CombinedOutput()
		pasted.Expect(err).NotTo(HaveOccurred(), "%s: %s", line, output)
		_, err = pasted.stdin.Write(append(bytes.TrimSpace(output), '\n'))
		pasted.Expect(err).NotTo(HaveOccurred())
		calls++
	}
	pasted.Expect(pasted.awaitEnd()).To(BeZero(), "%s", &pasted.stderr)
	pasted.Expect(mask(pasted.output)).To(Equal(mask(alone.output)))
	pasted.Expect(calls).To(And(Equal(strings.Count(alone.output, "$ curl ")), BeNumerically(">=", 19)))
	pasted.Expect(strings.Count(pasted.output, `"status":"VERIFIED"`)).To(Equal(4))
	pasted.Expect(strings.Count(pasted.output, "checked: both signatures are right")).To(Equal(7))
}

func TestDemo_namesTheStepThatFails(t *testing.T) {
	t.Run("a wrong answer", func(t *testing.T) {
		p := startDemo(t, "-paste")
		p.readTo("== 3.")
		_, err := io.WriteString(p.stdin, `{"requestId":"vr1","waLink":"https://wa.me/1"}`+"\n{}\n"+`{"status":"PENDING"}`+"\n")
		p.Expect(err).NotTo(HaveOccurred())
		p.Expect(p.awaitEnd()).To(Equal(1))
		p.Expect(p.stderr.String()).To(Equal(
			"demo: 3. A number is verified on WhatsApp: expected the status \"VERIFIED\", got \"PENDING\"\n"))
		p.expectNothingLeft()
	})
	t.Run("phoneproof ends", func(t *testing.T) {
		p := startDemo(t, "-paste")
		p.readTo("== 3.")
		p.Expect(exec.Command("kill", "-KILL", filepath.Base(strings.Split(p.findServer(), ":")[0])).Run()).To(Succeed())
		p.Expect(p.stdin.Close()).To(Succeed())
		p.Expect(p.awaitEnd()).To(Equal(1))
		p.Expect(p.stderr.String()).To(HavePrefix("demo: 3. A number is verified on WhatsApp: phoneproof has ended (signal: killed)"))
		p.expectNothingLeft()
	})
	t.Run("phoneproof does not start", func(t *testing.T) {
		p := startDemo(t, "-program=/bin/false")
		p.Expect(p.awaitEnd()).To(Equal(1))
		p.Expect(p.stderr.String()).To(HavePrefix("demo: 2. phoneproof serves it from memory, "))
		p.Expect(p.stderr.String()).To(ContainSubstring("phoneproof has ended (exit status 1)"))
		p.expectNothingLeft()
	})
}

// findServer returns the process of phoneproof.
func (p *process) findServer() string {
	for _, line := range p.findRunning() {
		if strings.Contains(line, "\x00dev\x00") {
			return line
		}
	}
	p.Expect("the process").To(Equal("found"))
	return ""
}

func TestDemo_takesOtherPorts(t *testing.T) {
	var busy []string
	for _, address := range []string{"127.0.0.1:8080", "127.0.0.1:8090"} {
		if listener, err := net.Listen("tcp", address); err == nil { // else it is busy already
			t.Cleanup(func() { _ = listener.Close() })
		}
		busy = append(busy, address)
	}
	p := startDemo(t)
	p.Expect(p.awaitEnd()).To(BeZero(), "%s", &p.stderr)
	for _, address := range busy {
		p.Expect(p.output).NotTo(ContainSubstring(address))
	}
}

func TestDemo_startsOnceMoreIfAPortIsTakenMeanwhile(t *testing.T) {
	script := filepath.Join(t.TempDir(), "phoneproof")
	content := "#!/bin/sh\n[ -e $0.tried ] && exec \"$REAL\" \"$@\"\ntouch $0.tried\nexec \"$REAL\" \"$@\" --bind-address $BUSY\n"
	NewWithT(t).Expect(os.WriteFile(script, []byte(content), 0o700)).To(Succeed())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	t.Setenv("REAL", filepath.Join(bin, "phoneproof"))
	t.Setenv("BUSY", listener.Addr().String())
	p := startDemo(t, "-program="+script)
	p.Expect(p.awaitEnd()).To(BeZero(), "%s", &p.stderr)
	p.Expect(p.output).To(ContainSubstring("Another program has taken a port"))
	p.expectNothingLeft()
}

func TestDemo_leavesNothingRunning(t *testing.T) {
	for _, moment := range []string{"PhoneProof on this machine", "$ API_KEY=", "== 3.", "== 6.", "Ctrl-C ends it"} {
		for name, number := range map[string]syscall.Signal{
			"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL,
		} {
			t.Run(name+" at "+moment, func(t *testing.T) {
				p := startDemo(t, "-stay")
				p.readTo(moment)
				p.Expect(p.cmd.Process.Signal(number)).To(Succeed())
				code := p.awaitEnd()
				if number == syscall.SIGKILL {
					p.Eventually(p.findRunning).WithTimeout(10 * time.Second).Should(BeEmpty())
					return
				}
				p.Expect(code).To(BeElementOf(0, 130)) // 0 if it had played all
				p.expectNothingLeft()
			})
		}
	}
}

func TestDemo_leavesNothingOfTheBuildRunning(t *testing.T) {
	for name, number := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			tools := t.TempDir()
			NewWithT(t).Expect(os.WriteFile(filepath.Join(tools, "make"), []byte("#!/bin/sh\nsleep 60 & sleep 60\n"), 0o700)).To(Succeed())
			p := startCommand(t, "env", "PATH="+tools+":"+os.Getenv("PATH"), "../quickdemo.sh")
			p.Eventually(func() string { return strings.Join(p.findRunning(), "\n") }).WithTimeout(30 * time.Second).
				Should(ContainSubstring("sleep\x0060"))
			p.Expect(p.cmd.Process.Signal(number)).To(Succeed())
			p.Expect(p.awaitEnd()).To(Equal(130), "%s", &p.stderr)
			p.expectNothingLeft()
		})
	}
}

func TestDemo_buildsElsewhereIfBinCannotBeWritten(t *testing.T) {
	g, checkout, cache := NewWithT(t), t.TempDir(), t.TempDir()
	g.Expect(os.Mkdir(filepath.Join(checkout, "hack"), 0o700)).To(Succeed())
	for _, name := range []string{"lib.sh", "quickdemo.sh"} {
		content, err := os.ReadFile(filepath.Join("..", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(checkout, "hack", name), content, 0o700)).To(Succeed())
	}
	choose := func() string {
		cmd := exec.Command("bash", "-c", "source hack/quickdemo.sh; choose_folder 2>&1")
		cmd.Dir, cmd.Env = checkout, append(os.Environ(), "XDG_CACHE_HOME="+cache)
		output, _ := cmd.Output()
		return strings.TrimSpace(string(output))
	}
	g.Expect(choose()).To(Equal("bin"))
	// A file in the place of the folder refuses root, too.
	g.Expect(os.Remove(filepath.Join(checkout, "bin"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(checkout, "bin"), nil, 0o600)).To(Succeed())
	g.Expect(choose()).To(Equal(filepath.Join(cache, "phoneproof")))
	g.Expect(os.Remove(filepath.Join(cache, "phoneproof"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(cache, "phoneproof"), nil, 0o600)).To(Succeed())
	g.Expect(choose()).To(ContainSubstring("can be written; set XDG_CACHE_HOME"))
}

// TestCheckSignatures has signatures that openssl made.
func TestCheckSignatures(t *testing.T) {
	g := NewWithT(t)
	const secret, body = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", `{"event":"verification.success"}`
	now := time.Unix(1795745669, 0)
	signed := func() http.Header {
		header := http.Header{}
		header.Set("Webhook-Id", "evt_1")
		header.Set("Webhook-Timestamp", "1795745669")
		header.Set("Webhook-Signature", "v1,other v1,yOuAb24xT3vectcsXpI+8HFfYsUgvGJdyvadY4qIMn8=")
		header.Set("X-Webhook-Signature", "3506728efa173aa14144bbecc510c1d5b0997d540879d9dc9e3e1c56b7bb7a00")
		return header
	}
	g.Expect(checkSignatures(secret, signed(), []byte(body), now)).To(Succeed())
	g.Expect(checkSignatures(secret, signed(), []byte(body+" "), now)).NotTo(Succeed())
	g.Expect(checkSignatures("whsec_"+secret, signed(), []byte(body), now)).NotTo(Succeed())
	g.Expect(checkSignatures(secret, signed(), []byte(body), now.Add(time.Hour))).NotTo(Succeed())
	for name := range signed() {
		header := signed()
		header.Set(name, header.Get(name)+"1")
		g.Expect(checkSignatures(secret, header, []byte(body), now)).NotTo(Succeed(), name)
		header.Del(name)
		g.Expect(checkSignatures(secret, header, []byte(body), now)).NotTo(Succeed(), name)
	}
}
