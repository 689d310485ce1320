package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// patience is how long an answer of a driver may take.
const patience = 40 * time.Second

// object is what JSON has between braces.
type object = map[string]any

// driver is a program with a library. It reads operations as lines of JSON, and answers each with a line: drivers has them.
type driver struct {
	language string
	command  *exec.Cmd
	stdin    io.WriteCloser
	lines    chan []byte
	stderr   bytes.Buffer
	id       int
}

// failure is an error of a library.
type failure struct {
	Code          string  `json:"code"`
	Reason        string  `json:"reason"`
	Field         string  `json:"field"`
	Status        int     `json:"status"`
	HTTPRequestID string  `json:"httpRequestId"`
	RetryAfter    float64 `json:"retryAfter"` // seconds
	Kind          string  `json:"kind"`
	Text          string  `json:"text"`
}

// reply is a driver's answer.
type reply struct {
	ID    int             `json:"id"`
	OK    json.RawMessage `json:"ok"`
	Error *failure        `json:"error"`
}

// languages are those of the libraries.
var languages = []string{"go", "typescript", "python"}

// packed is the folder in which make sdk installed the artefacts, each in a folder named by its language.
func packed(tb testing.TB) string {
	tb.Helper()
	folder := os.Getenv("PHONEPROOF_SDK")
	if folder == "" {
		tb.Skip("make sdk packs the libraries and runs this")
	}
	return folder
}

// installed returns the folder of a language, or skips the test if the language is not there.
func installed(tb testing.TB, language string) string {
	tb.Helper()
	folder := filepath.Join(packed(tb), language)
	if reason, err := os.ReadFile(folder + ".skipped"); err == nil {
		tb.Skip(string(bytes.TrimSpace(reason)))
	}
	return folder
}

// startDriver runs the driver of a language in a folder with its library, until the test ends.
func startDriver(tb testing.TB, language, folder string, environment ...string) *driver {
	tb.Helper()
	commands := map[string][]string{"go": {"./driver"}, "typescript": {"node", "driver.mjs"}, "python": {"python3", "-B", "driver.py"}}
	arguments := commands[language]
	d := &driver{language: language, command: exec.Command(arguments[0], arguments[1:]...), lines: make(chan []byte, 1)}
	d.command.Dir, d.command.Stderr = folder, &d.stderr
	d.command.Env = append(os.Environ(), environment...)
	d.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := d.command.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if d.stdin, err = d.command.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	if err := d.command.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		defer close(d.lines)
		for reader := bufio.NewReaderSize(stdout, 1<<20); ; {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			d.lines <- line
		}
	}()
	tb.Cleanup(d.stop)
	return d
}

// stop ends the driver.
func (d *driver) stop() {
	_ = d.stdin.Close()
	_ = d.command.Process.Kill() // it may have ended
	_ = d.command.Wait()
}

// call has the driver do an operation. A driver that ends, is silent, or answers what it was not asked breaks the test.
func (d *driver) call(op string, args object) reply {
	d.id++
	line, err := json.Marshal(object{"id": d.id, "op": op, "args": args})
	if err != nil {
		panic(err)
	}
	if _, err := d.stdin.Write(append(line, '\n')); err != nil {
		return d.broken("write %s: %v", op, err)
	}
	select {
	case line, open := <-d.lines:
		if !open {
			_ = d.command.Wait()
			return d.broken("it ended in %s", op)
		}
		var r reply
		if err := json.Unmarshal(line, &r); err != nil || r.ID != d.id || (r.OK == nil) == (r.Error == nil) {
			return d.broken("it answers %s to %s: %v", line, op, err)
		}
		return r
	case <-time.After(patience):
		return d.broken("it is silent in %s", op)
	}
}

// broken is what becomes of a driver that does not work.
func (d *driver) broken(format string, args ...any) reply {
	panic(brokenDriver(fmt.Sprintf(format, args...) + "\n" + d.stderr.String()))
}

// brokenDriver is a panic that no play expects.
type brokenDriver string
