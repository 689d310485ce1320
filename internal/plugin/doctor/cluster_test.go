package doctor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/test/controlplane"
)

// The credentials of the simulated accounts, which are searched for in every report.
const (
	accessToken = "sim_4915112345670:canary-token"
	appSecret   = "sim_4915112345670:canary-secret"
	botToken    = "sim_ada_books_bot:canary-bot"
	apiKey      = "canary-key-of-more-than-thirty-two-characters"
	signing     = "canary-webhook-secret-of-a-project"
	ownNumber   = "+4915112345670"
)

// cluster is an API server without nodes, a simulator, and PhoneProof behind proxies.
type cluster struct {
	plane     *controlplane.ControlPlane
	admin     client.Client
	simulator string // its URL
	sim       *simulator.Simulator
	server    string // the URL of a running PhoneProof
	ca        *authority
}

// patient is a project of one test.
type patient struct {
	*WithT

	t         *testing.T
	c         *cluster
	namespace string
	project   *verifyv1.VerificationProject
	options   Options
	config    *rest.Config
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	g := NewWithT(t)
	log.SetLogger(logr.Discard())
	plane, err := controlplane.Start(controlplane.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	examiner, err := NewExaminer(plane.Config, Options{Timeout: time.Minute})
	g.Expect(err).NotTo(HaveOccurred())
	c := &cluster{plane: plane, admin: examiner.client, ca: newAuthority(t), sim: simulator.New(simulator.Options{})}
	sim := httptest.NewServer(c.sim)
	t.Cleanup(sim.Close)
	c.simulator = sim.URL
	c.server = servePhoneProof(t, c.simulator)
	c.createOperator(t)
	return c
}

// createOperator creates the Deployment of an operator, and plays the kubelet for it.
func (c *cluster) createOperator(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(c.admin.Create(t.Context(), newNamespace("phoneproof-system"))).To(Succeed())
	labels := map[string]string{"app.kubernetes.io/component": "operator"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "phoneproof-system", Name: "phoneproof-operator", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{ServiceAccountName: "phoneproof-operator", Containers: []corev1.Container{{
					Name: "operator", Image: "phoneproof:dev", Args: []string{"operator", "--server-image=phoneproof:dev"},
				}}},
			},
		},
	}
	g.Expect(c.admin.Create(t.Context(), d)).To(Succeed())
	c.setOperatorReady(t, 1)
	for _, name := range []string{"phoneproof-server-kubernetes", "phoneproof-server-postgresql"} {
		g.Expect(c.admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	g.Expect(c.admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "phoneproof-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "phoneproof-system", Name: "phoneproof-operator"}},
	})).To(Succeed())
}

// restrictOperator has the operator work in one namespace more than it has rights in, until the test ends.
func (c *cluster) restrictOperator(t *testing.T, namespace string) {
	t.Helper()
	var d appsv1.Deployment
	g, ctx := NewWithT(t), context.WithoutCancel(t.Context())
	key := client.ObjectKey{Namespace: "phoneproof-system", Name: "phoneproof-operator"}
	set := func(account string, args ...string) {
		g.Expect(c.admin.Get(ctx, key, &d)).To(Succeed())
		d.Spec.Template.Spec.ServiceAccountName = account
		d.Spec.Template.Spec.Containers[0].Args = append([]string{"operator", "--server-image=phoneproof:dev"}, args...)
		g.Expect(c.admin.Update(ctx, &d)).To(Succeed())
	}
	set("without-rights", "--watch-namespace="+namespace+",other")
	t.Cleanup(func() { set("phoneproof-operator") })
}

func (c *cluster) setOperatorReady(t *testing.T, pods int32) {
	t.Helper()
	var d appsv1.Deployment
	g, ctx := NewWithT(t), context.WithoutCancel(t.Context()) // also when a test ends
	g.Expect(c.admin.Get(ctx, client.ObjectKey{Namespace: "phoneproof-system", Name: "phoneproof-operator"}, &d)).To(Succeed())
	d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: pods}
	g.Expect(c.admin.Status().Update(ctx, &d)).To(Succeed())
}

