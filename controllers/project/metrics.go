package project

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// reportedConditions are the conditions with a metric: this list and the number of projects bound the number of series, because
// each has one at a time. Reasons are a fixed list as well, see package v1alpha1.
var reportedConditions = map[string]bool{
	verifyv1.ConditionReady: true, verifyv1.ConditionReconciling: true, verifyv1.ConditionStalled: true,
	verifyv1.ConditionAvailable: true, verifyv1.ConditionSecretsReady: true, verifyv1.ConditionStorageReady: true,
	verifyv1.ConditionWhatsAppReady: true, verifyv1.ConditionTelegramReady: true, verifyv1.ConditionWebhookHealthy: true,
	verifyv1.ConditionSilent: true, verifyv1.ConditionSimulated: true, verifyv1.ConditionShared: true,
	verifyv1.ConditionLimitsContradict: true, verifyv1.ConditionTestEventsOff: true,
	verifyv1.ConditionCodesReady: true, verifyv1.ConditionCodesLimited: true, verifyv1.ConditionGatewayReady: true,
}

var conditionDescription = prometheus.NewDesc("phoneproof_project_condition",
	"The conditions of each VerificationProject: 1 for the status and the reason that it has. Its absence is not a status.",
	[]string{"namespace", "name", "type", "status", "reason"}, nil)

// Metrics is a collector of the projects' conditions. It reads them from the cache at each scrape, so a deleted project leaves
// nothing behind.
type Metrics struct {
	reader client.Reader
	log    logr.Logger
}

// NewMetrics returns a collector that reads from a cache.
func NewMetrics(reader client.Reader, log logr.Logger) *Metrics {
	return &Metrics{reader: reader, log: log}
}

// Describe names the metric.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { out <- conditionDescription }

// Collect reads the conditions.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	const patience = 5 * time.Second // for a cache that is still filling
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all verifyv1.VerificationProjectList
	if err := m.reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		m.log.V(1).Info("list projects for metrics failed", "reason", err.Error())
		return
	}
	for i := range all.Items {
		project := &all.Items[i]
		for _, c := range project.Status.Conditions {
			if reportedConditions[c.Type] {
				out <- prometheus.MustNewConstMetric(conditionDescription, prometheus.GaugeValue, 1,
					project.Namespace, project.Name, c.Type, string(c.Status), c.Reason)
			}
		}
	}
}
