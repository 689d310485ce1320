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

func succeedCheck(context.Context) error { return nil }

// askServer returns a server's answer to a request, without a network.
func askServer(o Options, method, path string) *httptest.ResponseRecorder {
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	recorder := httptest.NewRecorder()
	New(nil, o).http.Handler.ServeHTTP(recorder, httptest.NewRequest(method, path, http.NoBody))
	return recorder
}

func TestProblems(t *testing.T) {
	for name, list := range map[string]func() []settings.Problem{
		"none":            func() []settings.Problem { return nil },
		"without-a-check": nil,
		"some": func() []settings.Problem {
			return []settings.Problem{
				{Field: "spec.apiKeys[backend].secretRef", Secret: "shop", Key: "api-key", Reason: settings.ReasonTooShort},
				{Field: "spec.telegram.botTokenSecretRef", Secret: "bot", Key: "token", Reason: settings.ReasonMissing},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answer := askServer(Options{Problems: list}, http.MethodGet, "/problems")
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
	answer := askServer(Options{Refused: refused}, http.MethodGet, "/problems")
	g.Expect(answer.Body.String()).To(MatchJSON(`{"project": "spec.baseURL: must begin with https://", "problems": []}`))
	answer = askServer(Options{Refused: func() error { return nil }}, http.MethodGet, "/problems")
	g.Expect(answer.Body.String()).To(MatchJSON(`{"problems": []}`))
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
		{http.MethodHead, "/livez", http.StatusOK},
		{http.MethodHead, "/readyz", http.StatusServiceUnavailable},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			NewWithT(t).Expect(askServer(Options{Check: succeedCheck}, tc.method, tc.path).Code).To(Equal(tc.status))
		})
	}
}

// runningServer is a started server and a client of it.
type runningServer struct {
	dial   func(context.Context, string, string) (net.Conn, error)
	client *http.Client
	stop   func()
	ended  chan error
}

// startServer starts a server on an in-memory listener, so that it can run in a synctest bubble.
func startServer(t *testing.T, o Options) *runningServer {
	t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	r := &runningServer{dial: listener.dial, stop: stop, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{
		DialContext: listener.dial, DisableKeepAlives: true,
	}}}
	if o.Check == nil {
		o.Check = succeedCheck
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	o.Log = logr.Discard()
	server := New(listener, o)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- server.Start(ctx)
	}()
	t.Cleanup(func() { // inside the bubble, where time advances only while the test waits
		stop()
		<-done
	})
	return r
}

func (r *runningServer) get(path string) (string, error) {
	response, err := r.client.Get("http://server" + path)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprint(response.StatusCode, " ", string(body)), err
}

// pipeListener is an in-memory listener.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// blockedMetrics returns metrics that block until release is closed. It closes asked when they are gathered.
func blockedMetrics(release <-chan struct{}) (metrics prometheus.Gatherer, asked <-chan struct{}) {
	registry, begun := prometheus.NewRegistry(), make(chan struct{})
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "phoneproof_test", Help: "Tests."}, func() float64 {
		close(begun)
		<-release
		return 1
	}))
	return registry, begun
}

func TestStart_stopsAfterTheAnswersInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		release := make(chan struct{})
		metrics, asked := blockedMetrics(release)
		server := startServer(t, Options{Metrics: metrics})
		g.Expect(server.get("/livez")).To(Equal("200 ok\n"))

		got := make(chan string, 1)
		go func() {
			text, err := server.get("/metrics")
			got <- fmt.Sprint(text, err)
		}()
		<-asked
		server.stop()
		synctest.Wait()
		_, err := server.get("/livez")
		g.Expect(err).To(MatchError(net.ErrClosed), "new connections are refused")
		g.Expect(server.ended).NotTo(Receive(), "an answer is still in flight")
		close(release)
		g.Expect(<-got).To(And(HavePrefix("200 "), HaveSuffix("phoneproof_test 1\n<nil>")))
		g.Expect(<-server.ended).To(Succeed())
	})
}

func TestStart_doesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		never := make(chan struct{})
		metrics, asked := blockedMetrics(never)
		server := startServer(t, Options{Metrics: metrics, Check: func(context.Context) error {
			<-never
			return nil
		}})
		defer close(never)
		go func() { _, _ = server.get("/metrics") }() // the shutdown disconnects it
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
	server := New(listener, Options{Metrics: prometheus.NewRegistry(), Check: succeedCheck})
	g.Expect(server.Start(t.Context())).To(MatchError(net.ErrClosed))
}

func TestStart_afterItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := startServer(t, Options{})
		server.stop()
		g.Expect(<-server.ended).To(Succeed())
		_, err := server.get("/livez")
		g.Expect(err).To(MatchError(net.ErrClosed))
	})
}
