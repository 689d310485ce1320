package health

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// snapshotFormat is a format that every scraper can read.
var snapshotFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

var (
	errNoSnapshot    = errors.New("first snapshot not ready")
	errLargeSnapshot = errors.New("metrics exceed the size limit of a snapshot")
)

// metricsHandler serves metrics. A few clients at a time get an individual answer; all others share a recent snapshot. So slow
// or looping clients cannot lock out Prometheus, and more clients need no more memory.
type metricsHandler struct {
	gatherer prometheus.Gatherer
	own      http.Handler
	slots    chan struct{}

	mu       sync.Mutex
	making   bool // a request is creating the next snapshot
	snapshot []byte
	made     time.Time // when the snapshot was started; zero before the first one
}

// NewMetricsHandler returns a handler that serves the metrics of a gatherer.
func NewMetricsHandler(gatherer prometheus.Gatherer) http.Handler {
	return &metricsHandler{
		gatherer: gatherer, own: promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}), slots: make(chan struct{}, maxScrapes),
	}
}

// ServeHTTP answers without waiting for other requests.
func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
		h.own.ServeHTTP(w, r)
	default:
		h.serveSnapshot(w)
	}
}

func (h *metricsHandler) serveSnapshot(w http.ResponseWriter) {
	snapshot, err := h.currentSnapshot()
	if err != nil { // not in the answer: it may contain anything
		w.Header().Set("Retry-After", "1")
		writeText(w, http.StatusServiceUnavailable, "no metrics at this moment")
		return
	}
	w.Header().Set("Content-Type", string(snapshotFormat))
	_, _ = w.Write(snapshot) // the client may have disconnected
}

// currentSnapshot returns the snapshot. It creates the next one if it is due and no other request is doing so.
func (h *metricsHandler) currentSnapshot() (snapshot []byte, err error) {
	if snapshot, err = h.storedSnapshot(); snapshot != nil || err != nil {
		return snapshot, err
	}
	made := time.Now()
	defer func() { // also after a panic of a collector
		h.mu.Lock()
		defer h.mu.Unlock()
		h.making = false
		if snapshot != nil {
			h.snapshot, h.made = snapshot, made
		}
	}()
	return encodeMetrics(h.gatherer)
}

// storedSnapshot returns nil without an error if the caller must create the next snapshot.
func (h *metricsHandler) storedSnapshot() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := time.Since(h.made)
	switch {
	case age < snapshotPeriod:
		return h.snapshot, nil
	case !h.making:
		h.making = true
		return nil, nil
	case age < maxSnapshotAge:
		return h.snapshot, nil
	default:
		return nil, errNoSnapshot
	}
}

func encodeMetrics(gatherer prometheus.Gatherer) ([]byte, error) {
	families, err := gatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	var buffer bytes.Buffer
	encoder := expfmt.NewEncoder(&buffer, snapshotFormat)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return nil, fmt.Errorf("encode metrics: %w", err)
		}
		if buffer.Len() > maxSnapshotBytes {
			return nil, errLargeSnapshot
		}
	}
	return buffer.Bytes(), nil
}
