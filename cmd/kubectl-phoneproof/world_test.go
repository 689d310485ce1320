package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/plugin"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

const (
	number      = "+4915112345678"
	apiKeyValue = "an-api-key-that-only-the-secret-has-0123456789"
)

var (
	plane      *controlplane.ControlPlane
	kubeconfig string
	namespaces atomic.Int32
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if plane, err = controlplane.Start(controlplane.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "plugin-")
	if err == nil {
		kubeconfig = filepath.Join(dir, "kubeconfig")
		err = controlplane.WriteKubeconfig(kubeconfig, plane.Config)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.RemoveAll(dir)
	return code
}

// world is a namespace with a project, and what stands for its pod.
type world struct {
	*WithT

	t         *testing.T
	kube      client.Client
	namespace string
	project   *verifyv1.VerificationProject
	// api and metrics are the addresses that a port-forward leads to; empty for none.
	api, metrics string
	// log is the log of the pod.
	log string
	// id is that of a request at the API.
	id string
	// user is the user of the commands; the administrator if empty.
	user string
	// eventsComeLate has the Event of a redelivery be stored a little later than its status.
	eventsComeLate bool
	// beforeRequest is called before each request that a command sends to the API server.
	beforeRequest func(*http.Request)
	// printed has what all commands printed so far.
	printed *gbytes.Buffer
}

func newWorld(t *testing.T, changes ...func(*verifyv1.VerificationProject)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	w := &world{WithT: NewWithT(t), t: t, namespace: fmt.Sprintf("plugin-%d", namespaces.Add(1)), printed: gbytes.NewBuffer()}
	w.SetDefaultEventuallyTimeout(time.Minute)
	w.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	w.Expect(verifyv1.AddToScheme(scheme)).To(Succeed())
	var err error
	w.kube, err = client.New(plane.Config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		StringData: map[string]string{"api-key": apiKeyValue, "webhook-secret": "the-former-webhook-secret-0123", "bot-token": "7:token"},
	})
	w.project = &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"},
		Spec: verifyv1.VerificationProjectSpec{
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "api-key"}, Scopes: []verifyv1.Scope{
				verifyv1.ScopeInit, verifyv1.ScopeStatus, verifyv1.ScopeRead, verifyv1.ScopeRedeliver,
			}}},
			Telegram: &verifyv1.Telegram{BotUsername: "shop_bot", BotTokenSecretRef: verifyv1.SecretKeyRef{Name: "shop", Key: "bot-token"}},
			Webhook: &verifyv1.Webhook{
				URL: "https://shop.example.com/hooks/phone", SecretRef: &verifyv1.SecretKeyRef{Name: "shop", Key: "webhook-secret"},
			},
		},
	}
	for _, change := range changes {
		change(w.project)
	}
	w.create(w.project)
	return w
}

// onPostgreSQL makes the project keep its requests in PostgreSQL.
func onPostgreSQL(p *verifyv1.VerificationProject) {
	p.Spec.Storage = verifyv1.Storage{
		Type: verifyv1.StoragePostgreSQL, PostgreSQL: &verifyv1.PostgreSQL{URISecretRef: verifyv1.URISecretRef{Name: "shop-db"}},
	}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.Expect(w.kube.Create(w.t.Context(), object)).To(Succeed())
}

// reload returns the project as it is now.
func (w *world) reload() *verifyv1.VerificationProject {
	w.t.Helper()
	now := &verifyv1.VerificationProject{}
	w.Expect(w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(w.project), now)).To(Succeed())
	return now
}

// setStatus writes the status of the project.
func (w *world) setStatus(change func(*verifyv1.VerificationProjectStatus)) {
	w.t.Helper()
	now := w.reload()
	change(&now.Status)
	w.Expect(w.kube.Status().Update(w.t.Context(), now)).To(Succeed())
}

// createPod makes a ready pod of the project.
func (w *world) createPod() *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: render.Name("shop") + "-0", Labels: render.Selector(w.project)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "example.com/phoneproof:v1.2.3"}}},
	}
	w.create(pod)
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Expect(w.kube.Status().Update(w.t.Context(), pod)).To(Succeed())
	return pod
}

