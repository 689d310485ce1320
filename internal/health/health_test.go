package health

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/settings"
)

var update = flag.Bool("update", false, "write the golden files")

func ready(context.Context) error { return nil }

// ask has a server answer without a network.
func ask(o Options, method, path string) *httptest.ResponseRecorder {
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	recorder := httptest.NewRecorder()
	New(nil, o).http.Handler.ServeHTTP(recorder, httptest.NewRequest(method, path, http.NoBody))
	return recorder
}

func TestLivez_dependsOnNothing(t *testing.T) {
	g := NewWithT(t)
	answer := ask(Options{Ready: func(context.Context) error { panic("a restart mends no store") }}, http.MethodGet, "/livez")
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	g.Expect(answer.Body.String()).To(Equal("ok\n"))
}

func TestReadyz(t *testing.T) {
	for name, tc := range map[string]struct {
		ready  func(context.Context) error
		status int
		body   string
	}{
		"ready": {ready, http.StatusOK, "ok\n"},
		"not ready, for a reason that is not told": {
			func(context.Context) error { return errors.New("dial tcp 10.0.0.1:5432") }, http.StatusServiceUnavailable, "not ready\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := ask(Options{Ready: tc.ready}, http.MethodGet, "/readyz")
			g.Expect(answer.Code).To(Equal(tc.status))
			g.Expect(answer.Body.String()).To(Equal(tc.body))
			g.Expect(answer.Header().Get("Content-Type")).To(Equal("text/plain; charset=utf-8"))
		})
	}
}

func TestReadyz_waitsASecondForAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		began := time.Now()
		answer := ask(Options{Ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}, http.MethodGet, "/readyz")
		g.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
		g.Expect(time.Since(began)).To(Equal(checkTimeout))
	})
}

func TestProblems(t *testing.T) {
	for name, list := range map[string]func() []settings.Problem{
		"none":          func() []settings.Problem { return nil },
		"nobody-to-ask": nil,
		"some": func() []settings.Problem {
			return []settings.Problem{
				{Field: "spec.apiKeys[backend].secretRef", Secret: "shop", Key: "api-key", Reason: settings.ReasonTooShort},
				{Field: "spec.telegram.botTokenSecretRef", Secret: "bot", Key: "token", Reason: settings.ReasonMissing},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := ask(Options{Problems: list}, http.MethodGet, "/problems")
			g.Expect(answer.Code).To(Equal(http.StatusOK))
			g.Expect(answer.Header().Get("Content-Type")).To(Equal("application/json"))
			golden := filepath.Join("testdata", name+".json")
			if *update {
				g.Expect(os.WriteFile(golden, answer.Body.Bytes(), 0o600)).To(Succeed())
			}
			want, err := os.ReadFile(golden)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Body.String()).To(Equal(string(want)))
		})
	}
}

func TestProblems_namesTheRefusedProject(t *testing.T) {
	g := NewWithT(t)
	refused := func() error { return errors.New("spec.baseURL: must begin with https://") }
	answer := ask(Options{Refused: refused}, http.MethodGet, "/problems")
	g.Expect(answer.Body.String()).To(MatchJSON(`{"project": "spec.baseURL: must begin with https://", "problems": []}`))
	answer = ask(Options{Refused: func() error { return nil }}, http.MethodGet, "/problems")
	g.Expect(answer.Body.String()).To(MatchJSON(`{"problems": []}`))
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "phoneproof_test_total", Help: "Tests."})
	registry.MustRegister(counter)
	counter.Inc()
	answer := ask(Options{Metrics: registry}, http.MethodGet, "/metrics")
	g.Expect(answer.Code).To(Equal(http.StatusOK))
	g.Expect(answer.Body.String()).To(ContainSubstring("phoneproof_test_total 1\n"))
}

func TestOtherRequests(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/", http.StatusNotFound},
		{http.MethodGet, "/livez/", http.StatusNotFound},
		{http.MethodGet, "/debug/pprof/", http.StatusNotFound},
		{http.MethodPost, "/readyz", http.StatusMethodNotAllowed},
		{http.MethodHead, "/readyz", http.StatusOK},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			NewWithT(t).Expect(ask(Options{Ready: ready}, tc.method, tc.path).Code).To(Equal(tc.status))
		})
	}
}

// running is a server and its client.
type running struct {
	client *http.Client
	stop   func()
	ended  chan error
}

// run starts a server on a listener in memory, so that a test in a bubble decides how much time passes.
func run(t *testing.T, o Options) *running {
	t.Helper()
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	r := &running{stop: stop, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{
		DialContext: listener.dial, DisableKeepAlives: true,
	}}}
	o.Metrics, o.Log = prometheus.NewRegistry(), logr.Discard()
	server := New(listener, o)
	go func() { r.ended <- server.Start(ctx) }()
	t.Cleanup(stop)
	return r
}

func (r *running) get(path string) (string, error) {
	response, err := r.client.Get("http://server" + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(body)), err
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func TestStart_stopsAfterTheAnswersInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		asked, answer := make(chan struct{}), make(chan struct{})
		server := run(t, Options{Ready: func(context.Context) error {
			close(asked)
			<-answer
			return nil
		}})
		g.Expect(server.get("/livez")).To(Equal("200 ok\n"))

		got := make(chan string, 1)
		go func() {
			text, err := server.get("/readyz")
			got <- fmt.Sprint(text, err)
		}()
		<-asked
		server.stop()
		synctest.Wait()
		_, err := server.get("/livez")
		g.Expect(err).To(MatchError(net.ErrClosed), "nothing new is taken")
		g.Expect(server.ended).NotTo(Receive(), "an answer is still on its way")
		close(answer)
		g.Expect(<-got).To(Equal("200 ok\n<nil>"))
		g.Expect(<-server.ended).To(Succeed())
	})
}

func TestStart_doesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		asked, never := make(chan struct{}), make(chan struct{})
		server := run(t, Options{Ready: func(context.Context) error {
			close(asked)
			<-never
			return nil
		}})
		defer close(never)
		go func() { _, _ = server.get("/readyz") }() // it is cut off
		<-asked
		server.stop()
		began := time.Now()
		g.Expect(<-server.ended).To(Succeed())
		g.Expect(time.Since(began)).To(Equal(shutdownTimeout))
	})
}

func TestStart_aListenerThatFails(t *testing.T) {
	g := NewWithT(t)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
	server := New(listener, Options{Metrics: prometheus.NewRegistry()})
	g.Expect(server.Start(t.Context())).To(MatchError(net.ErrClosed))
}

func TestStart_afterItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := run(t, Options{})
		server.stop()
		g.Expect(<-server.ended).To(Succeed())
		_, err := server.get("/livez")
		g.Expect(err).To(MatchError(net.ErrClosed))
	})
}
