package integration_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/system"
)

// replica is a serve process, or an operator.
type replica struct {
	system.Replica

	log *gbytes.Buffer
}

// output returns the output of the process so far.
func (r *replica) output() string { return string(r.log.Contents()) }

func newReplica() *replica {
	return &replica{Replica: system.Replica{API: ports.Address(GinkgoT()), Health: ports.Address(GinkgoT())}, log: gbytes.NewBuffer()}
}

// startReplica starts a serve process without waiting for it.
func startReplica(args ...string) *replica {
	GinkgoHelper()
	r := newReplica()
	r.start("log of "+r.API, append([]string{
		"serve", "--bind-address", r.API, "--health-bind-address", r.Health, "--drain-delay=200ms",
		// Replies must not leave the machine.
		"--whatsapp-url=http://127.0.0.1:1", "--telegram-url=http://127.0.0.1:1",
	}, args...)...)
	return r
}

// processProgram is the program that the specs start: the test binary, which is also the program under test.
var processProgram = os.Args[0]

// startPlainPrograms makes the spec start a program without the race detector, which multiplies the memory in use.
func startPlainPrograms(ctx context.Context) {
	GinkgoHelper()
	plain, err := system.Build(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	processProgram = plain
	DeferCleanup(func() { processProgram = os.Args[0] })
}

// start runs the program until the spec ends. Its log is shown if the spec fails.
func (r *replica) start(title string, args ...string) {
	GinkgoHelper()
	var err error
	r.Process, err = system.StartProcess(r.log, []string{asProcess + "=1"}, processProgram, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		for _, url := range []string{r.Health + "/metrics", r.Health + "/problems", r.API + "/metrics"} { // the last one is an operator's
			printed.add(readPage(url))
		}
		r.Kill()
		printed.add(r.output())
		raced := strings.Contains(r.output(), "DATA RACE") // found in make test-slow, which has the detector
		if raced || CurrentSpecReport().Failed() {
			AddReportEntry(title, r.output())
		}
		Expect(raced).To(BeFalse(), "the process has a data race: see its log")
	})
}

// readPage returns what a page shows; nothing if its process is gone or frozen.
func readPage(url string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _, body := sendRequest(ctx, http.MethodGet, "http://"+url, nil, "")
	return string(body)
}

// probeOnce is probeStatus for specs in which an answer must come soon, about as soon as a kubelet wants it.
func (r *replica) probeOnce(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return r.probeStatus(ctx, path)
}

// probeStatus returns the HTTP status of a path on the port for probes; 0 without a response.
func (r *replica) probeStatus(ctx context.Context, path string) int {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	status, _, _ := sendRequest(ctx, http.MethodGet, "http://"+r.Health+path, nil, "")
	return status
}

// sendRequest returns the response to a request; the status is 0 without a whole one.
func sendRequest(ctx context.Context, method, url string, header http.Header, body string) (int, http.Header, []byte) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if header != nil {
		request.Header = header
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, content
	}
	return response.StatusCode, response.Header, content
}

// isLeading reports whether the process holds the lease, according to its log.
func (r *replica) isLeading() bool {
	return r.countTerms() > strings.Count(r.output(), `"msg":"no longer leading"`)
}

// countTerms counts how often the process began to lead.
func (r *replica) countTerms() int { return strings.Count(r.output(), `"msg":"leading"`) }

// callAPI sends a request with an API key and decodes the response; the status is 0 without one.
func (r *replica) callAPI(ctx context.Context, key, method, path, body string) (int, map[string]any) {
	GinkgoHelper()
	status, _, answer := r.sendCall(ctx, key, method, path, body)
	return status, answer
}

// mustCall is callAPI that must succeed. Calls that the store had no time for are repeated, like clients do.
func (r *replica) mustCall(ctx context.Context, key, method, path, body string) map[string]any {
	GinkgoHelper()
	status, answer := r.awaitDecision(ctx, key, method, path, body)
	Expect(status).To(Equal(http.StatusOK), "%v", answer)
	return answer
}

// awaitDecision is mustCall for calls that may be refused: it returns the first answer that decides something.
func (r *replica) awaitDecision(ctx context.Context, key, method, path, body string) (status int, answer map[string]any) {
	GinkgoHelper()
	Eventually(func() int {
		status, answer = r.callAPI(ctx, key, method, path, body)
		return status
	}).WithContext(ctx).ShouldNot(Equal(http.StatusServiceUnavailable))
	return status, answer
}

// sendCall is callAPI with the response's header, and may have an Idempotency-Key.
func (r *replica) sendCall(ctx context.Context, key, method, path, body string, idempotencyKey ...string) (int, http.Header, map[string]any) {
	GinkgoHelper()
	header := http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}}
	if len(idempotencyKey) > 0 {
		header.Set("Idempotency-Key", idempotencyKey[0])
	}
	status, header, content := sendRequest(ctx, method, "http://"+r.API+path, header, body)
	var answer map[string]any
	if json.Unmarshal(content, &answer) != nil {
		return 0, nil, nil
	}
	return status, header, answer
}

func writeFile(dir, name, value string) {
	GinkgoHelper()
	path := filepath.Join(dir, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	// Atomically, like a kubelet: no reader sees the file empty or half written.
	Expect(os.WriteFile(path+".new", []byte(value), 0o600)).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

// delivery is one event as the receiver received it.
type delivery struct {
	at      time.Time
	from    string // the sender's address
	id      string
	body    string
	headers http.Header
}

// receiver is a client's backend for events. It records each event before it answers.
type receiver struct {
	url string

	mu     sync.Mutex
	got    []delivery
	answer func(http.ResponseWriter, *http.Request)
}

func startReceiver() *receiver {
	GinkgoHelper()
	r := &receiver{}
	r.answerWith(http.StatusNoContent)
	server, err := system.Serve(context.Background(), http.HandlerFunc(r.recordDelivery))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Close)
	r.url = "http://" + server.Address + "/hook"
	return r
}

func (r *receiver) recordDelivery(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the sender died in between: nothing was received
	}
	got := delivery{at: time.Now(), from: request.RemoteAddr, id: request.Header.Get("Webhook-Id"), body: string(body), headers: request.Header}
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

// holdAnswers holds the answers back, so that events stay in flight, until release is called: then it answers 204 to these and
// to all later events. held counts the events that were held.
func (r *receiver) holdAnswers() (held func() int64, release func()) {
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

// failFirst fails the first attempt at each event, and holds the answers to further attempts back until stopFailing is called,
// because the second attempt comes within seconds, but the third only after minutes. A spec calls allowSlowAnswers first, and has at most
// webhook.SlowStart events: held attempts would leave no slot to the first attempts of others.
func (r *receiver) failFirst() (stopFailing func()) {
	var known sync.Map
	repaired := make(chan struct{})
	r.answerBy(func(w http.ResponseWriter, request *http.Request) {
		if _, again := known.LoadOrStore(request.Header.Get("Webhook-Id"), true); !again {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		select {
		case <-repaired:
			w.WriteHeader(http.StatusNoContent)
		case <-request.Context().Done():
		}
	})
	return sync.OnceFunc(func() {
		r.answerWith(http.StatusNoContent)
		close(repaired)
	})
}

// deliveries returns the deliveries so far.
func (r *receiver) deliveries() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]delivery(nil), r.got...)
}
