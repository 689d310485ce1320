package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// openedPerSecond is how many pages are opened in a second at first.
	openedPerSecond = 1000
	// reopenAfter is when a page whose stream ended opens it again, as its script does.
	reopenAfter = time.Second
	// retryAfter is when a page tries again after an attempt without an answer.
	retryAfter = 10 * time.Second
	// silenceTimeout is how long a stream may send nothing: longer than the server's heartbeat.
	silenceTimeout = time.Minute
	// countEvery is how often the browsers report their counts.
	countEvery = 100 * time.Millisecond
	// browsersTimeout ends the browsers whatever happens.
	browsersTimeout = 15 * time.Minute
	// spareFiles is how many files a process opens beside its connections.
	spareFiles = 200
)

// browserHeader is what a phone sends for a stream.
const browserHeader = "Host: bench\r\nAccept: text/event-stream\r\nAccept-Language: de-DE,de;q=0.9,en;q=0.8\r\n" +
	"Accept-Encoding: gzip, deflate, br\r\nCache-Control: no-cache\r\nConnection: keep-alive\r\n" +
	"User-Agent: Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36\r\n" +
	"Sec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: same-origin\r\n"

// openings is what browsers are to open.
type openings struct {
	Address string   `json:"address"`
	Paths   []string `json:"paths"`
}

// counts is what browsers have seen since they began.
type counts struct {
	// Tried is how many pages have had an answer, and Open how many have an open stream.
	Tried int64 `json:"tried"`
	Open  int64 `json:"open"`
	// Refused counts answers 429 with Retry-After, Failed attempts without an answer, Ended streams that ended.
	Refused int64 `json:"refused"`
	Failed  int64 `json:"failed"`
	Ended   int64 `json:"ended"`
	// Wrong is the first answer of another kind; empty for none.
	Wrong string `json:"wrong,omitempty"`
}

// browsers is a process that keeps pages open: browsers without a screen.
type browsers struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	last counts
	err  error
}

// startBrowsers opens the pages of requests at a server, and keeps them open.
func startBrowsers(ctx context.Context, address string, of []started) (*browsers, error) {
	open := openings{Address: address}
	for _, one := range of {
		path, err := one.pagePath()
		if err != nil {
			return nil, err
		}
		open.Paths = append(open.Paths, path+"/events")
	}
	content, err := json.Marshal(open)
	if err != nil {
		return nil, err
	}
	cmd, err := newCommand(context.WithoutCancel(ctx), modeOpen)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = bytes.NewReader(content)
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start browsers: %w", err)
	}
	s := &browsers{cmd: cmd}
	go s.readCounts(output) // ends with the process
	return s, nil
}

// readCounts keeps the last counts that the process reported.
func (s *browsers) readCounts(from io.Reader) {
	decoder := json.NewDecoder(from)
	for {
		var last counts
		err := decoder.Decode(&last)
		s.mu.Lock()
		if err == nil && last.Wrong != "" {
			err = fmt.Errorf("unexpected answer to a page: %s", last.Wrong)
		}
		s.last, s.err = last, err
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// lastCounts returns the last counts.
func (s *browsers) lastCounts() (counts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return counts{}, fmt.Errorf("count open pages: %w", s.err)
	}
	return s.last, nil
}

// awaitTried waits until each of n pages has had an answer.
func (s *browsers) awaitTried(ctx context.Context, n int) error {
	return waitFor(ctx, "pages to be opened", func(context.Context) (bool, error) {
		last, err := s.lastCounts()
		return last.Tried >= int64(n), err
	})
}

// close closes all pages at once.
func (s *browsers) close() {
	_ = s.cmd.Process.Kill() // it may have ended
	_ = s.cmd.Wait()         // it was killed
}

// opener keeps pages open in its own process.
type opener struct {
	address                             string
	tried, open, refused, failed, ended atomic.Int64
	wrong                               atomic.Pointer[string]
}

// openPages runs the process of the browsers: one connection and one goroutine for each page, until it is killed.
func openPages(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, browsersTimeout)
	defer stop()
	var what openings
	if err := json.NewDecoder(os.Stdin).Decode(&what); err != nil {
		return err
	}
	if err := raiseFileLimit(len(what.Paths) + spareFiles); err != nil {
		return err
	}
	o := &opener{address: what.Address}
	var pages sync.WaitGroup
	began := time.Now()
	for i, path := range what.Paths {
		pages.Go(func() { o.keepOpen(ctx, path, time.Until(began.Add(time.Duration(i)*time.Second/openedPerSecond))) })
	}
	err := o.reportCounts(ctx, json.NewEncoder(os.Stdout))
	stop()
	pages.Wait()
	return err
}

