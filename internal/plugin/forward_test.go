package plugin

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// kubelet speaks the protocol of port-forwards as an API server before WebSockets does. It answers each connection with answer, or
// reports a failure.
type kubelet struct {
	answer, failure string
	paths           chan string
}

// ServeHTTP upgrades a connection.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.paths <- r.Method + " " + r.URL.Path
	if r.Method != http.MethodPost { // a WebSocket
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }()
	reports, data := <-streams, <-streams
	if reports.Headers().Get(corev1.StreamType) != corev1.StreamTypeError || data.Headers().Get(corev1.PortHeader) != "8080" {
		return
	}
	if k.failure != "" {
		_, _ = reports.Write([]byte(k.failure))
		_ = reports.Close()
		<-conn.CloseChan()
		return
	}
	_ = reports.Close()
	buffer := make([]byte, 4096)
	if _, err := data.Read(buffer); err == nil {
		_, _ = data.Write([]byte(k.answer))
	}
	<-conn.CloseChan()
}

func dialKubelet(t *testing.T, k *kubelet) *http.Client {
	t.Helper()
	k.paths = make(chan string, 4)
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	dial, err := newDial(&rest.Config{Host: server.URL})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop-0"}}
	transport := &http.Transport{}
	transport.DialContext = dialContext(dial, pod, 8080)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func TestNewDial(t *testing.T) {
	g := NewWithT(t)
	body := "hello from the pod"
	k := &kubelet{answer: fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}
	client := dialKubelet(t, k)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod/", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(Equal(body))
	g.Expect(<-k.paths).To(Equal("GET /api/v1/namespaces/ns/pods/shop-0/portforward"), "by a WebSocket first")
	g.Expect(<-k.paths).To(Equal("POST /api/v1/namespaces/ns/pods/shop-0/portforward"))
}

func TestNewDial_reportsWhatTheKubeletSays(t *testing.T) {
	g := NewWithT(t)
	client := dialKubelet(t, &kubelet{failure: "dial tcp4 127.0.0.1:8080: connect: connection refused"})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://pod/", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
	}
	g.Expect(err).To(MatchError(ContainSubstring("port 8080 of the pod: dial tcp4 127.0.0.1:8080: connect: connection refused")))
}

// TestNewDial_reportsToWriters too: the report may come before a client has written its request.
func TestNewDial_reportsToWriters(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(&kubelet{failure: "connection refused", paths: make(chan string, 4)})
	t.Cleanup(server.Close)
	dial, err := newDial(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	conn, err := dial(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop-0"}}, 8080)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Read(make([]byte, 1))
	g.Expect(err).To(MatchError("port 8080 of the pod: connection refused"))
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	g.Expect(err).To(MatchError("port 8080 of the pod: connection refused"))
}

func TestNewDial_refused(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.Copy(w, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"shop-0\" is forbidden"}`))
	}))
	t.Cleanup(server.Close)
	dial, err := newDial(&rest.Config{Host: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = dial(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop-0"}}, 8080)
	g.Expect(err).To(MatchError(And(ContainSubstring("port-forward to pod shop-0"), ContainSubstring("is forbidden"))))
}
