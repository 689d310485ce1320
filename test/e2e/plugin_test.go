//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// doneTasks are the tasks that runPlugin did, by the namespace of the project.
var doneTasks = map[string]sets.Set[string]{}

// runPlugin runs a command of the kubectl plugin, on a shop's namespace unless it names another one. It must succeed. A command that
// the store had no time for is repeated, as it would be by hand.
func (s *shop) runPlugin(ctx context.Context, args ...string) string {
	GinkgoHelper()
	if doneTasks[s.namespace] == nil {
		doneTasks[s.namespace] = sets.New[string]()
	}
	doneTasks[s.namespace].Insert(taskOf(args))
	if !slices.Contains(args, "-n") {
		args = append(slices.Clone(args), "--namespace="+s.namespace)
	}
	var (
		output string
		err    error
	)
	Eventually(func() bool {
		output, err = run(ctx, filepath.Join(root, "bin", "kubectl-phoneproof"), args...)
		return err != nil && strings.Contains(err.Error(), "the API answered 503")
	}).WithContext(ctx).Should(BeFalse())
	Expect(err).NotTo(HaveOccurred())
	return output
}

// taskOf returns what a command of the plugin is there for: its subcommands, and the flags that make something else of it.
func taskOf(args []string) string {
	var task []string
	for _, arg := range args {
		if !regexp.MustCompile(`^[a-z-]+$`).MatchString(arg) || arg == "shop" || arg[0] == '-' {
			break
		}
		task = append(task, arg)
	}
	for _, flag := range []string{"-A", "--operator", "--failed", "--finish"} {
		if slices.Contains(args, flag) {
			task = append(task, flag)
		}
	}
	return strings.Join(task, " ")
}

// documentedTasks returns the tasks of the table in docs/kubectl-plugin.md.
func documentedTasks() sets.Set[string] {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "kubectl-plugin.md"))
	Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(content), "| task | command |\n")
	Expect(found).To(BeTrue())
	table, _, _ = strings.Cut(table, "\n\n")
	tasks := sets.New[string]()
	for _, command := range regexp.MustCompile("`kubectl phoneproof ([^`]+)`").FindAllStringSubmatch(table, -1) {
		tasks.Insert(taskOf(strings.Fields(command[1])))
	}
	return tasks
}

// objectTasks are about VerificationRequests, which storage PostgreSQL does without.
var objectTasks = []string{"requests skipped", "requests delete"}