// raiseFileLimit makes sure that this process may open n files.
func raiseFileLimit(n int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("read limit of open files: %w", err)
	}
	if limit.Max < uint64(n) {
		return fmt.Errorf("the pages need %d open files, the limit of the process is %d", n, limit.Max)
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("raise limit of open files: %w", err)
	}
	return nil
}

// reportCounts writes the counts until the time is up or the output is closed.
func (o *opener) reportCounts(ctx context.Context, to *json.Encoder) error {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := counts{
			Tried: o.tried.Load(), Open: o.open.Load(), Refused: o.refused.Load(), Failed: o.failed.Load(), Ended: o.ended.Load(),
		}
		if wrong := o.wrong.Load(); wrong != nil {
			now.Wrong = *wrong
		}
		if err := to.Encode(now); err != nil {
			return fmt.Errorf("report counts: %w", err)
		}
	}
}

// keepOpen opens a page after the pause, and again whenever its stream has ended or was refused.
func (o *opener) keepOpen(ctx context.Context, path string, pause time.Duration) {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\n%s\r\n", path, browserHeader)
	tried := sync.OnceFunc(func() { o.tried.Add(1) })
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause = o.openPage(ctx, request, tried)
		tried()
		timer.Reset(pause + rand.N(pause/2))
	}
}

// openPage opens the stream of a page until it ends, and returns when to open it again. It calls opened when the stream begins.
func (o *opener) openPage(ctx context.Context, request []byte, opened func()) time.Duration {
	conn, err := (&net.Dialer{Timeout: retryAfter}).DialContext(ctx, "tcp", o.address)
	if err != nil {
		o.failed.Add(1)
		return retryAfter
	}
	defer func() { _ = conn.Close() }() // it has ended
	var buffer [1 << 10]byte
	n := 0
	if err = conn.SetDeadline(time.Now().Add(retryAfter)); err == nil {
		if _, err = conn.Write(request); err == nil {
			n, err = conn.Read(buffer[:])
		}
	}
	if err != nil {
		o.failed.Add(1)
		return retryAfter
	}
	status, wait := readRefusal(buffer[:n])
	switch {
	case status == http.StatusTooManyRequests && wait > 0:
		o.refused.Add(1)
		return wait
	case status != http.StatusOK:
		o.wrong.CompareAndSwap(nil, new(string(buffer[:n])))
		return retryAfter
	}
	o.open.Add(1)
	opened()
	for err == nil {
		if err = conn.SetDeadline(time.Now().Add(silenceTimeout)); err == nil {
			_, err = conn.Read(buffer[:])
		}
	}
	o.open.Add(-1)
	o.ended.Add(1)
	return reopenAfter
}

// readRefusal returns the status of an answer, and the time of its Retry-After; zero for none.
func readRefusal(answer []byte) (status int, wait time.Duration) {
	head, _, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if text, found := bytes.CutPrefix(line, []byte("HTTP/1.1 ")); found && len(text) >= 3 {
			status, _ = strconv.Atoi(string(text[:3])) // zero is no status
		}
		if text, found := bytes.CutPrefix(line, []byte("Retry-After: ")); found {
			seconds, _ := strconv.Atoi(string(text)) // zero is no time
			wait = time.Duration(seconds) * time.Second
		}
	}
	return status, wait
}