// setOperatorPod creates a pod of the operator until the test ends, or changes its status.
func (c *cluster) setOperatorPod(t *testing.T, status corev1.ContainerStatus) {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "phoneproof-system", Name: "phoneproof-operator-1", Labels: map[string]string{"app.kubernetes.io/component": "operator"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "phoneproof:dev"}}},
	}
	if c.admin.Get(t.Context(), client.ObjectKeyFromObject(pod), pod) != nil {
		g.Expect(c.admin.Create(t.Context(), pod)).To(Succeed())
		t.Cleanup(func() {
			g.Expect(c.admin.Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0))).To(Succeed())
		})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	g.Expect(c.admin.Status().Update(t.Context(), pod)).To(Succeed())
}

func newNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// newPatient creates a healthy project in a namespace of its own. The operator and the pods are played by their status.
func (c *cluster) newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{
		WithT: NewWithT(t), t: t, c: c, namespace: "shop-" + strings.ToLower(rand.Text()[:10]), config: c.plane.Config,
		options: Options{
			Probe: true, Timeout: time.Minute, SimulatorURL: c.simulator, Roots: c.ca.pool, Settle: time.Nanosecond,
			OperatorNamespace: "phoneproof-system",
		},
	}
	p.create(newNamespace(p.namespace))
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "shop"},
		StringData: map[string]string{"api-key": apiKey + "\n", "webhook": signing, "token": accessToken, "secret": appSecret, "bot": botToken},
	})
	p.addAccounts()
	ref := func(key string) verifyv1.SecretKeyRef { return verifyv1.SecretKeyRef{Name: "shop", Key: key} }
	p.project = &verifyv1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "books"},
		Spec: verifyv1.VerificationProjectSpec{
			BaseURL: c.ca.serve(t, forwardTo(t, c.server, ""), c.ca.issue(t, leaf{})),
			APIKeys: []verifyv1.APIKey{{Name: "backend", SecretRef: ref("api-key")}},
			Webhook: &verifyv1.Webhook{URL: "https://shop.example.com/hook", SecretRef: new(ref("webhook"))},
			WhatsApp: &verifyv1.WhatsApp{
				PhoneNumber: ownNumber, PhoneNumberID: "1234567890", AccessTokenSecretRef: ref("token"), AppSecretRef: ref("secret"),
				RegisterWebhook: new(false),
			},
			Telegram: &verifyv1.Telegram{
				BotUsername: "ada_books_bot", BotTokenSecretRef: ref("bot"), Updates: verifyv1.TelegramUpdatesPolling,
			},
		},
	}
	p.create(p.project)
	p.recover()
	return p
}

// addAccounts puts the simulated accounts in order, and ends faults of earlier tests.
func (p *patient) addAccounts() {
	p.t.Helper()
	p.Expect(p.callSimulator(http.MethodPost, "/sim/reset", "")).To(Equal(http.StatusNoContent))
	p.Expect(p.c.sim.AddWhatsApp(simulator.WhatsAppAccount{
		PhoneNumberID: "1234567890", Number: ownNumber, AppSecret: appSecret, Subscribed: new(true),
	})).To(Succeed())
	p.Expect(p.c.sim.AddTelegram(simulator.TelegramAccount{Username: "ada_books_bot", Token: botToken})).To(Succeed())
}

func (p *patient) callSimulator(method, path, body string) int {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.c.simulator+path, strings.NewReader(body))
	p.Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	p.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	return response.StatusCode
}

func (p *patient) create(object client.Object) {
	p.t.Helper()
	p.Expect(p.c.admin.Create(p.t.Context(), object)).To(Succeed())
}

// edit changes the spec, after which the operator and the pods have acted on it.
func (p *patient) edit(change func(*verifyv1.VerificationProjectSpec)) {
	p.t.Helper()
	change(&p.project.Spec)
	p.Expect(p.c.admin.Update(p.t.Context(), p.project)).To(Succeed())
	p.recover()
}

