package settings

import (
	"bytes"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// healthySince returns since when the receiver of a project is healthy; zero while it is not.
func healthySince(project *verifyv1.VerificationProject) time.Time {
	condition := meta.FindStatusCondition(project.Status.Conditions, verifyv1.ConditionWebhookHealthy)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	return condition.LastTransitionTime.Time
}

// hasRecovered reports whether a receiver has become healthy since the settings w.
func (w *Webhook) hasRecovered(project *verifyv1.VerificationProject) bool {
	since := healthySince(project)
	return w != nil && !since.IsZero() && !since.Equal(w.healthySince)
}

// noteRepair sets when the receiver was repaired last, by the settings before; those are nil when the process begins.
func (w *Webhook) noteRepair(before *Webhook, project *verifyv1.VerificationProject, now time.Time) {
	w.healthySince = healthySince(project)
	w.Repaired = w.healthySince
	if before == nil {
		return
	}
	w.Repaired = before.Repaired
	if before.hasRecovered(project) || w.URL != before.URL || !bytes.Equal(w.CABundle, before.CABundle) ||
		!bytes.Equal(w.Secret.Current(), before.Secret.Current()) {
		w.Repaired = now
	}
	if w.healthySince.IsZero() {
		w.healthySince = before.healthySince
	}
}
