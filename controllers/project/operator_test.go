package project

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// usual returns the options of an operator. Its permissions are wider than the default ones.
func usual() Options {
	return Options{
		Render: render.Options{Image: "ghcr.io/phoneproof/phoneproof:1.0.0"},
		Permissions: Permissions{
			Annotations: []string{"cert-manager.io/*", "external-dns.alpha.kubernetes.io/*"},
			Tolerations: []string{"*"}, ServiceTypes: []string{"ClusterIP"},
		},
		MaxUnreadyRollouts: 10,
	}
}

// startManager runs an operator in this process by a manager, as in production, until it is stopped or the spec ends.
func startManager(ctx context.Context, as *rest.Config, o Options, namespaces ...string) (stop func()) {
	GinkgoHelper()
	scheme, err := Scheme()
	Expect(err).NotTo(HaveOccurred())
	caches, err := CacheOptions(namespaces)
	Expect(err).NotTo(HaveOccurred())
	mgr, err := manager.New(as, manager.Options{
		Scheme: scheme, Cache: caches, Client: ClientOptions(), Logger: GinkgoLogr,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	o.Log, o.Namespaces, o.GatewayPeriod = GinkgoLogr, namespaces, 200*time.Millisecond
	Expect(New(o).Register(ctx, mgr)).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(stop)
	return stop
}

// requests counts the requests of a client to the API server.
type requests struct {
	mu     sync.Mutex
	writes []string
	crash  int // the number of the write after which all requests fail; never if zero
}

// errCrashed is the error of all requests after a crash.
var errCrashed = errors.New("the operator has crashed")

// crashAfter makes all requests fail after some more writes, as if the operator had crashed.
func (r *requests) crashAfter(writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.crash = len(r.writes) + writes
}

func (r *requests) isCrashed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crash > 0 && len(r.writes) >= r.crash
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if r.isCrashed() {
			return nil, errCrashed
		}
		response, err := next.RoundTrip(request)
		if request.Method != http.MethodGet && err == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.writes = append(r.writes, fmt.Sprintf("%s %s %d", request.Method, beforeNamespace.ReplaceAllString(request.URL.Path, ""), response.StatusCode))
		}
		return response, err
	})
}

// beforeNamespace matches the path up to the namespace.
var beforeNamespace = regexp.MustCompile(`^/apis?/(.*/)?v[0-9a-z]+/namespaces/`)

// written returns the write requests whose path contains all of the texts.
func (r *requests) written(texts ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, write := range r.writes {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(write, text)
		}
		if all {
			out = append(out, write)
		}
	}
	return out
}
