package whatsapp

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// codeOutcomes are the outcomes of codes by their states, as metrics name them.
var codeOutcomes = map[verification.CodeState]string{
	verification.CodeSent: "sent", verification.CodeNotSent: "not_sent", "": "unknown",
}

// outcomeGiven is the outcome of a delivery that was sent. Its code is not entered here, so it is none of those that should be redeemed.
const outcomeGiven = "given"

// otherCountry is the label of a country that the project no longer allows.
const otherCountry = "other"

// CodeMetrics count delivered codes. Every series of the project's countries exists from the first scrape on. It implements
// prometheus.Collector.
type CodeMetrics struct {
	settings func() *settings.Settings
	outcomes *prometheus.CounterVec // by country and outcome
	redeemed *prometheus.CounterVec // by country
	failures *prometheus.CounterVec // by reason
	// counted has the messages whose failure was counted: Meta posts copies of each status.
	counted *messenger.Cooldown
}

// NewCodeMetrics returns the metrics of a project's codes, registered. current returns its settings, or nil.
func NewCodeMetrics(current func() *settings.Settings, registerer prometheus.Registerer) (*CodeMetrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &CodeMetrics{
		settings: current,
		outcomes: counter("phoneproof_codes_total",
			"Codes that this replica sent through WhatsApp, by the country of the number and by outcome: sent (also if Meta refused it for a "+
				"reason that may depend on the number), given (the same of an identity server's own code), not_sent or unknown (no answer).",
			"country", "outcome"),
		redeemed: counter("phoneproof_codes_redeemed_total",
			"Codes sent through WhatsApp that were entered, by the country of the number. Each counts once, at the replica that stored it.",
			"country"),
		failures: counter("phoneproof_code_failures_total",
			"Codes that were not accepted, or accepted and not delivered, by reason. other_number: Meta sent the code to another number, and "+
				"its digits verify nothing.", "reason"),
		counted: messenger.NewCooldown(maxStatuses, statusMemory),
	}
	for _, reason := range listCodeReasons() {
		m.failures.WithLabelValues(reason)
	}
	if err := registerer.Register(m); err != nil {
		return nil, fmt.Errorf("register metrics of codes: %w", err)
	}
	return m, nil
}

func (m *CodeMetrics) listParts() []prometheus.Collector {
	return []prometheus.Collector{m.outcomes, m.redeemed, m.failures}
}

// Describe implements prometheus.Collector.
func (m *CodeMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, part := range m.listParts() {
		part.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *CodeMetrics) Collect(out chan<- prometheus.Metric) {
	if codes := m.currentCodes(); codes != nil {
		for region := range codes.Countries {
			m.redeemed.WithLabelValues(string(region))
			for _, outcome := range codeOutcomes {
				m.outcomes.WithLabelValues(string(region), outcome)
			}
		}
	}
	for _, part := range m.listParts() {
		part.Collect(out)
	}
}

// currentCodes returns the project's settings of codes; nil if it has none.
func (m *CodeMetrics) currentCodes() *settings.Codes {
	if s := m.settings(); s != nil && s.WhatsApp != nil {
		return s.WhatsApp.Codes
	}
	return nil
}

// countryOf returns the label of a number's country.
func (m *CodeMetrics) countryOf(n phone.Number) string {
	region, _, known := phone.RegionOf(n)
	if codes := m.currentCodes(); known && codes != nil && codes.Countries[region] {
		return string(region)
	}
	return otherCountry
}

// countResult counts what the sender learned of the code of a request.
func (m *CodeMetrics) countResult(r *verification.Request, result verification.CodeResult) {
	outcome := codeOutcomes[result.State]
	if r.IsDelivery() && result.State == verification.CodeSent {
		outcome = outcomeGiven
	}
	m.outcomes.WithLabelValues(m.countryOf(r.Phone), outcome).Inc()
	if result.Reason != "" {
		m.failures.WithLabelValues(result.Reason).Inc()
	}
}

// CountRedeemed counts a request that was proven by its delivered code.
func (m *CodeMetrics) CountRedeemed(r *verification.Request) {
	m.redeemed.WithLabelValues(m.countryOf(r.Phone)).Inc()
}