func pluginSpecs() {
	It("is shown and steered by the kubectl plugin with storage Kubernetes", func(ctx SpecContext) {
		theShop.allowReading(ctx)
		steerByPlugin(ctx, theShop)

		refused := manualRequest(request{ID: "refused", number: "+4915112345670"}) // the shop's own number
		Expect(kube.Create(ctx, refused)).To(Succeed())
		Eventually(theShop.runPlugin).WithContext(ctx).WithArguments("requests", "skipped", "shop").
			Should(MatchRegexp(`refused .*\(problem\)`))
		theShop.runPlugin(ctx, "requests", "delete", "shop", "refused")
		Expect(theShop.runPlugin(ctx, "requests", "skipped", "shop")).NotTo(ContainSubstring("refused"))
	})

	It("is shown and steered by the kubectl plugin with storage PostgreSQL, through a port-forward", func(ctx SpecContext) {
		bakeryIsOpen()
		theBakery.allowReading(ctx)
		steerByPlugin(ctx, theBakery, "--api-key=backend")
	})

	It("gets a new API key and webhook secret by the kubectl plugin, while pods are replaced, added and evicted, and nothing is refused", func(ctx SpecContext) {
		shops := []*shop{theShop}
		if theBakery != nil {
			shops = append(shops, theBakery)
		}
		receiver := theShop.openReceiver(ctx)
		load := theShop.startClients(ctx, true)
		load.awaitMore(ctx)
		for _, s := range shops {
			s.runPlugin(ctx, "rotate", "api-key", "shop", "backend")
			s.runPlugin(ctx, "rotate", "webhook-secret", "shop")
		}
		moved := *theShop
		var secret string
		moved.key, secret = theShop.readRotated(ctx)
		receiver.learn(secret)
		patchProject(ctx, shopNamespace, `{"spec":{"server":{"replicas":3,"nodeSelector":{"kubernetes.io/os":"linux"}}}}`)
		for _, s := range shops {
			runKubectl(ctx, "--namespace "+s.namespace+" wait --for=condition=Ready vproj/shop --timeout=5m")
		}
		theShop.evictLeader(ctx)
		movedLoad := moved.startClients(ctx, true)
		receiver.move()
		movedLoad.awaitMore(ctx)
		Expect(load.stop()).To(BeEmpty())
		for _, s := range shops {
			s.runPlugin(ctx, "rotate", "api-key", "shop", "backend", "--finish")
			s.runPlugin(ctx, "rotate", "webhook-secret", "shop", "--finish")
		}
		runKubectl(ctx, "--namespace "+shopNamespace+" wait --for=condition=Ready vproj/shop --timeout=5m")
		movedLoad.awaitMore(ctx)
		Expect(movedLoad.stop()).To(BeEmpty())
		receiver.expectOnce(ctx, slices.Concat(load.ids, movedLoad.ids))
		AddReportEntry("requests during a rotation, by the former and the new key", fmt.Sprint(len(load.ids), len(movedLoad.ids)))

		patchProject(ctx, shopNamespace, `{"spec":{"server":{"replicas":2,"nodeSelector":null}}}`)
		for _, s := range shops {
			// The other specs have the first key, secret and receiver.
			patchProject(ctx, s.namespace, `{"spec":{"apiKeys":[{"name":"backend","secretRef":{"name":"shop","key":"api-key"}}],"webhook":{`+
				`"url":"http://simulator.shop.svc:8090/receiver","secretRef":{"name":"shop","key":"webhook-secret"}}}}`)
			s.runPlugin(ctx, "suspend", "shop")
		}
		for _, s := range shops {
			Eventually(s.runPlugin).WithContext(ctx).WithArguments("status", "shop").Should(ContainSubstring("Suspended"))
			Eventually(s.listPods).WithContext(ctx).Should(BeEmpty())
			s.runPlugin(ctx, "resume", "shop")
		}
		for _, s := range shops {
			s.eventuallySettled(ctx)
			missing := documentedTasks().Difference(doneTasks[s.namespace])
			if s == theBakery {
				missing.Delete(objectTasks...)
			}
			Expect(missing).To(BeEmpty(), "every task of docs/kubectl-plugin.md is one command, on both stores")
		}
	})
}

// allowReading gives the API key all scopes.
func (s *shop) allowReading(ctx context.Context) {
	GinkgoHelper()
	patchProject(ctx, s.namespace, `{"spec":{"apiKeys":[{"name":"backend","secretRef":{"name":"shop","key":"api-key"},"scopes":["Init","Status","Read","Redeliver"]}]}}`)
	eventuallyReady(ctx, s.namespace)
}

// started are what verify prints.
var (
	startedID   = regexp.MustCompile(`(?m)^request (\S+)$`)
	startedLink = regexp.MustCompile(`(?m)^https://wa\.me/\S+$`)
)

