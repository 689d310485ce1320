package doctor

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/verification"
)

const (
	// callbackRequests is the metric of what arrives at the callbacks, and verificationsStarted that of the users who began.
	callbackRequests     = "phoneproof_callback_requests_total"
	verificationsStarted = "phoneproof_verifications_started_total"
	// maxMetrics bounds the metrics of a pod, and maxPods how many are read.
	maxMetrics = 8 << 20
	maxPods    = 5
)

// countCallbacks reads what the pods counted at the callback of WhatsApp, and heard from Telegram's Gateway, through the API server.
func (e *Examiner) countCallbacks(ctx context.Context, f *Facts) {
	if f.Project.Spec.WhatsApp == nil && f.Project.Spec.Telegram.CodesPerDay() == 0 {
		return
	}
	var pods corev1.PodList
	err := e.client.List(ctx, &pods, client.InNamespace(f.Project.Namespace), client.MatchingLabels(render.Selector(f.Project)))
	if err != nil {
		f.Callbacks.Why = explainUnread(err, "list pods", f.Project.Namespace)
		return
	}
	var sum CallbackCounts
	read := 0
	for i := range pods.Items {
		if read == maxPods || !isReady(&pods.Items[i]) {
			continue
		}
		counts, err := e.readCounts(ctx, &pods.Items[i])
		if err != nil {
			f.Callbacks.Why = explainUnread(err, "get pods/proxy", f.Project.Namespace)
			return
		}
		read++
		sum.Accepted += counts.Accepted
		sum.Refused += counts.Refused
		sum.Started += counts.Started
		if counts.BalanceAt.After(sum.BalanceAt) {
			sum.Balance, sum.BalanceAt = counts.Balance, counts.BalanceAt
		}
	}
	if read > 0 {
		f.Callbacks = knownValue(sum)
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (e *Examiner) readCounts(ctx context.Context, p *corev1.Pod) (CallbackCounts, error) {
	name := p.Name + ":" + strconv.Itoa(metricsPort(p))
	stream, err := e.core.Get().Namespace(p.Namespace).Resource("pods").Name(name).SubResource("proxy").Suffix("metrics").Stream(ctx)
	if err != nil {
		return CallbackCounts{}, fmt.Errorf("read metrics: %w", err)
	}
	defer stream.Close()
	return parseCounts(io.LimitReader(stream, maxMetrics))
}

// parseCounts reads the counts from the metrics of a pod.
func parseCounts(metrics io.Reader) (CallbackCounts, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return CallbackCounts{}, fmt.Errorf("parse metrics: %w", err)
	}
	count := func(name, result string) (sum float64) {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["method"] == string(verification.WhatsApp) && labels["result"] == result {
				sum += m.GetCounter().GetValue()
			}
		}
		return sum
	}
	gauge := func(name string) (value float64) {
		for _, m := range families[name].GetMetric() {
			value = m.GetGauge().GetValue()
		}
		return value
	}
	var balanceAt time.Time
	if seconds := gauge(telegram.GatewayAsOfMetric); seconds > 0 {
		balanceAt = time.Unix(int64(seconds), 0)
	}
	return CallbackCounts{
		Balance: gauge(telegram.GatewayBalanceMetric), BalanceAt: balanceAt,
		Accepted: count(callbackRequests, messenger.RequestAccepted),
		Refused:  count(callbackRequests, messenger.RequestUnauthorized),
		Started:  count(verificationsStarted, ""),
	}, nil
}

// metricsPort returns the number of the port that the operator names health.
func metricsPort(p *corev1.Pod) int {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == "health" {
				return int(port.ContainerPort)
			}
		}
	}
	return 8081
}