// recover writes the status of a healthy project.
func (p *patient) recover() {
	p.t.Helper()
	p.project.Status.ObservedGeneration = p.project.Generation
	for conditionType, reason := range map[string]string{
		verifyv1.ConditionReady: verifyv1.ReasonReady, verifyv1.ConditionAvailable: verifyv1.ReasonPodsAvailable,
		verifyv1.ConditionSecretsReady: verifyv1.ReasonSecretsRead, verifyv1.ConditionStorageReady: verifyv1.ReasonStorageReachable,
		whatsAppReady: verifyv1.ReasonRegistrationByHand, telegramReady: verifyv1.ReasonPolling,
		verifyv1.ConditionWebhookHealthy: verifyv1.ReasonNoFailures,
	} {
		p.setCondition(conditionType, metav1.ConditionTrue, reason)
	}
}

// setCondition writes a condition into the status, as the operator and the pods do.
func (p *patient) setCondition(conditionType string, status metav1.ConditionStatus, reason string) {
	p.t.Helper()
	meta.SetStatusCondition(&p.project.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: "as a test has it", ObservedGeneration: p.project.Generation,
	})
	p.Expect(p.c.admin.Status().Update(p.t.Context(), p.project)).To(Succeed())
}

// setSecret replaces a value; nil removes the key.
func (p *patient) setSecret(key string, value []byte) {
	p.t.Helper()
	var secret corev1.Secret
	p.Expect(p.c.admin.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "shop"}, &secret)).To(Succeed())
	delete(secret.Data, key)
	if value != nil {
		secret.Data[key] = value
	}
	p.Expect(p.c.admin.Update(p.t.Context(), &secret)).To(Succeed())
}

// examine runs the doctor once.
func (p *patient) examine() Report {
	p.t.Helper()
	examiner, err := NewExaminer(p.config, p.options)
	p.Expect(err).NotTo(HaveOccurred())
	projects, err := examiner.Projects(p.t.Context(), p.namespace, p.project.Name)
	p.Expect(err).NotTo(HaveOccurred())
	r := Examine(examiner.Gather(p.t.Context(), &projects[0]))
	var out bytes.Buffer
	writeText(&out, &r)
	for _, secret := range []string{"canary", strings.TrimPrefix(ownNumber, "+")} {
		p.Expect(out.String()).NotTo(ContainSubstring(secret))
	}
	return r
}

// namesOf returns the names of what was found.
func namesOf(r Report) []string {
	names := []string{}
	for _, f := range r.Findings {
		names = append(names, f.Check)
	}
	return names
}

// TestDoctor_onACluster makes each broken set-up and has the doctor find it.
func TestDoctor_onACluster(t *testing.T) {
	g := NewWithT(t)
	for _, c := range allChecks() {
		g.Expect(made).To(HaveKey(c.name), "each check is made for real")
	}
	c := startCluster(t)
	t.Run("healthy", func(t *testing.T) {
		p := c.newPatient(t)
		r := p.examine()
		p.Expect(r.Findings).To(BeEmpty())
		p.Expect(r.NotChecked).To(BeEmpty())
		p.options.AskPlatforms = true
		r = p.examine()
		p.Expect(r.Findings).To(BeEmpty())
		p.Expect(r.NotChecked).To(BeEmpty())
	})
	t.Run("command", c.runCommand) // before the others leave projects, which it would examine too
	for _, check := range allChecks() {
		t.Run(check.name, func(t *testing.T) {
			p := c.newPatient(t)
			made[check.name](p)
			r := p.examine()
			p.Expect(namesOf(r)).To(ContainElement(check.name), "%+v", r)
		})
	}
	t.Run("returned namespace", c.examineReturned)
	t.Run("rights", c.examineWithoutRights)
	t.Run("hostile server", c.examineHostileServer)
	t.Run("no CRDs", c.examineWithoutCRDs) // the last one
}

