package health

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "phoneproof_test_total", Help: "Tests."})
	registry.MustRegister(counter)
	for i := range 3 {
		counter.Inc()
		answer := askServer(Options{Metrics: registry}, http.MethodGet, "/metrics")
		g.Expect(answer.Code).To(Equal(http.StatusOK))
		g.Expect(answer.Body.String()).To(ContainSubstring("phoneproof_test_total "+strconv.Itoa(i+1)+"\n"), "the value must be current")
	}
}

// metricsOf returns metrics of about size bytes, which call gather each time.
func metricsOf(size int, gather func()) prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	all := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "phoneproof_test", Help: "Tests."}, []string{"of"})
	for i := range size/100 + 1 {
		all.WithLabelValues(strings.Repeat("a", 80) + strconv.Itoa(i)).Set(1)
	}
	registry.MustRegister(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "phoneproof_last", Help: "Tests."}, func() float64 {
		gather()
		return 1
	}))
	return registry
}

// TestMetrics_slowReadersLockOutNoClient checks that other clients are served with a shared snapshot while clients that read no
// answer hold all slots.
func TestMetrics_slowReadersLockOutNoClient(t *testing.T) {
	const strangers = 10 * maxScrapes
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var gathered atomic.Int64
		server := startServer(t, Options{Metrics: metricsOf(100_000, func() { gathered.Add(1) })})
		for range strangers {
			stranger, err := server.dial(t.Context(), "", "")
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = stranger.Close() })
			_, err = io.WriteString(stranger, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
			g.Expect(err).NotTo(HaveOccurred())
		}
		synctest.Wait()
		scrape := And(HavePrefix("200 "), ContainSubstring("\nphoneproof_last 1\n"), HaveSuffix(" 1\n"))
		g.Expect(server.get("/metrics")).To(scrape)
		g.Expect(gathered.Load()).To(BeEquivalentTo(maxScrapes+1), "all but a few clients share a snapshot")
		<-time.After(snapshotPeriod)
		g.Expect(server.get("/metrics")).To(scrape)
		g.Expect(gathered.Load()).To(BeEquivalentTo(maxScrapes+2), "the snapshot is reused")
		<-time.After(requestTimeout)
		for i := range 3 {
			g.Expect(server.get("/metrics")).To(scrape)
			g.Expect(gathered.Load()).To(BeEquivalentTo(maxScrapes+3+i), "slow clients were disconnected, and each answer is individual")
		}
	})
}

// fullHandler returns a handler without free slots.
func fullHandler(metrics prometheus.Gatherer) http.Handler {
	h := NewMetricsHandler(metrics).(*metricsHandler)
	for range maxScrapes {
		h.slots <- struct{}{}
	}
	return h
}

func scrapeMetrics(h http.Handler) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return recorder
}

func TestMetrics_whileASnapshotIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		turns := make(chan struct{})
		h := fullHandler(metricsOf(100, func() { <-turns }))
		go scrapeMetrics(h)
		synctest.Wait()
		answer := scrapeMetrics(h)
		g.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable), "there is no snapshot yet")
		g.Expect(answer.Header().Get("Retry-After")).To(Equal("1"))
		turns <- struct{}{}
		synctest.Wait()
		g.Expect(scrapeMetrics(h).Code).To(Equal(http.StatusOK))

		<-time.After(snapshotPeriod)
		go scrapeMetrics(h)
		synctest.Wait()
		answer = scrapeMetrics(h)
		g.Expect(answer.Code).To(Equal(http.StatusOK), "the former snapshot")
		g.Expect(answer.Header().Get("Content-Type")).To(HavePrefix("text/plain; version=0.0.4"))
		<-time.After(maxSnapshotAge)
		g.Expect(scrapeMetrics(h).Code).To(Equal(http.StatusServiceUnavailable), "the former snapshot is too old")
		close(turns)
	})
}

// brokenCollector is a collector that fails.
type brokenCollector struct{ desc *prometheus.Desc }

func (b brokenCollector) Describe(descs chan<- *prometheus.Desc) { descs <- b.desc }

func (b brokenCollector) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.NewInvalidMetric(b.desc, errors.New("canary"))
}

func TestMetrics_noSnapshot(t *testing.T) {
	failing := prometheus.NewRegistry()
	failing.MustRegister(brokenCollector{prometheus.NewDesc("phoneproof_broken", "Tests.", nil, nil)})
	for name, metrics := range map[string]prometheus.Gatherer{
		"too large": metricsOf(maxSnapshotBytes, func() {}),
		"broken":    failing,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			h := fullHandler(metrics)
			for range 2 {
				answer := scrapeMetrics(h)
				g.Expect(answer.Code).To(Equal(http.StatusServiceUnavailable))
				g.Expect(answer.Body.String()).To(Equal("no metrics at this moment\n"))
			}
		})
	}
}
