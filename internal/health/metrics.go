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

// snapshotFormat is the format that every scraper reads.
var snapshotFormat = expfmt.NewFormat(expfmt.TypeTextPlain)

var (
	errNoSnapshot    = errors.New("the first snapshot is being made")
	errLargeSnapshot = errors.New("the metrics are larger than a snapshot may be")
)

// metricsHandler shows metrics. A few clients at a time get an answer of their own. While these read slowly, or ask in a loop, all
// others share a snapshot of the last seconds, so no reader keeps Prometheus out, and more readers hold no more memory.
type metricsHandler struct {
	gatherer prometheus.Gatherer
	own      http.Handler
	slots    chan struct{}

	mu       sync.Mutex
	making   bool // a request makes the next snapshot
	snapshot []byte
	made     time.Time // when the snapshot was begun; zero before the first one
}

// NewMetricsHandler returns a handler that shows the metrics of a gatherer.
func NewMetricsHandler(gatherer prometheus.Gatherer) http.Handler {
	return &metricsHandler{
		gatherer: gatherer, own: promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}), slots: make(chan struct{}, maxScrapes),
	}
}

// ServeHTTP answers at once what there is to answer with.
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
	if err != nil { // it may quote anything
		w.Header().Set("Retry-After", "1")
		writeText(w, http.StatusServiceUnavailable, "no metrics at this moment")
		return
	}
	w.Header().Set("Content-Type", string(snapshotFormat))
	_, _ = w.Write(snapshot) // the reader may have gone
}

// currentSnapshot returns the snapshot, and makes the next one if it is time and no other request does.
func (h *metricsHandler) currentSnapshot() ([]byte, error) {
	if snapshot, err := h.storedSnapshot(); snapshot != nil || err != nil {
		return snapshot, err
	}
	var snapshot []byte
	made := time.Now()
	defer func() { // also after a panic of a collector
		h.mu.Lock()
		defer h.mu.Unlock()
		h.making = false
		if snapshot != nil {
			h.snapshot, h.made = snapshot, made
		}
	}()
	var err error
	snapshot, err = encodeMetrics(h.gatherer)
	return snapshot, err
}

// storedSnapshot returns nil without an error if the caller is to make the next snapshot.
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
