package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// newDial returns a Dial that port-forwards as kubectl does, but without a listener: no other program of this machine can use it.
func newDial(config *rest.Config) (Dial, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	pods, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("create stream client: %w", err)
	}
	return func(_ context.Context, pod *corev1.Pod, port int) (net.Conn, error) {
		address := pods.Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
		modern, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
		if err != nil {
			return nil, fmt.Errorf("create stream client: %w", err)
		}
		older := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
		streams, _, err := portforward.NewFallbackDialerForStreaming(modern, older, needsOlder).Dial(portforward.PortForwardProtocolV1Name)
		if err != nil {
			return nil, fmt.Errorf("port-forward to pod %s: %w", pod.Name, err)
		}
		conn, err := openConn(streams, port)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("port-forward to pod %s: %w", pod.Name, err), streams.Close())
		}
		return conn, nil
	}, nil
}

// DialReady returns a transport to a port of a ready pod.
func DialReady(ctx context.Context, env *Env, c *Client, port int) (*http.Transport, error) {
	pod, err := c.findReadyPod(ctx)
	if err != nil {
		return nil, fmt.Errorf("find pod: %w", err)
	}
	connect := env.Dial
	if connect == nil {
		connect = newDial
	}
	dial, err := connect(c.Config)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	return &http.Transport{
		DialContext:         dialContext(dial, pod, port),
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
	}, nil
}

// dialContext returns a DialContext to a port of a pod, whatever the address.
func dialContext(dial Dial, pod *corev1.Pod, port int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, pod, port) }
}

// HideURL takes the address out of an error of DialReady's transport: it names no host that exists.
func HideURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// needsOlder reports whether an API server, or a proxy before it, does not know port-forwards by WebSocket.
func needsOlder(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// podConn is a connection to a port of a pod.
type podConn struct {
	httpstream.Stream

	streams httpstream.Connection
	port    int
	// reported is closed when report is what the kubelet reports; nil if it reaches the port.
	reported chan struct{}
	report   error
	once     sync.Once
}

func openConn(streams httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	reports, err := streams.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open error stream: %w", err)
	}
	if err := reports.Close(); err != nil { // nothing is written to it
		return nil, fmt.Errorf("close error stream: %w", err)
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := streams.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open data stream: %w", err)
	}
	conn := &podConn{Stream: data, streams: streams, port: port, reported: make(chan struct{})}
	go conn.awaitReport(reports) // ends with the connection
	return conn, nil
}

// awaitReport ends the connection if the kubelet could not reach the port.
func (c *podConn) awaitReport(reports io.Reader) {
	report, err := io.ReadAll(reports)
	if err == nil && len(report) > 0 {
		c.report = fmt.Errorf("port %d of the pod: %s", c.port, report)
	}
	close(c.reported)
	if c.report != nil {
		_ = c.Close() // who reads or writes gets the report
	}
}

// Read returns the kubelet's report in place of an end that it explains.
func (c *podConn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	if err == nil || n > 0 {
		return n, err
	}
	return 0, c.explainEnd(err)
}

// Write returns the kubelet's report in place of an end that it explains: it may come before the first byte was written.
func (c *podConn) Write(b []byte) (int, error) {
	select {
	case <-c.reported:
		if c.report != nil {
			return 0, c.report
		}
	default:
	}
	n, err := c.Stream.Write(b)
	if err != nil {
		err = c.explainEnd(err)
	}
	return n, err
}

// explainEnd returns the kubelet's report, or the error if there is none.
func (c *podConn) explainEnd(err error) error {
	select {
	case <-c.reported:
		if c.report != nil {
			return c.report
		}
	case <-time.After(time.Second): // the report may be on its way; the end itself does not wait longer
	}
	return err
}

// Close ends the connection and the port-forward.
func (c *podConn) Close() error {
	var err error
	c.once.Do(func() { err = errors.Join(c.Reset(), c.streams.Close()) })
	return err
}

// LocalAddr returns no address: there is none.
func (c *podConn) LocalAddr() net.Addr { return podAddr{} }

// RemoteAddr returns no address.
func (c *podConn) RemoteAddr() net.Addr { return podAddr{} }

// SetDeadline does nothing: a caller that gives up closes the connection.
func (c *podConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *podConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *podConn) SetWriteDeadline(time.Time) error { return nil }

// podAddr is the address of a connection that has none.
type podAddr struct{}

// Network names the kind of network.
func (podAddr) Network() string { return "port-forward" }

// String returns the address.
func (podAddr) String() string { return "pod" }
