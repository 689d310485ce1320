package messenger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestRecorder_series: a pod has few series, and more only for errors that occur, whatever it is asked to record.
func TestCallRecorder_series(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	metrics, err := NewCallMetrics(registry)
	g.Expect(err).NotTo(HaveOccurred())
	recorder := metrics.Recorder(verification.Telegram, "getMe", "sendMessage")
	errorSeries := func() int {
		n, err := testutil.GatherAndCount(registry, "phoneproof_platform_call_errors_total")
		g.Expect(err).NotTo(HaveOccurred())
		return n
	}
	recorder.Record("getMe", time.Second, "")
	recorder.Record("getMe", time.Second, "no class")
	recorder.Record("no operation", time.Second, CallPlatformError)
	g.Expect(errorSeries()).To(BeZero())
	for range 2 {
		recorder.Record("getMe", time.Second, CallPlatformError)
	}
	g.Expect(errorSeries()).To(Equal(1))
	g.Expect(testutil.ToFloat64(metrics.errors)).To(BeEquivalentTo(2))

	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "phoneproof_platform_call_duration_seconds" {
			continue
		}
		g.Expect(family.GetMetric()).To(HaveLen(2), "each operation from the start")
		g.Expect(len(family.GetMetric()[0].GetHistogram().GetBucket())).To(BeNumerically("<=", 6))
		g.Expect(family.GetMetric()[0].GetHistogram().GetSampleCount()).To(BeEquivalentTo(4))
	}
}

func TestContextCause(t *testing.T) {
	for _, row := range []struct{ err, want error }{
		{nil, nil},
		{errors.New("connection refused"), nil},
		{fmt.Errorf("post: %w", context.Canceled), context.Canceled},
		{fmt.Errorf("post: %w", context.DeadlineExceeded), context.DeadlineExceeded},
		{fmt.Errorf("read: %w", os.ErrDeadlineExceeded), context.DeadlineExceeded}, // a net.Error that is a timeout
	} {
		if got := ContextCause(row.err); !errors.Is(got, row.want) || (got == nil) != (row.want == nil) {
			t.Errorf("ContextCause(%v) = %v, want %v", row.err, got, row.want)
		}
	}
}
