package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// kubeconfig is where `make cluster-up` leaves it.
const kubeconfig = "bin/cluster/kubeconfig"

// shell runs commands and shows them as somebody would type them.
type shell struct {
	out io.Writer
	env []string
	dir string

	started  []*exec.Cmd
	forwards sync.WaitGroup // of their ends
}

func newShell(out io.Writer, root string) *shell {
	return &shell{out: out, dir: root, env: append(os.Environ(),
		"PATH="+filepath.Join(root, "bin", "kube")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+filepath.Join(root, kubeconfig))}
}

func (s *shell) textf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

func (s *shell) title(number int, title string) { s.textf("\n== %d. %s\n", number, title) }

func (s *shell) command(line string) { s.textf("  $ %s\n", line) }

// run runs a command, shows it, and shows what it prints while it prints it.
func (s *shell) run(ctx context.Context, name string, args ...string) error {
	s.command(typed(name, args))
	return s.quietly(ctx, nil, name, args...)
}

// pipe runs a command that reads a text, which is shown as what would be typed before the pipe.
func (s *shell) pipe(ctx context.Context, text, before, name string, args ...string) error {
	s.command(before + " | " + typed(name, args))
	return s.quietly(ctx, strings.NewReader(text), name, args...)
}

func (s *shell) quietly(ctx context.Context, in io.Reader, name string, args ...string) error {
	cmd := s.prepare(ctx, name, args...)
	cmd.Stdin = in
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", name, err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		s.textf("    %s\n", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", typed(name, args), err)
	}
	return nil
}

// output runs a command without showing it, and returns what it prints.
func (s *shell) output(ctx context.Context, name string, args ...string) (string, error) {
	output, err := s.prepare(ctx, name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", typed(name, args), err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// forwarding is how kubectl reports the port that it chose.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:[0-9]+) -> `)

// forward runs a port-forward with kubectl until end, on a free port that kubectl chooses, and returns its base URL. If
// kubectl ends before that, lost gets an error with what it printed.
func (s *shell) forward(ctx context.Context, lost context.CancelCauseFunc, args ...string) (string, error) {
	line := typed("kubectl", args)
	s.command(line + " &")
	cmd := s.prepare(ctx, "kubectl", args...)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // must not outlive the demo, however that ends
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("%s: %w", line, err)
	}
	address := make(chan string, 1) // for one service on one address
	s.forwards.Go(func() {
		var printed []string
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			printed = append(printed, lines.Text())
			if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
				address <- match[1]
			}
		}
		_ = cmd.Wait() // its state has all there is to know
		lost(fmt.Errorf("%s ended (%s): %s", line, cmd.ProcessState, strings.Join(printed, "; ")))
	})
	s.started = append(s.started, cmd)
	silent := time.NewTimer(patience)
	defer silent.Stop()
	select {
	case found := <-address:
		s.textf("    Forwarding from %s\n", found)
		return "http://" + found, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-silent.C:
		return "", fmt.Errorf("%s: no port reported within %s", line, patience)
	}
}

// end ends the port-forwards.
func (s *shell) end() {
	for _, cmd := range s.started {
		_ = cmd.Process.Kill() // it may have ended, and says so with an error
	}
	s.forwards.Wait()
}

func (s *shell) prepare(ctx context.Context, name string, args ...string) *exec.Cmd {
	// LookPath searches this process's own PATH, so the tools of bin/kube are named outright.
	if tool := filepath.Join(s.dir, "bin", "kube", name); name == "kubectl" {
		name = tool
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the demo's own commands
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

var plain = regexp.MustCompile(`^[-+\w./:=,@%]+$`)

// typed returns a command as a shell takes it.
func typed(name string, args []string) string {
	words := []string{name}
	for _, arg := range args {
		if !plain.MatchString(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