// runCommand checks the exit codes and the forms of the report.
func (c *cluster) runCommand(t *testing.T) {
	p := c.newPatient(t)
	run := p.run
	text, err := run("books")
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(text).To(Equal("VerificationProject " + p.namespace + "/books: nothing found\n\nNot checked:\n" +
		"  the address of spec.baseURL: --probe is false\n"))

	p.edit(func(s *verifyv1.VerificationProjectSpec) { s.Suspend = new(true) })
	p.Expect(exitCodeOf(run("books"))).To(Equal(ExitFindings))
	text, _ = run("-o", "json")
	var fromJSON, fromYAML reports
	p.Expect(json.Unmarshal([]byte(text), &fromJSON)).To(Succeed())
	p.Expect(namesOf(fromJSON.Projects[0])).To(Equal([]string{"Suspended"}))
	text, _ = run("-o", "yaml")
	p.Expect(yaml.UnmarshalStrict([]byte(text), &fromYAML)).To(Succeed())
	p.Expect(fromYAML).To(Equal(fromJSON))

	p.Expect(fromJSON.Installation.Healthy).To(BeTrue())

	for _, args := range [][]string{
		{"absent"}, {"books", "-o", "wide"}, {"books", "--timeout=0s"}, {"books", "shop"}, {"--tiemout=1s"}, {"-A", "books"},
	} {
		p.Expect(exitCodeOf(run(args...))).To(Equal(ExitUnexamined), "%v", args)
	}
	text, err = run("-A")
	p.Expect(exitCodeOf(text, err)).To(Equal(ExitFindings))
	p.Expect(text).To(HavePrefix("The installation: nothing found\n\n"))
	p.Expect(text).To(ContainSubstring("VerificationProject " + p.namespace + "/books: 1 finding\n"))

	own := p.namespace
	t.Cleanup(func() { p.namespace = own })
	p.namespace = "default"
	text, err = run()
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(text).To(Equal("The installation: nothing found\n\nThere is no VerificationProject here.\n"))
	c.restrictOperator(t, own)
	text, err = run()
	p.Expect(exitCodeOf(text, err)).To(Equal(ExitFindings))
	for _, found := range []string{
		"NamespaceUnread", "may not list verificationprojects in " + own, "may not list verificationprojects in other\n",
		"RolesMissing", "there is no Role phoneproof-server-postgresql in other\n",
	} {
		p.Expect(text).To(ContainSubstring(found))
	}
}

// examineReturned examines a namespace that came back, when its operator was running.
func (c *cluster) examineReturned(t *testing.T) {
	p := c.newPatient(t)
	start := func(ago time.Duration) {
		c.setOperatorPod(t, corev1.ContainerStatus{Name: "operator", Ready: true, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-ago))},
		}})
	}
	c.restrictOperator(t, p.namespace)
	for _, name := range []string{"phoneproof-server-kubernetes", "phoneproof-server-postgresql"} {
		p.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}})
	}
	evidence := func() (all []string) {
		for _, f := range p.examine().Findings {
			all = append(all, f.Check+": "+f.Evidence)
		}
		return all
	}
	found := ContainElement(HavePrefix("NamespaceUnread: the Role phoneproof-server-postgresql in " + p.namespace + " is newer than the operator's"))
	start(time.Minute)
	p.Expect(evidence()).To(found)
	start(longestAbsence)
	p.Expect(evidence()).NotTo(found, "it has read the namespace all along, or it would have ended")
	start(-time.Minute)
	p.Expect(evidence()).NotTo(found, "it started after that")
}

// run runs the command.
func (p *patient) run(args ...string) (string, error) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "kubeconfig")
	p.Expect(controlplane.WriteKubeconfig(file, p.config)).To(Succeed())
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &file, &p.namespace
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := NewCommand(flags, streams)
	cmd.SetArgs(append(args, "--probe=false"))
	err := cmd.ExecuteContext(p.t.Context())
	return out.String(), err
}

