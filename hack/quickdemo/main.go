//go:build linux

// Command quickdemo plays PhoneProof on this machine alone: `phoneproof dev` serves a project from memory, with simulated messengers,
// and this program is the backend of a client, its webhook receiver, and the users. It prints each call as a line of curl.
//
// Invariant: nothing that it started outlives it, even if it is killed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

//go:embed project.yaml
var projectTemplate string

// options are the flags.
type options struct {
	program     string
	stay, paste bool
	built       int
}

func main() {
	runtime.LockOSThread() // the server is killed when the thread ends that started it
	var o options
	flag.StringVar(&o.program, "program", "bin/phoneproof", "the phoneproof to play")
	flag.BoolVar(&o.stay, "stay", false, "serve until a signal comes")
	flag.BoolVar(&o.paste, "paste", false, "make no call: read the answer to each printed line from standard input, as a line")
	flag.IntVar(&o.built, "built", 0, "how many seconds the build took")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, o)
	code := 0
	switch {
	case err == nil:
	case ctx.Err() != nil:
		code = 130
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// run plays everything, and ends the server.
func run(ctx context.Context, o options) error {
	began := time.Now()
	work, err := os.MkdirTemp("", "phoneproof-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // it is in the folder for temporary files
	ctx, cancel := context.WithCancelCause(ctx)
	s := &server{program: o.program, work: work, ended: make(chan struct{}), cancel: cancel}
	defer s.stopProcess()
	p := &player{ctx: ctx, out: os.Stdout, secrets: makeSecrets()}
	p.printf("PhoneProof on this machine alone, every messenger simulated: nothing here is true of a real phone, and nothing is kept.")
	if o.paste {
		p.pasted = bufio.NewScanner(os.Stdin)
	}
	if p.receiver, err = startReceiver(ctx, p.secrets["webhook-secret"]); err != nil {
		return err
	}
	defer p.receiver.Close() //nolint:errcheck // nothing is read from it any more
	if err := p.start(s); err != nil {
		return err
	}
	if err := p.playAll(); err != nil {
		return err
	}
	p.printf("\n== All of it was as expected: %d s to build, %.1f s to start and play.", o.built, time.Since(began).Seconds())
	if !o.stay {
		return nil
	}
	p.printf("Play on, with the phones of all users: %s/\nWebhooks appear here, and Ctrl-C ends it.", p.simulator)
	for {
		select {
		case e := <-p.receiver.events:
			p.printEvent(e)
		case <-s.ended:
			if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
				return err
			}
			return nil // a signal, which is the usual end
		}
	}
}

// makeSecrets returns the values of the Secret of the project. What begins with sim_ means nothing to a real messenger.
func makeSecrets() map[string]string {
	random := make([]byte, 64)
	_, _ = rand.Read(random)  // never fails
	return map[string]string{ //nolint:gosec // made up, or of the simulator
		"api-key":        hex.EncodeToString(random[:32]),
		"webhook-secret": "whsec_" + base64.StdEncoding.EncodeToString(random[32:]),
		"access-token":   "sim_4915112345670:demo",
		"app-secret":     "sim_4915112345670:demo",
		"bot-token":      "sim_ada_books_bot:demo",
	}
}

// start shows the project, and serves it. Ports that another program takes at the same moment are replaced.
func (p *player) start(s *server) error {
	for try := 1; ; try++ {
		addresses, err := findAddresses(p.ctx, "127.0.0.1:8080", "127.0.0.1:8090")
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		p.step = 0
		p.api, p.simulator = "http://"+addresses[0], "http://"+addresses[1]
		project := strings.NewReplacer("API_URL", p.api, "RECEIVER_URL", p.receiver.url).Replace(projectTemplate)
		p.printStep("A project, as the admin of a cluster applies it")
		p.printf("%s", indent(project))
		p.printStep("phoneproof serves it from memory, and simulates WhatsApp, Telegram and the phones")
		args := []string{
			"dev", "--project-file", filepath.Join(s.work, "project.yaml"), "--secrets-dir", filepath.Join(s.work, "secrets"),
			"--bind-address", addresses[0], "--simulator-bind-address", addresses[1],
		}
		p.printf("  $ %s %s\n  $ API_KEY=%s", s.program, strings.Join(args, " "), p.secrets["api-key"])
		p.printf("  This program is the backend of the bookshop, and takes its webhooks. Their secret is %s", p.secrets["webhook-secret"])
		err = s.start(p.ctx, project, p.secrets, args)
		if err == nil {
			return nil
		}
		if try == 5 || !strings.Contains(err.Error(), "address already in use") {
			return fmt.Errorf("%d. %s: %w", p.step, p.title, err)
		}
		p.printf("  Another program has taken a port: once more, with others.")
	}
}

// findAddresses returns addresses on loopback where nothing listens: the preferred ones, or others if they are taken.
func findAddresses(ctx context.Context, preferred ...string) ([]string, error) {
	var (
		config net.ListenConfig
		found  []string
	)
	for _, address := range preferred {
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			listener, err = config.Listen(ctx, "tcp", "127.0.0.1:0")
		}
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // nothing came in; open until all are found, so that they differ
		found = append(found, listener.Addr().String())
	}
	return found, nil
}

// server is the process of phoneproof.
type server struct {
	program, work string
	started       bool
	ended         chan struct{}
	cancel        context.CancelCauseFunc
}

// start writes the files, starts the process, and returns when it serves. When it ends later, the context does.
func (s *server) start(ctx context.Context, project string, secrets map[string]string, args []string) error {
	files := map[string]string{"project.yaml": project}
	for key, value := range secrets {
		files[filepath.Join("secrets", "shop", key)] = value
	}
	for name, content := range files {
		path := filepath.Join(s.work, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600))
		if err != nil {
			return fmt.Errorf("write the project: %w", err)
		}
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, args...) //nolint:gosec // the program is a flag
	cmd.Stderr, cmd.SysProcAttr = &log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	// It prints where everything is as soon as it serves.
	lines := bufio.NewReader(stdout)
	if _, err := lines.ReadString('\n'); err != nil {
		return describeEnd(cmd.Wait(), &log)
	}
	s.started = true
	go func() {
		_, _ = io.Copy(io.Discard, lines) // until it ends
		s.cancel(describeEnd(cmd.Wait(), &log))
		close(s.ended)
	}()
	return nil
}

// describeEnd returns the error of a server that has ended by itself.
func describeEnd(err error, log *bytes.Buffer) error {
	return fmt.Errorf("phoneproof has ended (%v): %s", err, strings.TrimSpace(log.String())) //nolint:errorlint // it may be nil
}

// stopProcess kills the server, which has nothing to save, and returns when it has gone.
func (s *server) stopProcess() {
	s.cancel(nil)
	if s.started {
		<-s.ended
	}
}

// receiver is the webhook receiver of the client.
type receiver struct {
	http.Server

	url    string
	events chan event
}

// event is a webhook as it was received; err says what is wrong with its signatures.
type event struct {
	header http.Header
	body   string
	err    error
}

// startReceiver starts a receiver on a free port of loopback. It has no more of the sender than the secret.
func startReceiver(ctx context.Context, secret string) (*receiver, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	r := &receiver{url: "http://" + listener.Addr().String() + "/webhooks", events: make(chan event, 100)}
	r.ReadHeaderTimeout = 10 * time.Second
	r.Handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, 64<<10))
		if err == nil {
			err = checkSignatures(secret, request.Header, body, time.Now())
		}
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
		r.events <- event{request.Header, string(body), err}
	})
	go r.Serve(listener) //nolint:errcheck // until it is closed
	return r, nil
}
