package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/ports"
)

// The other programs that this command contains: each runs in its own process, as PhoneProof does.
const (
	modeBare = "bare" // a server that answers every request with constant JSON
	modePost = "post" // a client that posts the same bytes over and over
	modeOpen = "open" // browsers that keep pages open
	// modeFloor is the least that a verification server can be; see package floor.
	modeFloor = "floor"
)

// bareAnswer is as long as the answer of the status operation. It also serves as a Graph API's answer to a reply.
const bareAnswer = `{"requestId":"vrabcdefghijklmnopqrstuvwx","status":"PENDING","method":"WHATSAPP","expiresAt":"2026-01-01T00:00:00Z",` +
	`"phoneNumber":"+4915112345678"}`

// child is a process of this program.
type child struct {
	address string
	cmd     *exec.Cmd
}

// newCommand returns this program with other arguments; it is killed when this process ends.
func newCommand(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// startBare starts the bare server and returns when it accepts connections.
func startBare(ctx context.Context) (*child, error) {
	reserved, err := ports.Reserve() // released when this process ends
	if err != nil {
		return nil, fmt.Errorf("reserve port for the bare server: %w", err)
	}
	address := reserved.Address()
	cmd, err := newCommand(context.WithoutCancel(ctx), modeBare, address)
	if err != nil {
		return nil, err
	}
	return startListening(ctx, cmd, address)
}

// startListening starts a program and returns when it accepts connections.
func startListening(ctx context.Context, cmd *exec.Cmd, address string) (*child, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	c := &child{address, cmd}
	err := waitFor(ctx, "server", func(ctx context.Context) (bool, error) {
		conn, err := load.Dial(ctx, address)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return true, conn.Close()
	})
	if err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // it was killed
}

// serveBare runs a Go server that does nothing: the least that a server costs.
func serveBare(args []string) error {
	if len(args) != 1 {
		return errors.New("bare needs an address")
	}
	server := &http.Server{
		Addr: args[0], ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // an error does not matter: the connection is kept
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, bareAnswer)
		}),
	}
	return server.ListenAndServe()
}

// posting is the request that the client posts.
type posting struct {
	URL    string      `json:"url"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// postResult is the result of a process that posts.
type postResult struct {
	Done    int64   `json:"done"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"-"` // seconds
}

// postRepeatedly runs a Go client that only posts: the same bytes as PhoneProof, to the same receiver, with as many
// requests at a time.
func postRepeatedly(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(modePost, flag.ContinueOnError)
	clients := flags.Int("clients", 1, "number of requests at a time")
	length := flags.Duration("length", time.Second, "how long to post")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var p posting
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: *clients, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}, Timeout: time.Minute}
	result, err := load.Closed(ctx, *clients, *length, func(context.Context) (load.Call, func() error, error) {
		return func(ctx context.Context, _ load.Turn) error { return p.send(ctx, client) }, nil, nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(postResult{Done: result.Latency.Count(), Seconds: result.Took.Seconds()})
}

func (p posting) send(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(p.Body))
	if err != nil {
		return err
	}
	request.Header = p.Header
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("receiver answered %d", response.StatusCode)
	}
	return nil
}

// runPost posts for length in another process.
func runPost(ctx context.Context, p posting, clients int, length time.Duration) (postResult, error) {
	content, err := json.Marshal(p)
	if err != nil {
		return postResult{}, err
	}
	cmd, err := newCommand(ctx, modePost, fmt.Sprintf("-clients=%d", clients), "-length="+length.String())
	if err != nil {
		return postResult{}, err
	}
	cmd.Stdin = bytes.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		return postResult{}, fmt.Errorf("run posting process: %w", err)
	}
	var found postResult
	if err := json.Unmarshal(out, &found); err != nil {
		return postResult{}, fmt.Errorf("decode result of posting process: %w", err)
	}
	found.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return found, nil
}

// waitTimeout bounds operations that take a few seconds on a busy machine.
const waitTimeout = 5 * time.Minute

// waitFor polls until a condition is met.
func waitFor(ctx context.Context, what string, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := so(ctx)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
