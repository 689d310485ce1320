package adversary

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/ports"
	"github.com/phoneproof/phoneproof/test/program"
	"github.com/phoneproof/phoneproof/test/system"
)

const (
	example = "../../docs/examples/session/"
	shopURL = "https://shop.example"
	// pageURL is the baseURL that system gives to its first project.
	pageURL   = "https://first.example"
	simSecret = "sim_4915113000000:of-the-shop"
	simBot    = "shop_0_bot"
	simToken  = "sim_" + simBot + ":of-the-shop"
	// nowhere is where a bot with a real token would be called; this one's is the simulator's.
	nowhere = "http://127.0.0.1:1"
	// patience is longer than a busy machine takes for anything.
	patience = 30 * time.Second
)

// programName is the name under which this test program is the server.
const programName = "phoneproof"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		os.Exit(program.Main())
	}
	os.Exit(m.Run())
}

// world is the example's website, two replicas of its project, and the simulated messengers.
//
// Every step of a verification meets another replica than the one before: the website calls the first one, and the pages are at the
// second. Messages by WhatsApp reach the second one, and those by Telegram the first.
type world struct {
	system      *system.System
	first       *system.Replica
	second      *system.Replica
	shopAddress string
	simulator   string // its URL

	numbers atomic.Int64
}

func startWorld(t *testing.T) *world {
	t.Helper()
	w := startReplicas(t, system.Kubernetes, editProject)
	w.startShop(t)
	return w
}

// startReplicas starts a world without the website.
func startReplicas(t *testing.T, store system.Store, edit func(*verifyv1.VerificationProject) error) *world {
	t.Helper()
	g := NewWithT(t)
	w := &world{shopAddress: ports.Address(t)}
	platforms := simulator.New(simulator.Options{Users: []simulator.Person{}, Redirect: func(callback string) string {
		return strings.Replace(callback, pageURL, "http://"+w.receiverOf(callback).API, 1)
	}})
	server := httptest.NewServer(platforms)
	t.Cleanup(server.Close)
	w.simulator = server.URL
	posted := make(chan error, 1)
	go func() { posted <- platforms.Start(t.Context()) }() // ends with the test
	t.Cleanup(func() { g.Expect(<-posted).To(Succeed()) })

	dir := t.TempDir()
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.Symlink(self, filepath.Join(dir, programName))).To(Succeed())
	w.system, err = system.Start(t.Context(), system.Options{
		Store: store, Program: filepath.Join(dir, programName), Dir: filepath.Join(dir, "system"), Telegram: nowhere,
		Project: func(p *verifyv1.VerificationProject) { g.Expect(edit(p)).To(Succeed()) },
		Flags:   []string{"--simulator-url=" + server.URL},
	})
	if errors.Is(err, pgserver.ErrNotInstalled) {
		t.Skip(err)
	}
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(w.system.Stop()).To(Succeed()) })
	g.Expect(w.openAccounts(platforms)).To(Succeed())
	w.first, w.second = w.startReplica(t), w.startReplica(t)
	for _, r := range []*system.Replica{w.first, w.second} {
		g.Expect(r.AwaitReady(t.Context())).To(Succeed())
	}
	return w
}

// receiverOf returns the replica that gets the messages of a messenger.
func (w *world) receiverOf(callback string) *system.Replica {
	if strings.HasSuffix(callback, system.TelegramPath) {
		return w.first
	}
	return w.second
}

// editProject gives the project what the example's has at level Session, and the website's address.
func editProject(p *verifyv1.VerificationProject) error {
	content, err := os.ReadFile(example + "project.yaml")
	if err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	var own verifyv1.VerificationProject
	if err := yaml.UnmarshalStrict(content, &own); err != nil {
		return fmt.Errorf("read project: %w", err)
	}
	p.Spec.DisplayName, p.Spec.Assurance, p.Spec.Purposes = own.Spec.DisplayName, own.Spec.Assurance, own.Spec.Purposes
	p.Spec.Page = &verifyv1.Page{ReturnURLs: []verifyv1.ReturnURL{shopURL}}
	p.Spec.Webhook = nil
	return nil
}

