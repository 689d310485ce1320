package operator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/phoneproof/phoneproof/internal/boundedhttp"
	"github.com/phoneproof/phoneproof/internal/health"
)

const (
	metricsPath = "/metrics"
	// noPort is the address of a port that is not opened, as controller-runtime spells it.
	noPort = "0"
	// portShare is the part of the connections' memory that each of the operator's ports may use, as a divisor. Neither of
	// them has more than a few clients.
	portShare = 8

	portHeaderTimeout   = 5 * time.Second
	portRequestTimeout  = 10 * time.Second
	portIdleTimeout     = 90 * time.Second
	portShutdownTimeout = time.Second
)

// addPorts adds the ports for metrics and probes to the manager. Those that the manager makes itself bound no connections.
func (o *Options) addPorts(ctx context.Context, mgr manager.Manager, config *rest.Config, watched *namespaces, log logr.Logger) error {
	if err := o.addMetrics(ctx, mgr, config, log.WithName("metrics")); err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	readiness := newReadiness(ctx, mgr.GetCache(), watched.describeUnread, log.WithName("probes"))
	if err := mgr.Add(readiness); err != nil {
		return fmt.Errorf("add readiness: %w", err)
	}
	probes := boundedhttp.Options{Handler: health.NewProbesHandler(readiness), Log: log.WithName("probes")}
	if err := addPort(ctx, mgr, "probes", o.HealthAddress, probes); err != nil {
		return fmt.Errorf("serve probes: %w", err)
	}
	return nil
}

// addMetrics adds the port for metrics, with TLS and authentication unless they are switched off.
func (o *Options) addMetrics(ctx context.Context, mgr manager.Manager, config *rest.Config, log logr.Logger) error {
	handler := health.NewMetricsHandler(metrics.Registry)
	port := boundedhttp.Options{Log: log}
	if o.MetricsSecure {
		clients, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "metrics"))
		if err != nil {
			return fmt.Errorf("make client for authentication: %w", err)
		}
		handler = newGuard(guardOptions{Clients: clients, Path: metricsPath, Next: handler, Log: log})
		if port.TLS, err = o.metricsTLS(mgr); err != nil {
			return fmt.Errorf("configure TLS: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, handler)
	port.Handler = mux
	return addPort(ctx, mgr, "metrics", o.MetricsAddress, port)
}

// metricsTLS returns the certificate of --metrics-cert-path, which may change, or a self-signed one.
func (o *Options) metricsTLS(mgr manager.Manager) (*tls.Config, error) {
	if o.MetricsCertPath != "" {
		watcher, err := certwatcher.New(filepath.Join(o.MetricsCertPath, "tls.crt"), filepath.Join(o.MetricsCertPath, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("--metrics-cert-path: %w", err)
		}
		if err := mgr.Add(watcher); err != nil {
			return nil, fmt.Errorf("watch the certificate: %w", err)
		}
		return &tls.Config{GetCertificate: watcher.GetCertificate}, nil
	}
	certificate, err := newSelfSigned()
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}}, nil
}

// newSelfSigned returns a self-signed certificate. Its key is an elliptic one: with RSA a flood of handshakes would
// cost a core.
func newSelfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "phoneproof-operator"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, nil
}

// addPort opens a port and has the manager serve it.
func addPort(ctx context.Context, mgr manager.Manager, name, address string, port boundedhttp.Options) error {
	if address == noPort {
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	port.Listener, port.Budget = listener, boundedhttp.Budget()/portShare
	port.ReadHeader, port.Read, port.Write, port.Idle = portHeaderTimeout, portRequestTimeout, portRequestTimeout, portIdleTimeout
	server, bounded := boundedhttp.NewServer(port)
	timeout := portShutdownTimeout
	if err := mgr.Add(&manager.Server{Name: name, Server: server, Listener: bounded, ShutdownTimeout: &timeout}); err != nil {
		return errors.Join(fmt.Errorf("add to the manager: %w", err), listener.Close())
	}
	return nil
}

// cacheSyncer is the part of a cache that readiness asks.
type cacheSyncer interface {
	WaitForCacheSync(ctx context.Context) bool
}

// isFilled reports whether a cache is filled, in less time than a check may take.
func isFilled(ctx context.Context, caches cacheSyncer) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return caches.WaitForCacheSync(ctx)
}

// newReadiness returns a readiness that begins once the caches are filled and ends with ctx. It notes what does not end it.
func newReadiness(ctx context.Context, caches cacheSyncer, note func() string, log logr.Logger) *health.Readiness {
	return health.NewReadiness(health.ReadinessOptions{
		Check: func(ctx context.Context) error {
			if !caches.WaitForCacheSync(ctx) {
				return errors.New("the caches are not filled")
			}
			return nil
		},
		Serving: ctx.Err,
		Note:    note,
		Log:     log,
	})
}
