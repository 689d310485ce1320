package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin/status"
)

// serveMetrics stands for the metrics of the pod.
func (w *world) serveMetrics(text string) {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte(text)) }))
	w.t.Cleanup(server.Close)
	w.metrics = strings.TrimPrefix(server.URL, "http://")
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	w.createPod()
	w.serveMetrics("# HELP x\nphoneproof_stored_requests{state=\"pending\"} 3\nphoneproof_stored_requests{state=\"finished\"} 1e+04\n")
	renewed := metav1.NewMicroTime(time.Now())
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "phoneproof-shop"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("phoneproof-shop-0_1"), RenewTime: &renewed},
	})
	at := metav1.Now()
	w.setStatus(func(s *verifyv1.VerificationProjectStatus) {
		s.ObservedGeneration = 1
		s.Conditions = []metav1.Condition{
			{Type: "Ready", Status: "False", Reason: "SecretMissing", Message: "Secret shop, key bot-token", LastTransitionTime: at},
			{Type: "SecretsReady", Status: "False", Reason: "SecretMissing", Message: "Secret shop, key bot-token\x1b[2J", LastTransitionTime: at},
			{Type: "Available", Status: "True", Reason: "PodsAvailable", LastTransitionTime: at},
			{Type: "Silent", Status: "True", Reason: "NoMessages", Message: "none came", LastTransitionTime: at},
		}
	})

	text := w.must("status", "shop")
	w.Expect(text).To(And(
		ContainSubstring("ready: False"), ContainSubstring("phoneproof-shop-0_1"), ContainSubstring("10000 finished, 3 pending"),
		ContainSubstring("problem SecretsReady (SecretMissing): Secret shop, key bot-token"), ContainSubstring("note Silent (NoMessages): none came"),
		ContainSubstring("Init,Status,Read,Redeliver"), ContainSubstring("shop.example.com"),
	))
	w.Expect(text).NotTo(Or(ContainSubstring("\x1b"), ContainSubstring("hooks/phone"), ContainSubstring(apiKeyValue)))
	w.Expect(text).To(ContainSubstring("not found out replicas:"), "there is no Deployment")
	w.Expect(text).NotTo(ContainSubstring("problem Ready"), "it repeats another condition")

	var report status.Report
	w.Expect(json.Unmarshal([]byte(w.must("status", "shop", "-o", "json")), &report)).To(Succeed())
	w.Expect(report.StoredRequests).To(Equal(map[string]int64{"pending": 3, "finished": 10_000}))
	w.Expect(report.Problems).To(HaveLen(2))
	w.Expect(report.Problems[0].Fatal).To(BeTrue())
	w.Expect(report.Problems[1].Fatal).To(BeFalse())
	w.Expect(report.Keys).To(HaveLen(1))

	w.Expect(w.must("status")).To(MatchRegexp(w.namespace + ` +shop +False +SecretMissing +Kubernetes +2`))
	w.Expect(w.must("status", "-A", "-o", "wide")).To(And(ContainSubstring(w.namespace), ContainSubstring("MESSAGE")))
	w.Expect(w.mustFail("status", "absent")).To(ContainSubstring(`"absent" not found`))
	w.Expect(w.mustFail("status", "-o", "xml")).To(ContainSubstring(`--output "xml" is unknown`))
}

func TestStatus_ofOlderGeneration(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.must("status", "shop")).To(ContainSubstring("note Ready (NotObserved): the operator acted on generation -1 last, and the project is at 1"))
}