// openAccounts gives the project accounts of the simulator.
func (w *world) openAccounts(s *simulator.Simulator) error {
	p := w.system.Project
	return errors.Join(
		p.WriteSecret("access-token", simSecret), p.WriteSecret("app-secret", simSecret), p.WriteSecret("bot-token", simToken),
		s.AddWhatsApp(simulator.WhatsAppAccount{
			PhoneNumberID: p.PhoneNumberID, Number: "+4915113000000", AppSecret: simSecret, Callback: pageURL + system.WhatsAppPath,
		}),
		s.AddTelegram(simulator.TelegramAccount{
			Username: simBot, Token: simToken, Callback: pageURL + system.TelegramPath, Secret: telegram.WebhookSecret([]byte(simToken), p.Name()),
		}))
}

func (w *world) startReplica(t *testing.T) *system.Replica {
	t.Helper()
	g := NewWithT(t)
	r, err := w.system.StartReplica()
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if content, err := os.ReadFile(r.LogFile); t.Failed() && err == nil {
			t.Logf("%s:\n%s", r.Name, content)
		}
	})
	return r
}

// startShop runs the website until the test ends.
func (w *world) startShop(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	built := filepath.Join(t.TempDir(), "shop")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", built, "main.go")
	build.Dir = example + "go" // in the module of the examples
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	var stderr bytes.Buffer
	site := exec.CommandContext(t.Context(), built)
	site.Env = append(os.Environ(),
		"ADDRESS="+w.shopAddress, "ORIGIN="+shopURL, "PHONEPROOF_URL=http://"+w.first.API, "PHONEPROOF_KEY="+w.system.Key)
	site.Stderr = &stderr
	site.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	g.Expect(site.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = site.Wait() // the end of the context killed it
		if t.Failed() {
			t.Log(stderr.String())
		}
	})
	var dialer net.Dialer
	g.Eventually(func() error {
		conn, err := dialer.DialContext(t.Context(), "tcp", w.shopAddress)
		if err != nil {
			return err
		}
		return conn.Close()
	}).WithTimeout(patience).Should(Succeed())
}

// errOtherSite is returned for sites that are none of the project, such as a messenger's.
var errOtherSite = errors.New("a site of others")

// RoundTrip implements http.RoundTripper: it leads the website's host and that of the pages to what serves them.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	address := map[string]string{shopURL: w.shopAddress, pageURL: w.second.API}[r.URL.Scheme+"://"+r.URL.Host]
	if address == "" {
		return nil, errOtherSite
	}
	sent := r.Clone(r.Context())
	sent.Host, sent.URL.Scheme, sent.URL.Host = r.URL.Host, "http", address
	response, err := http.DefaultTransport.RoundTrip(sent)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", r.URL.Host, err)
	}
	response.Request = r // browsers know nothing of addresses
	return response, nil
}

// newNumber returns a number that no one else has, as a user of both messengers.
func (s *scene) newNumber() string {
	s.t.Helper()
	number := fmt.Sprintf("+49151%08d", 20_000_000+s.numbers.Add(1))
	s.callPhone("", map[string]string{"name": "Ada", "phone": number}, http.StatusCreated, nil)
	return number
}

// readStored returns the requests for a number, as they are stored.
func (s *scene) readStored(number string) []verifyv1.VerificationRequest {
	s.t.Helper()
	var all verifyv1.VerificationRequestList
	s.Expect(s.system.Admin.List(s.t.Context(), &all)).To(Succeed())
	var own []verifyv1.VerificationRequest
	for _, r := range all.Items {
		if r.Spec.PhoneNumber == number {
			own = append(own, r)
		}
	}
	return own
}
