package webhook

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// TestSend_faults checks faults below HTTP.
func TestSend_faults(t *testing.T) {
	// drip writes text, then one byte at a time until the client closes the connection.
	drip := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			_, err := conn.Write([]byte(text))
			for range time.Tick(5 * time.Millisecond) {
				if err != nil {
					return
				}
				_, err = conn.Write([]byte("x"))
			}
		}
	}
	reset := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			_, _ = conn.Write([]byte(text))
			_ = conn.SetLinger(0)
		}
	}
	send := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			_, _ = conn.Write([]byte(text))
			_ = conn.CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
		}
	}
	flood := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			for {
				if _, err := conn.Write([]byte(text)); err != nil {
					return
				}
			}
		}
	}
	for name, c := range map[string]struct {
		server func(*net.TCPConn)
		want   Verdict
	}{
		"never answers":              {func(conn *net.TCPConn) { _, _ = conn.Read(make([]byte, 1)) }, Verdict{Outcome: Retry, Reason: ReasonTimeout}},
		"slow header":                {drip("HTTP/1.1 200 OK\r\nX: "), Verdict{Outcome: Retry, Reason: ReasonTimeout}},
		"slow body after 200":        {drip("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), Verdict{Outcome: Delivered, StatusCode: 200}},
		"slow body after 500":        {drip("HTTP/1.1 500 X\r\nContent-Length: 9999\r\n\r\n"), Verdict{Outcome: Retry, StatusCode: 500, Reason: "http_500"}},
		"body that never ends":       {drip("HTTP/1.1 200 OK\r\n\r\n"), Verdict{Outcome: Delivered, StatusCode: 200}},
		"reset after 200":            {reset("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Verdict{Outcome: Delivered, StatusCode: 200}},
		"broken chunks after 200":    {send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"), Verdict{Outcome: Delivered, StatusCode: 200}},
		"reset":                      {reset(""), Verdict{Outcome: Retry, Reason: ReasonConnection}},
		"closed":                     {send(""), Verdict{Outcome: Retry, Reason: ReasonConnection}},
		"closed in the header":       {send("HTTP/1.1 200 OK\r\nX: y"), Verdict{Outcome: Retry, Reason: ReasonConnection}},
		"not HTTP":                   {send("SSH-2.0-OpenSSH_9.9\r\n\r\n"), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"invalid status":             {send("HTTP/1.1 2xx OK\r\n\r\n"), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"invalid header":             {send("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"invalid length":             {send("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"100-continue":               {send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Verdict{Outcome: Delivered, StatusCode: 200}},
		"flood of 103":               {flood("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"flood of header":            {flood("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1000)), Verdict{Outcome: Retry, Reason: ReasonBadResponse}},
		"switching protocols":        {send("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), Verdict{Outcome: Retry, StatusCode: 101, Reason: "http_101"}},
		"status of three odd digits": {send("HTTP/1.1 999 Why\r\nContent-Length: 0\r\n\r\n"), Verdict{Outcome: Retry, StatusCode: 999, Reason: "http_999"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			url := serveRaw(t, c.server)
			s := newSender(t, Options{})
			before := runtime.NumGoroutine()
			start := time.Now()
			to := testDestination(url)
			if c.want.Reason == ReasonTimeout {
				to = impatientDestination(url)
			}
			result := sendEvent(t, s, to)
			g.Expect(result.Verdict).To(Equal(c.want))
			g.Expect(time.Since(start)).To(BeNumerically("<", testDestination(url).timeout/2))
			g.Eventually(runtime.NumGoroutine, 30*time.Second).Should(BeNumerically("<=", before+1), "goroutines")
			g.Expect(s.Free(newEndpoint(to))).To(BeNumerically(">=", SlowStart))
		})
	}
}

func TestSend_aSlowBodyDoesNotKeepItsSlot(t *testing.T) {
	url := serveRaw(t, func(conn *net.TCPConn) {
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"))
		_, _ = conn.Read(make([]byte, 1))
	})
	result := sendEvent(t, newSender(t, Options{}), testDestination(url))
	g := NewWithT(t)
	g.Expect(result.Outcome).To(Equal(Delivered))
	g.Expect(result.Duration).To(BeNumerically("<", testDestination(url).timeout/2), "well before the attempt's timeout")
}

// TestSend_hugeBodies answers with 10 GiB, and with a gzip bomb.
func TestSend_hugeBodies(t *testing.T) {
	zeros := make([]byte, 1<<20)
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 8 {
		_, _ = zip.Write(zeros)
	}
	_ = zip.Close()

	var written atomic.Int64
	var acceptEncoding atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		acceptEncoding.Store(r.Header["Accept-Encoding"])
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(10<<30))
		for {
			n, err := w.Write(zeros)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer server.Close()
	s := newSender(t, Options{})
	for _, path := range []string{"/huge", "/bomb"} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			g.Expect(sendEvent(t, s, testDestination(server.URL+path)).Outcome).To(Equal(Delivered))
			runtime.ReadMemStats(&after)
			g.Expect(after.TotalAlloc-before.TotalAlloc).To(BeNumerically("<", 2<<20), "bytes allocated, including the server's")
			g.Expect(acceptEncoding.Load()).To(BeEmpty())
		})
	}
	server.Close() // waits for the handler
	NewWithT(t).Expect(written.Load()).To(BeNumerically("<", 64<<20), "socket buffers, not 10 GiB")
}

// TestSend_followsNoRedirect checks that the target of a redirect gets no connection.
func TestSend_followsNoRedirect(t *testing.T) {
	c := newCanary(t, "127.0.0.1:0")
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, location := range []string{"http://127.0.0.1:" + c.listenPort() + "/", "http://169.254.169.254/latest", "//127.0.0.1:" + c.listenPort(), "https://127.0.0.1:" + c.listenPort()} {
			server := httptest.NewServer(http.RedirectHandler(location, status))
			result := sendEvent(t, newSender(t, Options{}), testDestination(server.URL))
			NewWithT(t).Expect(result.Verdict).To(Equal(Verdict{Outcome: Retry, StatusCode: status, Reason: ReasonRedirect}))
			server.Close()
		}
	}
	NewWithT(t).Expect(c.countConnections(t)).To(BeZero())
}

func TestSend_refused(t *testing.T) {
	listener := listenOn(t, "127.0.0.1:0")
	address := listener.Addr().String()
	_ = listener.Close()
	result := sendEvent(t, newSender(t, Options{}), testDestination("http://"+address))
	NewWithT(t).Expect(result.Verdict).To(Equal(Verdict{Outcome: Retry, Reason: ReasonRefused}))
}

func TestSend_keepsNoCookies(t *testing.T) {
	g := NewWithT(t)
	cookies := make(chan int, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies <- len(r.Cookies())
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	}))
	defer server.Close()
	s := newSender(t, Options{})
	sendEvent(t, s, testDestination(server.URL))
	sendEvent(t, s, testDestination(server.URL))
	g.Expect([]int{<-cookies, <-cookies}).To(Equal([]int{0, 0}))
}
