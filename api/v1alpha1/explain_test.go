package v1alpha1_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/controlplane"
)

var _ = Describe("kubectl explain", Ordered, ContinueOnFailure, func() {
	var kubeconfig string

	explain := func(ctx context.Context, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, plane.Kubectl, append([]string{"--kubeconfig", kubeconfig, "explain"}, args...)...).CombinedOutput()
		return string(out), err
	}

	BeforeAll(func(ctx context.Context) {
		kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(controlplane.WriteKubeconfig(kubeconfig, plane.Config)).To(Succeed())
		// The API server serves a CRD before its documentation, which it creates in the background.
		for _, kind := range []string{"verificationproject", "verificationrequest"} {
			Eventually(explain).WithContext(ctx).WithArguments(kind).WithTimeout(2 * time.Minute).WithPolling(200 * time.Millisecond).
				Should(ContainSubstring("DESCRIPTION:"))
		}
	})

	It("reads like a manual page", func(ctx context.Context) {
		Expect(explain(ctx, "verificationproject.spec", "--recursive")).To(And(
			ContainSubstring("apiKeys\t<[]Object> -required-"), ContainSubstring("uriSecretRef"), ContainSubstring("caSecretRef"), ContainSubstring("enum: Kubernetes, PostgreSQL")))
		Expect(explain(ctx, "vproj.spec.request.ttl")).To(And(ContainSubstring("1m to 1h"), ContainSubstring("Default: 10m")))
	})

	for kind, crd := range map[string]string{"verificationproject": projectCRD, "verificationrequest": requestCRD} {
		It("describes every field of the spec, from its name on, of a "+kind, func(ctx context.Context) {
			fields := specSchema(crd).Properties
			Expect(fields).NotTo(BeEmpty())
			page, err := explain(ctx, kind+".spec")
			Expect(err).NotTo(HaveOccurred(), page)
			for name, schema := range fields {
				found := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(name) + `\t<.*\n(?:  enum: .*\n)?((?:    .*\n|\n)+)`).FindStringSubmatch(page)
				Expect(found).To(HaveLen(2), "%s in %s", name, page)
				description := joinLines(found[1])
				Expect(description).To(Or(HavePrefix(name+" "), HavePrefix(name+", ")))
				Expect(description).To(HavePrefix(joinLines(schema.Description)), "the whole description of %s", name)
			}
		})
	}
})

// joinLines returns text on one line, because kubectl wraps lines.
func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }
