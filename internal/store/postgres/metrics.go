package postgres

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics show how full batches are, how often transactions are repeated, and how the pool stands.
type metrics struct {
	batches *prometheus.HistogramVec
	repeats prometheus.Counter
}

// The operations that go in batches, as metrics name them.
const (
	opCreate = "create"
	opUpdate = "update"
	opRead   = "read"
)

// newMetrics makes the metrics of a store, and registers them where there is a registerer.
func newMetrics(s *Store, registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "phoneproof_postgresql_batch_size", Buckets: []float64{1, 4, 16, 64, mostInBatch},
			Help: "Operations that went to the database together.",
		}, []string{"operation"}),
		repeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "phoneproof_postgresql_repeats_total",
			Help: "Transactions that were repeated: for a serialization failure, a deadlock, or a connection that broke.",
		}),
	}
	for _, operation := range []string{opCreate, opUpdate, opRead} {
		m.batches.WithLabelValues(operation)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{
		m.batches, m.repeats,
		gauge("phoneproof_postgresql_connections", "Connections of this replica to the database.", func() float64 {
			if pool := s.pool.Load(); pool != nil {
				return float64(pool.Stat().TotalConns())
			}
			return 0
		}),
		gauge("phoneproof_postgresql_connections_in_use", "Connections that are in a transaction.", func() float64 {
			if pool := s.pool.Load(); pool != nil {
				return float64(pool.Stat().AcquiredConns())
			}
			return 0
		}),
		gauge("phoneproof_postgresql_up", "1 while the database serves, else 0.", func() float64 {
			if s.Problem() == nil {
				return 1
			}
			return 0
		}),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics of the database: %w", err)
		}
	}
	return m, nil
}

func gauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}
