package doctor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/repository"
)

var update = flag.Bool("update", false, "write the table of docs/doctor.md")

// unfound are the reasons that no check is about, and why.
var unfound = map[string]string{
	verifyv1.ReasonSuspended:            "the check Suspended reads the spec",
	verifyv1.ReasonProgressing:          "it ends by itself, or becomes RolloutStuck",
	verifyv1.ReasonRolloutQueued:        "it ends by itself",
	verifyv1.ReasonPodsRefused:          "the checks QuotaExceeded, LimitRangeRefuses and PodsRefused read the Deployment",
	verifyv1.ReasonRegistering:          "it ends by itself, or becomes another reason",
	verifyv1.ReasonSecretsNotReady:      "SecretsReady says more",
	verifyv1.ReasonSimulatorCredentials: "a project for tests is not broken",
	verifyv1.ReasonGatewayUnchecked:     "it ends with the first code",
	verifyv1.ReasonKeysFillStore:        "the check LimitsContradict reads the spec",
}

// documentedReason is a reason that means trouble, and the conditions that docs/conditions.md gives it to.
type documentedReason struct {
	name string
	as   map[string]metav1.ConditionStatus
}

var (
	conditionRow = regexp.MustCompile("^\\| <a id=\"[a-z]+\"></a>`([A-Za-z]+)` \\| .* \\| ((?:True|False|Unknown): .*) \\|$")
	statusOf     = regexp.MustCompile("(True|False|Unknown): ([^.]*)")
	word         = regexp.MustCompile("`([A-Za-z]+)`")
)

// documentedReasons reads the reasons of docs/conditions.md, but for those that all is well with.
func documentedReasons(t *testing.T) []documentedReason {
	t.Helper()
	g := NewWithT(t)
	conditions := map[string]map[string]metav1.ConditionStatus{}
	for line := range strings.SplitSeq(readDocs(t, "conditions.md"), "\n") {
		m := conditionRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, part := range statusOf.FindAllStringSubmatch(m[2], -1) {
			for _, reason := range word.FindAllStringSubmatch(part[2], -1) {
				if conditions[reason[1]] == nil {
					conditions[reason[1]] = map[string]metav1.ConditionStatus{}
				}
				conditions[reason[1]][m[1]] = metav1.ConditionStatus(part[1])
			}
		}
	}
	var all []documentedReason
	for name, as := range conditions {
		if reason := (documentedReason{name, as}); !isGood(reason) && !isOfRequests(reason) {
			all = append(all, reason)
		}
	}
	g.Expect(len(all)).To(BeNumerically(">", 30), "the tables can be read")
	return all
}

// isOfRequests reports whether a reason is of VerificationRequests alone, which the doctor does not examine.
func isOfRequests(r documentedReason) bool {
	ofRequest := false
	for _, conditionType := range []string{verifyv1.ConditionAccepted, verifyv1.ConditionVerified, verifyv1.ConditionWebhookDelivered} {
		_, has := r.as[conditionType]
		delete(r.as, conditionType)
		ofRequest = ofRequest || has
	}
	return ofRequest && r.name != verifyv1.ReasonSuspended && r.name != verifyv1.ReasonSecretsNotReady
}

// isGood reports whether a reason goes with a condition that is as it should be.
func isGood(r documentedReason) bool {
	for conditionType, status := range r.as {
		warning := conditionType == verifyv1.ConditionStalled || conditionType == verifyv1.ConditionSilent ||
			conditionType == verifyv1.ConditionShared || conditionType == verifyv1.ConditionSimulated ||
			conditionType == verifyv1.ConditionLimitsContradict || conditionType == verifyv1.ConditionTestEventsOff ||
			conditionType == verifyv1.ConditionCodesLimited ||
			conditionType == verifyv1.ConditionReconciling
		if status != metav1.ConditionTrue || warning {
			return false
		}
	}
	return true
}

func readDocs(t *testing.T, name string) string {
	t.Helper()
	root, err := repository.Root()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "docs", name))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// TestDocs_haveEachCheck compares the table of docs/doctor.md with the checks.
func TestDocs_haveEachCheck(t *testing.T) {
	g := NewWithT(t)
	var table strings.Builder
	table.WriteString("| finding | what is wrong |\n|---|---|\n")
	for _, c := range allChecks() {
		fmt.Fprintf(&table, "| <a id=\"%s\"></a>`%s` | %s |\n", strings.ToLower(c.name), c.name, c.problem)
	}
	const begin, end = "<!-- findings: written by go test ./internal/plugin/doctor -run Docs -update -->\n\n", "\n<!-- end of findings -->"
	page := readDocs(t, "doctor.md")
	head, rest, ok := strings.Cut(page, begin)
	g.Expect(ok).To(BeTrue())
	_, tail, ok := strings.Cut(rest, end)
	g.Expect(ok).To(BeTrue())
	wanted := head + begin + table.String() + end + tail
	if *update {
		root, err := repository.Root()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(root, "docs", "doctor.md"), []byte(wanted), 0o600)).To(Succeed())
		return
	}
	g.Expect(page).To(Equal(wanted))
}

// TestDocs_haveAReport compares the report in docs/doctor.md with that of the program.
func TestDocs_haveAReport(t *testing.T) {
	f := healthyFacts()
	cases["CertificateExpired"].breakFacts(f)
	f.Secrets = Known[SecretFacts]{Why: "needs get secrets in shop"}
	r := Examine(f)
	var out strings.Builder
	writeText(&out, &r)
	NewWithT(t).Expect(readDocs(t, "doctor.md")).To(ContainSubstring("```text\n" + out.String() + "```\n"))
}

// TestFindings_leadToAnEntry looks up where findings lead.
func TestFindings_leadToAnEntry(t *testing.T) {
	for name, tc := range cases {
		f := healthyFacts()
		tc.breakFacts(f)
		for _, found := range Examine(f).Findings {
			path, anchor, _ := strings.Cut(strings.TrimPrefix(found.See, "docs/"), "#")
			NewWithT(t).Expect(readDocs(t, path)).To(ContainSubstring(`<a id="`+anchor+`"></a>`), "%s: %s", name, found.See)
		}
	}
	f := healthyFacts()
	f.Docs = "https://docs.example.com/"
	cases["CertificateExpired"].breakFacts(f)
	NewWithT(t).Expect(Examine(f).Findings[0].See).To(Equal("https://docs.example.com/doctor#certificateexpired"))
}
