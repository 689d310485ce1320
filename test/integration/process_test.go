package integration_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/phoneproof/phoneproof/test/freeze"
	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/system"
)

// replica is a serve process.
type replica struct {
	api    string
	health string
	cmd    *exec.Cmd
	exited chan struct{}
	log    *gbytes.Buffer
}

// printed returns what the process printed so far.
func (r *replica) printed() string { return string(r.log.Contents()) }

// startReplica starts a serve process and does not wait for it.
func startReplica(args ...string) *replica {
	GinkgoHelper()
	r := &replica{api: ports.Address(GinkgoT()), health: ports.Address(GinkgoT()), exited: make(chan struct{})}
	r.start("log of "+r.api, append([]string{
		"serve", "--bind-address", r.api, "--health-bind-address", r.health, "--drain-delay=200ms",
	}, args...)...)
	return r
}

// processProgram is what the specs start: this program, which is the one under test too.
var processProgram = os.Args[0]

// startPlainPrograms has the spec start a program without the race detector, which multiplies the memory that is held.
func startPlainPrograms(ctx context.Context) {
	GinkgoHelper()
	plain, err := system.Build(ctx, GinkgoT().TempDir(), false)
	Expect(err).NotTo(HaveOccurred())
	processProgram = plain
	DeferCleanup(func() { processProgram = os.Args[0] })
}

// start runs the program until the spec ends. Its log is shown where that fails.
func (r *replica) start(title string, args ...string) {
	GinkgoHelper()
	r.cmd = exec.Command(processProgram, args...)
	r.cmd.Env = append(os.Environ(), asProcess+"=1")
	r.log = gbytes.NewBuffer()
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	// The process must not outlive the tests, however they end.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(r.cmd.Start()).To(Succeed())
	go func() {
		_ = r.cmd.Wait() // how it ended is in ProcessState
		close(r.exited)
	}()
	DeferCleanup(func() {
		r.kill()
		printed.add(r.printed())
		if CurrentSpecReport().Failed() {
			AddReportEntry(title, r.printed())
		}
	})
}

// kill ends the process at once, as the kernel does when memory is short.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill() // it may be gone
	<-r.exited
}

func (r *replica) signal(s syscall.Signal) {
	GinkgoHelper()
	Expect(r.cmd.Process.Signal(s)).To(Succeed())
}

func (r *replica) freeze() {
	GinkgoHelper()
	Expect(freeze.Processes(r.cmd.Process.Pid)).To(Succeed())
}

func (r *replica) thaw() {
	GinkgoHelper()
	Expect(freeze.Thaw(r.cmd.Process.Pid)).To(Succeed())
}

func (r *replica) running() bool {
	select {
	case <-r.exited:
		return false
	default:
		return true
	}
}

func (r *replica) ready(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK }

// probe returns the status that a path of the port for probes answers; 0 if none came.
func (r *replica) probe(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.health+path, nil)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// leads tells whether the process says that it holds the lease.
func (r *replica) leads() bool {
	log := r.printed()
	return strings.Count(log, `"msg":"leading"`) > strings.Count(log, `"msg":"no longer leading"`)
}

// call sends a request with an API key and decodes the answer; status 0 means that none came.
func (r *replica) call(ctx context.Context, key, method, path, body string) (int, map[string]any) {
	GinkgoHelper()
	status, _, answer := r.exchange(ctx, key, method, path, body)
	return status, answer
}

// serves is call for what has to succeed. What the store had no time for is asked again, as clients do.
func (r *replica) serves(ctx context.Context, key, method, path, body string) map[string]any {
	GinkgoHelper()
	var (
		status int
		answer map[string]any
	)
	Eventually(func() int {
		status, answer = r.call(ctx, key, method, path, body)
		return status
	}).WithContext(ctx).WithTimeout(patience).ShouldNot(Equal(http.StatusServiceUnavailable))
	Expect(status).To(Equal(http.StatusOK), "%v", answer)
	return answer
}

// exchange is call with the answer's header.
func (r *replica) exchange(ctx context.Context, key, method, path, body string) (int, http.Header, map[string]any) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.api+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, nil
	}
	defer response.Body.Close()
	var answer map[string]any
	if json.NewDecoder(response.Body).Decode(&answer) != nil {
		return 0, nil, nil
	}
	return response.StatusCode, response.Header, answer
}

func writeFile(dir, name, value string) {
	GinkgoHelper()
	path := filepath.Join(dir, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	// As a kubelet does: no reader sees it empty or half written.
	Expect(os.WriteFile(path+".new", []byte(value), 0o600)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

// delivery is one event as the receiver got it.
type delivery struct {
	at      time.Time
	id      string
	body    string
	headers http.Header
}

// receiver is a client backend that takes events. It writes each down before it answers.
type receiver struct {
	server *http.Server
	url    string

	mu     sync.Mutex
	got    []delivery
	answer func(http.ResponseWriter, *http.Request)
}

func startReceiver() *receiver {
	GinkgoHelper()
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	r := &receiver{url: "http://" + listener.Addr().String() + "/hook"}
	r.answerWith(http.StatusNoContent)
	r.server = &http.Server{Handler: http.HandlerFunc(r.take), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // ends with Close
	DeferCleanup(r.server.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender died half-way: nothing was received
	}
	got := delivery{at: time.Now(), id: request.Header.Get("Webhook-Id"), body: string(body), headers: request.Header}
	r.mu.Lock()
	r.got = append(r.got, got)
	answer := r.answer
	r.mu.Unlock()
	answer(w, request)
}

func (r *receiver) answerWith(status int) {
	r.answerBy(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

func (r *receiver) answerBy(answer func(http.ResponseWriter, *http.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hold keeps the answers back, so that events stay in flight, until release is called: then it answers 204 to all and
// to those that come. held counts the events that were kept waiting.
func (r *receiver) hold() (held func() int64, release func()) {
	var count atomic.Int64
	open := make(chan struct{})
	r.answerBy(func(w http.ResponseWriter, request *http.Request) {
		count.Add(1)
		select {
		case <-open:
			w.WriteHeader(http.StatusNoContent)
		case <-request.Context().Done():
		}
	})
	return count.Load, sync.OnceFunc(func() {
		r.answerWith(http.StatusNoContent)
		close(open)
	})
}

// failFirst fails the first attempt at each event, and keeps the answers to others back until mend is called, however long
// that takes: the second attempt comes within seconds, the third after minutes.
func (r *receiver) failFirst() (mend func()) {
	var known sync.Map
	mended := make(chan struct{})
	r.answerBy(func(w http.ResponseWriter, request *http.Request) {
		if _, again := known.LoadOrStore(request.Header.Get("Webhook-Id"), true); !again {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		select {
		case <-mended:
			w.WriteHeader(http.StatusNoContent)
		case <-request.Context().Done():
		}
	})
	return sync.OnceFunc(func() {
		r.answerWith(http.StatusNoContent)
		close(mended)
	})
}

// deliveries returns what came so far.
func (r *receiver) deliveries() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got...)
}
