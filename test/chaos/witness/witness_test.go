package witness

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestOpen(t *testing.T) {
	for name, c := range map[string]struct {
		change ledger.Change
		open   bool
	}{
		"pending":        {ledger.Change{Phase: "PENDING"}, true},
		"deleted":        {ledger.Change{Phase: "PENDING", Op: ledger.Deleted}, false},
		"expired":        {ledger.Change{Phase: "EXPIRED"}, false},
		"due":            {ledger.Change{Phase: "VERIFIED", Next: now}, true},
		"due soon":       {ledger.Change{Phase: "VERIFIED", Next: now.Add(soon - 1)}, true},
		"due much later": {ledger.Change{Phase: "VERIFIED", Next: now.Add(5 * time.Minute)}, false},
		"delivered":      {ledger.Change{Phase: "VERIFIED", Delivered: true}, false},
		"exhausted":      {ledger.Change{Phase: "VERIFIED", Exhausted: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(isOpen(c.change, now)).To(Equal(c.open))
		})
	}
}

func TestChangeOf(t *testing.T) {
	g := NewWithT(t)
	o := &verifyv1.VerificationRequest{ObjectMeta: metav1.ObjectMeta{Name: "vr1"}}
	g.Expect(changeOf(o)).To(Equal(ledger.Change{ID: "vr1", Phase: "PENDING"}), "a new object has no phase in etcd")

	at := metav1.NewMicroTime(now)
	o.Spec.Init = &verifyv1.Init{ExpiresAt: at}
	o.Status.Phase = verifyv1.PhaseVerified
	o.Status.Delivery = &verifyv1.Delivery{Attempts: 2, LastStatusCode: 500, NextAttemptAt: &at}
	g.Expect(changeOf(o)).To(Equal(ledger.Change{
		ID: "vr1", Phase: "VERIFIED", Attempts: 2, Code: 500, Next: now, Expires: now,
	}))
	o.Status.Delivery = &verifyv1.Delivery{Attempts: 3, LastStatusCode: 204, DeliveredAt: &at}
	g.Expect(changeOf(o)).To(HaveField("Delivered", true))
}
