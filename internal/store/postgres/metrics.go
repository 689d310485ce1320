package postgres

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts the operations per batch and the retried transactions; newMetrics also registers gauges of the pool.
type metrics struct {
	batches *prometheus.HistogramVec
	retries prometheus.Counter
}

// The label values of batched operations.
const (
	opCreate = "create"
	opUpdate = "update"
	opRead   = "read"
	opCheck  = "check"
)

// newMetrics returns the metrics of a store, registered unless registerer is nil.
func newMetrics(s *Store, registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "phoneproof_postgresql_batch_size", Buckets: []float64{1, 4, 16, 64, maxBatchSize},
			Help: "Number of operations sent to the database in one batch.",
		}, []string{"operation"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "phoneproof_postgresql_repeats_total",
			Help: "Retried transactions: after a serialization failure, a deadlock, or a broken connection.",
		}),
	}
	for _, operation := range []string{opCreate, opUpdate, opRead, opCheck} {
		m.batches.WithLabelValues(operation)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{
		m.batches, m.retries,
		newGauge("phoneproof_postgresql_connections", "Open connections of this replica to the database.", func() float64 {
			if pool := s.pool.Load(); pool != nil {
				return float64(pool.Stat().TotalConns())
			}
			return 0
		}),
		newGauge("phoneproof_postgresql_connections_in_use", "Connections that are currently in use.", func() float64 {
			if pool := s.pool.Load(); pool != nil {
				return float64(pool.Stat().AcquiredConns())
			}
			return 0
		}),
		newGauge("phoneproof_postgresql_up", "1 while the database is usable, otherwise 0.", func() float64 {
			if s.Problem() == nil {
				return 1
			}
			return 0
		}),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register database metrics: %w", err)
		}
	}
	return m, nil
}

func newGauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}
