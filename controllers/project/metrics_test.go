package project

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/repository"
)

var _ = Describe("The metrics of projects", func() {
	It("have one series for each known condition, and none of deleted projects", func(ctx SpecContext) {
		startSteppedOperator(ctx, operator, usual())
		project := create(ctx, newProject(newNamespace(ctx), "shop"))
		makeReady(ctx, project)
		series := func(name, status, reason string) string {
			return fmt.Sprintf(`phoneproof_project_condition{name="shop",namespace=%q,reason=%q,status=%q,type=%q} 1`,
				project.Namespace, reason, status, name)
		}
		Expect(scrape(project.Namespace)).To(ConsistOf(
			series(verifyv1.ConditionReady, "True", verifyv1.ReasonReady),
			series(verifyv1.ConditionAvailable, "True", verifyv1.ReasonPodsAvailable),
			series(verifyv1.ConditionSecretsReady, "True", "Fine"),
			series(verifyv1.ConditionStorageReady, "True", "Fine"),
			series(verifyv1.ConditionTelegramReady, "True", "Fine"),
		))

		change(ctx, project, func(s *spec) { s.Suspend = new(true) })
		expectCondition(ctx, project, verifyv1.ConditionReady, metav1.ConditionFalse, verifyv1.ReasonSuspended)
		Expect(scrape(project.Namespace)).To(ContainElement(series(verifyv1.ConditionReady, "False", verifyv1.ReasonSuspended)))
		Expect(admin.Delete(ctx, project)).To(Succeed())
		Expect(scrape(project.Namespace)).To(BeEmpty())
	})

	It("have every label that the chart's alerts and dashboard select", func() {
		root, err := repository.Root()
		Expect(err).NotTo(HaveOccurred())
		labels := regexp.MustCompile(`variableLabels: {([^}]*)}`).FindStringSubmatch(conditionDescription.String())
		Expect(labels).To(HaveLen(2), conditionDescription.String())
		used := 0
		for _, file := range []string{"alerts.yaml", "dashboard.json"} {
			content, err := os.ReadFile(filepath.Join(root, "charts", "phoneproof", "files", file))
			Expect(err).NotTo(HaveOccurred())
			for _, selector := range regexp.MustCompile(`phoneproof_project_condition{([^}]*)}`).FindAllStringSubmatch(string(content), -1) {
				for _, label := range regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`).FindAllStringSubmatch(selector[1], -1) {
					Expect(strings.Split(labels[1], ",")).To(ContainElement(label[1]), selector[0])
					used++
				}
				for _, types := range regexp.MustCompile(`\btype=~?"([A-Za-z|]+)"`).FindAllStringSubmatch(selector[1], -1) {
					for conditionType := range strings.SplitSeq(types[1], "|") {
						Expect(reportedConditions).To(HaveKey(conditionType), selector[0])
					}
				}
			}
		}
		Expect(used).To(BeNumerically(">", 5))
	})
})

// scrape returns the series of the projects of a namespace.
func scrape(namespace string) []string {
	GinkgoHelper()
	registry := prometheus.NewRegistry()
	Expect(registry.Register(NewMetrics(admin, GinkgoLogr))).To(Succeed())
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	var out []string
	for _, line := range lines(answer.Body.String()) {
		if strings.Contains(line, fmt.Sprintf("namespace=%q", namespace)) {
			out = append(out, line)
		}
	}
	return out
}
