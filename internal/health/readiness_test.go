package health

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
)

func TestLivez_dependsOnNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		server := startServer(t, Options{Check: func(context.Context) error { panic("a restart repairs no store") }})
		synctest.Wait()
		g.Expect(server.get("/livez")).To(Equal("200 ok\n"))
		g.Expect(server.get("/readyz")).To(Equal("503 not ready\n"))
	})
}

func TestReadyz(t *testing.T) {
	fail := func(context.Context) error { return errors.New("dial tcp 10.0.0.1:5432") }
	drain := func() error { return errors.New("draining") }
	for name, tc := range map[string]struct {
		check   func(context.Context) error
		serving func() error
		answer  string
	}{
		"ready":         {succeedCheck, nil, "200 ok\n"},
		"ready itself":  {succeedCheck, func() error { return nil }, "200 ok\n"},
		"not ready":     {fail, nil, "503 not ready\n"}, // the answer has no reason
		"about to stop": {succeedCheck, drain, "503 not ready\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := startServer(t, Options{Check: tc.check, Serving: tc.serving})
				synctest.Wait()
				NewWithT(t).Expect(server.get("/readyz")).To(Equal(tc.answer))
			})
		})
	}
}

// TestReadyz_answersAtOnce checks that no probe waits for a check, and that all probes get the same result.
func TestReadyz_answersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var checks atomic.Int64
		results := make(chan error)
		server := startServer(t, Options{Check: func(context.Context) error {
			checks.Add(1)
			return <-results
		}})
		began := time.Now()
		g.Expect(server.get("/readyz")).To(HavePrefix("503 "), "no check has ended")
		g.Expect(time.Since(began)).To(BeZero())
		results <- nil
		synctest.Wait()
		for range 100 {
			g.Expect(server.get("/readyz")).To(HavePrefix("200 "))
		}
		g.Expect(time.Since(began)).To(BeZero())
		g.Expect(checks.Load()).To(BeEquivalentTo(1))

		<-time.After(maxResultAge)
		g.Expect(server.get("/readyz")).To(HavePrefix("200 "), "the next check has begun and does not end")
		<-time.After(1)
		g.Expect(server.get("/readyz")).To(HavePrefix("503 "), "the last result is too old")
		close(results)
		<-time.After(failedPause)
		g.Expect(server.get("/readyz")).To(HavePrefix("200 "))
	})
}

func TestReadyz_followsTheChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var checks atomic.Int64
		var down, stopping atomic.Bool
		check := func(ctx context.Context) error {
			checks.Add(1)
			if !down.Load() {
				return nil
			}
			<-ctx.Done() // like a store that hangs
			return nil
		}
		server := startServer(t, Options{Check: check, Serving: func() error {
			if stopping.Load() {
				return errors.New("draining")
			}
			return nil
		}})
		<-time.After(time.Minute)
		g.Expect(checks.Load()).To(BeNumerically("~", time.Minute/readyPause, 8), "one in five seconds, and a few more at the start")
		g.Expect(server.get("/readyz")).To(HavePrefix("200 "))
		down.Store(true)
		<-time.After(readyPause + checkTimeout)
		g.Expect(server.get("/readyz")).To(HavePrefix("503 "))
		down.Store(false)
		<-time.After(failedPause + checkTimeout)
		g.Expect(server.get("/readyz")).To(HavePrefix("200 "))
		stopping.Store(true)
		g.Expect(server.get("/readyz")).To(HavePrefix("503 "), "at once")
	})
}

// TestReadyz_floodLocksOutNoClient probes while the store hangs, on more connections than allowed. If probes waited for a check,
// no connection would become free and the kubelet would be locked out.
func TestReadyz_floodLocksOutNoClient(t *testing.T) {
	const room = 16
	g := NewWithT(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	hang := make(chan struct{})
	server := New(listener, Options{
		Metrics: prometheus.NewRegistry(), Budget: room * boundedhttp.ConnectionCost,
		Check: func(context.Context) error {
			<-hang
			return nil
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		close(hang)
		stop()
		g.Expect(<-ended).To(Succeed())
	}()

	var strangers sync.WaitGroup
	for range 3 * room {
		stranger, err := new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = stranger.Close() })
		g.Expect(stranger.SetDeadline(time.Now().Add(5 * time.Second))).To(Succeed())
		strangers.Go(func() {
			// It may have been closed to free a slot.
			_, _ = stranger.Write([]byte("GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"))
			_, _ = bufio.NewReader(stranger).ReadByte()
		})
	}
	strangers.Wait()
	kubelet := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for range 10 {
		for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
			response, err := kubelet.Get("http://" + listener.Addr().String() + path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(response.StatusCode).To(Equal(want), path)
		}
	}
}
