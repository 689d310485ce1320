package server

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/version"
)

// registerInfo registers phoneproof_server_info, which is always 1 and has the version and the store as labels to join with, and
// the offset of the machine's clock.
func (s *server) registerInfo() error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "phoneproof_server_info", Help: "Always 1; the labels are the version of the server and the kind of its store.",
		ConstLabels: prometheus.Labels{"version": version.Version(), "store": s.options.Store},
	})
	info.Set(1)
	offset := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "phoneproof_clock_offset_seconds",
		Help: "What is added to the time of this machine, as its store tells another one; 0 while they agree.",
	}, func() float64 { return s.clock.Offset().Seconds() })
	for _, collector := range []prometheus.Collector{info, offset} {
		if err := s.registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics of the server: %w", err)
		}
	}
	return nil
}
