package project

import (
	"context"
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

// usual returns the default options of an operator.
func usual() Options {
	return Options{
		Render: render.Options{Image: "ghcr.io/phoneproof/phoneproof:1.0.0"},
		Permissions: Permissions{
			Annotations: []string{"cert-manager.io/*", "external-dns.alpha.kubernetes.io/*"},
			Tolerations: []string{"*"}, ServiceTypes: []string{"ClusterIP"},
		},
		MaxUnreadyRollouts: 10,
		GatewayPeriod:      200 * time.Millisecond,
	}
}

// running is an operator in this process.
type running struct {
	*requests

	manager manager.Manager
	stop    func()
}

// operate runs an operator in some namespaces, until it is stopped or the spec ends.
func operate(ctx context.Context, as *rest.Config, o Options, namespaces ...string) *running {
	GinkgoHelper()
	as = rest.CopyConfig(as)
	r := &running{requests: &requests{}}
	as.Wrap(r.count)
	scheme, err := Scheme()
	Expect(err).NotTo(HaveOccurred())
	caches, err := CacheOptions(namespaces)
	Expect(err).NotTo(HaveOccurred())
	r.manager, err = manager.New(as, manager.Options{
		Scheme: scheme, Cache: caches, Client: ClientOptions(), Logger: GinkgoLogr,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	o.Log, o.Namespaces = GinkgoLogr, namespaces
	Expect(New(o).Register(ctx, r.manager)).To(Succeed())
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- r.manager.Start(running) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		Expect(<-ended).To(Succeed())
	})
	DeferCleanup(r.stop)
	return r
}

// requests counts the requests of a client to the API server.
type requests struct {
	mu     sync.Mutex
	writes []string
}

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
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