// examineWithoutCRDs examines an installation that has an operator alone.
func (c *cluster) examineWithoutCRDs(t *testing.T) {
	p := c.newPatient(t)
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("verificationprojects.phoneproof.dev")
	p.Expect(c.admin.Delete(t.Context(), crd)).To(Succeed())
	p.Eventually(func() string {
		text, _ := p.run()
		return text
	}).WithTimeout(time.Minute).Should(ContainSubstring("they lack the kind VerificationProject\n"))
	p.Expect(exitCodeOf(p.run())).To(Equal(ExitFindings))
	p.Expect(exitCodeOf(p.run("books"))).To(Equal(ExitUnexamined))
}

// exitCodeOf returns the code that the program ends with.
func exitCodeOf(_ string, err error) int {
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code
	}
	return 0
}

// examineWithoutRights examines with the right to read the project and no other.
func (c *cluster) examineWithoutRights(t *testing.T) {
	p := c.newPatient(t)
	p.config = p.newReader()
	r := p.examine()
	p.Expect(r.Findings).To(BeEmpty())
	why := map[string]string{}
	for _, n := range r.NotChecked {
		why[n.What] = n.Why
	}
	p.Expect(why).To(Equal(map[string]string{
		"the clock of the pods": "needs get leases in " + p.namespace, "the Deployment": "needs get deployments in " + p.namespace,
		"the pods":                              "needs list pods in " + p.namespace,
		"ResourceQuotas":                        "needs list resourcequotas in " + p.namespace,
		"LimitRanges":                           "needs list limitranges in " + p.namespace,
		"NetworkPolicies":                       "needs list networkpolicies.networking.k8s.io in " + p.namespace,
		"the operator":                          "needs list deployments in phoneproof-system",
		"the CRDs":                              "needs get customresourcedefinitions.apiextensions.k8s.io in all namespaces",
		"the values of Secrets":                 "needs get secrets in " + p.namespace,
		"what arrives at the WhatsApp callback": "needs list pods in " + p.namespace,
	}))

	text, err := p.run("-A")
	p.Expect(exitCodeOf(text, err)).To(Equal(ExitUnexamined))
	p.Expect(text).To(HavePrefix("The installation: nothing found\n\nNot checked:\n  the projects: needs list verificationprojects in all namespaces\n"))
	p.Expect(text).To(ContainSubstring("VerificationProject " + p.namespace + "/books: nothing found\n"))
	p.namespace = "default"
	text, err = p.run()
	p.Expect(exitCodeOf(text, err)).To(Equal(ExitUnexamined))
	p.Expect(text).To(And(ContainSubstring("the projects: needs list verificationprojects in default\n"), Not(ContainSubstring("There is no"))))
}

// examineHostileServer has a server try to reach the reader's terminal and memory, and to lead the doctor elsewhere.
func (c *cluster) examineHostileServer(t *testing.T) {
	p := c.newPatient(t)
	led := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led++ }))
	t.Cleanup(elsewhere.Close)
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", elsewhere.URL+"/%1b%5b2J")
		w.WriteHeader(http.StatusFound)
		for range 64 { // 64 MiB, if they are all read
			if _, err := w.Write(bytes.Repeat([]byte("\x1b[2J"), 1<<18)); err != nil {
				return
			}
		}
	}))
	r := p.examine()
	p.Expect(namesOf(r)).To(Equal([]string{"LoginRequired"}))
	p.Expect(led).To(BeZero(), "no redirect is followed")
	encoded, err := json.Marshal(r)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(string(encoded)).NotTo(ContainSubstring(`\u001b`))
}

// awaitRights waits until the API server's authorizer has seen a binding.
func awaitRights(ctx context.Context, g *WithT, config *rest.Config, p *patient) {
	reader, err := NewExaminer(config, p.options)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		err := reader.client.Get(ctx, client.ObjectKeyFromObject(p.project), &verifyv1.VerificationProject{})
		if apierrors.IsForbidden(err) {
			return err
		}
		return nil
	}).WithTimeout(time.Minute).Should(Succeed())
}

// listen returns a listener on loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return l
}

// writeFile writes a file of a test and returns its name.
func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	NewWithT(t).Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
	return file
}

func mustEncode(value any) []byte {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return content
}
