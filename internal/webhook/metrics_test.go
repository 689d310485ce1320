package webhook

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestReasonLabel_isBounded(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]bool{}
	for status := range 1000 {
		labels[reasonLabel(classifyAnswer(status, nil, time.Time{}).Reason)] = true
	}
	g.Expect(labels).To(HaveLen(6), "four classes, others, and none for success")
	g.Expect(reasonLabel(ReasonTLSExpired)).To(Equal("tls_expired"))
}