// run runs a command of the plugin, and returns what it printed.
func (w *world) run(args ...string) (printed, warned string, err error) {
	w.t.Helper()
	return w.runIn(w.t.Context(), args...)
}

func (w *world) runIn(ctx context.Context, args ...string) (printed, warned string, err error) {
	var out, errOut bytes.Buffer
	env := &plugin.Env{
		Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.MultiWriter(&out, w.printed), ErrOut: &errOut},
		Dial:    func(*rest.Config) (plugin.Dial, error) { return w.dial, nil },
		ReadLogs: func(*rest.Config) (plugin.ReadLogs, error) {
			return func(context.Context, *corev1.Pod, *corev1.PodLogOptions) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(w.log)), nil
			}, nil
		},
	}
	cmd := newCommandIn(env)
	if w.beforeRequest != nil {
		env.Flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					w.beforeRequest(r)
					return next.RoundTrip(r)
				})
			})
			return config
		}
	}
	args = append(args, "--kubeconfig="+kubeconfig, "--namespace="+w.namespace)
	if w.user != "" {
		args = append(args, "--as="+w.user)
	}
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// must runs a command that succeeds, and returns what it printed.
func (w *world) must(args ...string) string {
	w.t.Helper()
	printed, warned, err := w.run(args...)
	w.Expect(err).NotTo(HaveOccurred(), warned)
	return printed
}

// mustFail runs a command that fails, and returns its error and what it printed.
func (w *world) mustFail(args ...string) string {
	w.t.Helper()
	printed, warned, err := w.run(args...)
	w.Expect(err).To(HaveOccurred(), "%s%s", printed, warned)
	return err.Error() + "\n" + printed + warned
}

// dial stands for the port-forward.
func (w *world) dial(ctx context.Context, pod *corev1.Pod, port int) (net.Conn, error) {
	address := map[int]string{plugin.PortAPI: w.api, plugin.PortMetrics: w.metrics}[port]
	if address == "" {
		return nil, fmt.Errorf("port %d of pod %s refuses connections", port, pod.Name)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// createRequest makes a VerificationRequest that the API made, with a status.
func (w *world) createRequest(name string, age time.Duration, change func(*verifyv1.VerificationRequest)) *verifyv1.VerificationRequest {
	w.t.Helper()
	created := metav1.NewMicroTime(time.Now().Add(-age).Truncate(time.Microsecond))
	request := &verifyv1.VerificationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: verifyv1.VerificationRequestSpec{
			ProjectRef: verifyv1.ProjectRef{Name: "shop"}, PhoneNumber: number, Method: verifyv1.MethodTelegram, Reference: "ref-" + name,
			Init: &verifyv1.Init{CreatedAt: created, ExpiresAt: metav1.NewMicroTime(created.Add(10 * time.Minute)), KeyName: "backend"},
		},
	}
	w.create(request)
	request.Status.Phase, request.Status.ObservedGeneration = verifyv1.PhasePending, 1
	if change != nil {
		change(request)
	}
	w.Expect(w.kube.Status().Update(w.t.Context(), request)).To(Succeed())
	return request
}

// makeVerified makes a request verified, with an event that was given up.
func makeVerified(exhausted bool) func(*verifyv1.VerificationRequest) {
	return func(r *verifyv1.VerificationRequest) {
		at := metav1.NewMicroTime(r.Spec.Init.CreatedAt.Add(time.Minute))
		r.Status.Phase, r.Status.VerifiedAt, r.Status.ActualPhoneNumber = verifyv1.PhaseVerified, &at, number
		r.Status.Delivery = &verifyv1.Delivery{Attempts: 10, LastAttemptAt: &at, LastStatusCode: 500, LastReason: "http_500"}
		if exhausted {
			r.Status.Delivery.ExhaustedAt = &at
		} else {
			r.Status.Delivery.DeliveredAt = &at
			r.Status.Delivery.LastStatusCode, r.Status.Delivery.LastReason = 204, ""
		}
	}
}
