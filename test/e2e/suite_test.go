//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/repository"
)

// patience bounds every wait, on a loaded machine.
const patience = 3 * time.Minute

// mostOfFailure is how many bytes of a failure's message the findings repeat.
const mostOfFailure = 600

// baseChart is the chart of the last release.
const baseChart = "bin/base/charts/phoneproof"

var (
	root       string // of the repository
	image      string // of the program, which the cluster runs
	baseImage  string // of the last release, which hack/upgrade-base.sh built
	config     *rest.Config
	kube       client.Client
	clientset  *kubernetes.Clientset
	kubeconfig string
	specs      int // that will run
	begun      int // of these
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()

	var err error
	root, err = repository.Root()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "bin", "cluster", "image"))
	Expect(err).NotTo(HaveOccurred(), "run make e2e, which first creates the cluster and the image")
	image = strings.TrimSpace(string(content))
	content, err = os.ReadFile(filepath.Join(root, "bin", "base", "image"))
	Expect(err).NotTo(HaveOccurred(), "run make e2e, which first builds the last release")
	baseImage = strings.TrimSpace(string(content))
	kubeconfig = filepath.Join(root, "bin", "cluster", "kubeconfig")
	config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	Expect(verifyv1.AddToScheme(clientgoscheme.Scheme)).To(Succeed())
	kube, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	clientset, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
})

// Where the suite is: hack/e2e.sh prints the last line that was printed.
var _ = ReportBeforeSuite(func(report Report) { specs = report.PreRunStats.SpecsThatWillRun })

var _ = ReportBeforeEach(func(spec SpecReport) {
	if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
		return
	}
	begun++
	fmt.Fprintf(os.Stdout, "\nspec %d of %d: %s\n", begun, specs, spec.LeafNodeText)
})

// A failed spec leaves the cluster as it is; the logs of its pods help most.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	questions := []string{
		"get vproj,pods --all-namespaces --output=wide",
		"--namespace " + releaseNamespace + " logs --selector=app.kubernetes.io/component=operator --tail=40 --prefix",
	}
	for _, namespace := range []string{shopNamespace, bakeryNamespace} {
		questions = append(questions,
			"--namespace "+namespace+" get events --sort-by=.lastTimestamp",
			"--namespace "+namespace+" describe vproj",
			"--namespace "+namespace+" logs --selector=app.kubernetes.io/managed-by=phoneproof-operator --tail=40 --prefix")
	}
	for _, args := range questions {
		output, err := run(ctx, "kubectl", strings.Fields(args)...)
		GinkgoWriter.Printf("$ kubectl %s\n%s%v\n", args, output, err)
	}
})

// Measurements, and what was not proven, are part of the result.
var _ = ReportAfterSuite("findings", func(report Report) {
	var findings strings.Builder
	for _, spec := range report.SpecReports {
		for _, entry := range spec.ReportEntries {
			fmt.Fprintf(&findings, "%s: %s\n", entry.Name, entry.StringRepresentation())
		}
		if spec.State == types.SpecStateSkipped && spec.Failure.Message != "" {
			fmt.Fprintf(&findings, "%s: %s\n", spec.LeafNodeText, spec.Failure.Message)
		}
		if spec.Failed() { // the details are far above, and what keeps only the end of the output loses them
			message := strings.Join(strings.Fields(spec.Failure.Message), " ")
			fmt.Fprintf(&findings, "FAILED %s: %s: %s\n", spec.LeafNodeText, spec.Failure.Location, message[:min(len(message), mostOfFailure)])
		}
	}
	Expect(os.WriteFile(filepath.Join(root, "bin", "cluster", "findings"), []byte(findings.String()), 0o600)).To(Succeed())
})

// One list, in the order in which the specs run.
var _ = Describe("PhoneProof on a cluster", Ordered, ContinueOnFailure, func() {
	var first sync.Once
	BeforeEach(func() {
		missing := theShop == nil
		first.Do(func() { missing = false })
		Expect(missing).To(BeFalse(), "the first spec did not create the shop, which the others need")
	})
	installSpecs()
	verifySpecs()
	codeSpecs()
	pageSpecs()
	accessSpecs()
	restartSpecs()
	databaseSpecs()
	rollbackSpecs()
	pluginSpecs()
	rotationSpecs()
	lifecycleSpecs()
	removalSpecs()
})