// steerByPlugin does what an administrator does, from a verification to a support bundle.
func steerByPlugin(ctx context.Context, s *shop, key ...string) {
	GinkgoHelper()
	with := func(args ...string) []string { return append(args, key...) }
	var status struct {
		Ready          string           `json:"ready"`
		LeaseHolder    string           `json:"leaseHolder"`
		StoredRequests map[string]int64 `json:"storedRequests"`
		Unknown        []string         `json:"unknown"`
	}
	Eventually(func(g Gomega) { // a pod that was slow to count what is stored does not tell for a few seconds
		status.Unknown = nil
		g.Expect(json.Unmarshal([]byte(s.runPlugin(ctx, "status", "shop", "-o", "json")), &status)).To(Succeed())
		g.Expect(status.Unknown).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed())
	Expect(status.Ready).To(Equal("True"))
	Expect(status.LeaseHolder).NotTo(BeEmpty())
	Expect(status.StoredRequests).To(HaveKey("finished"))

	r := request{number: newNumber()}
	printed := s.runPlugin(ctx, with("verify", "shop", r.number, "--method=whatsapp", "--reference=by-plugin")...)
	Expect(startedID.FindStringSubmatch(printed)).To(HaveLen(2), printed)
	r.ID, r.WaLink = startedID.FindStringSubmatch(printed)[1], startedLink.FindString(printed)
	Expect(s.runPlugin(ctx, with("requests", "get", "shop", r.ID)...)).To(And(ContainSubstring("PENDING"), Not(ContainSubstring(r.number))))
	s.sendMessage(ctx, r)
	Expect(s.runPlugin(ctx, with("requests", "watch", "shop", r.ID)...)).To(MatchRegexp(`(?s)VERIFIED.*DELIVERED`), "it ends with the event")
	Expect(s.runPlugin(ctx, with("requests", "get", "shop", r.ID, "-o", "json")...)).
		To(And(ContainSubstring(`"status": "VERIFIED"`), ContainSubstring(`"state": "DELIVERED"`), ContainSubstring(r.number)))
	Expect(s.runPlugin(ctx, with("requests", "list", "shop", "--reference=by-plugin", "--since=1h", "--status=verified")...)).
		To(And(ContainSubstring(r.ID), Not(ContainSubstring(r.number))))
	Expect(s.runPlugin(ctx, with("requests", "declines", "shop")...)).NotTo(ContainSubstring(r.ID))

	before := len(s.listEvents(ctx, r.ID))
	Expect(s.runPlugin(ctx, with("redeliver", "shop", r.ID, "--wait")...)).To(ContainSubstring(r.ID + ": delivered"))
	Expect(s.runPlugin(ctx, "redeliver", "shop", r.ID)).To(ContainSubstring("is sent once more"), "by the annotation")
	Eventually(func() int { return len(s.listEvents(ctx, r.ID)) }).WithContext(ctx).Should(BeNumerically(">=", before+2))
	s.runPlugin(ctx, with("redeliver", "shop", "--failed")...)

	pending := s.initRequest(ctx, "WHATSAPP")
	s.runPlugin(ctx, "cancel", "shop", pending.ID, "--api-key=backend")
	Expect(s.mustReadStatus(ctx, pending.ID)).To(Equal("EXPIRED"))
	Expect(s.runPlugin(ctx, with("requests", "get", "shop", pending.ID)...)).To(ContainSubstring("CANCELED"))

	Expect(s.runPlugin(ctx, "status", "-A")).To(ContainSubstring(s.namespace))
	Expect(s.runPlugin(ctx, "logs", "--operator", "-n", releaseNamespace, "--tail=5")).NotTo(BeEmpty())
	Expect(s.runPlugin(ctx, "logs", "shop", "--tail=5")).To(ContainSubstring("phoneproof-shop-"))
	Expect(s.runPlugin(ctx, "doctor", "shop", "--probe=false")).To(ContainSubstring("nothing found"))
	Expect(s.runPlugin(ctx, "metrics", "shop", "--match=server_info")).To(ContainSubstring("phoneproof_server_info"))
	s.expectCleanReport(ctx, r)
}

// expectCleanReport packs a support bundle, and looks for what must not be in it.
func (s *shop) expectCleanReport(ctx context.Context, r request) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "report.tar.gz")
	s.runPlugin(ctx, "report", "shop", "--file="+file)
	packed, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(packed.Close)
	compressed, err := gzip.NewReader(packed)
	Expect(err).NotTo(HaveOccurred())
	var all strings.Builder
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintln(&all, header.Name)
		_, err = io.Copy(&all, archive)
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(all.String()).To(And(ContainSubstring("logs/phoneproof-shop-"), ContainSubstring("phoneproof_server_info"), ContainSubstring("type: Ready")))
	for _, secret := range []string{firstAPIKey, firstSecret, firstBotToken, databasePassword, r.number, r.number[1:]} {
		Expect(all.String()).NotTo(ContainSubstring(secret))
	}
}

// readRotated returns the new API key and webhook secret of a rotation.
func (s *shop) readRotated(ctx context.Context) (key, secret string) {
	GinkgoHelper()
	project, err := readProject(ctx, s.namespace)
	Expect(err).NotTo(HaveOccurred())
	read := func(ref *verifyv1.SecretKeyRef) string {
		var object corev1.Secret
		Expect(kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, &object)).To(Succeed())
		return string(object.Data[ref.Key])
	}
	Expect(project.Spec.APIKeys).To(HaveLen(2))
	return read(&project.Spec.APIKeys[1].SecretRef), read(project.Spec.Webhook.SecretRef)
}

// evictLeader has the pod evicted that delivers the events, as kubectl drain does.
func (s *shop) evictLeader(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() error {
		leader := leaseHolder(ctx, s.namespace, "phoneproof-shop")
		for _, pod := range s.listPods(ctx) {
			if pod.Name == leader && pod.DeletionTimestamp == nil {
				eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: leader}}
				return clientset.PolicyV1().Evictions(s.namespace).Evict(ctx, eviction)
			}
		}
		return fmt.Errorf("the pod %q, which leads, is none or ends", leader)
	}).WithContext(ctx).Should(Succeed())
}
