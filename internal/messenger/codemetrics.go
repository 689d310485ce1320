package messenger

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	outcomes *prometheus.CounterVec // by method, country and outcome
	redeemed *prometheus.CounterVec // by method and country
	failures *prometheus.CounterVec // by method and reason
	// counted has the messages whose failure was counted: Meta posts copies of each status.
	counted *Cooldown
}

const (
	// maxCountedFailures bounds the memory of failures that were counted, countedMemory is how long each counts once: Meta repeats a
	// status for 7 days.
	maxCountedFailures = 8192
	countedMemory      = 30 * 24 * time.Hour
)

// codeMethods are the messengers that codes are sent through.
var codeMethods = [...]verification.Method{verification.WhatsApp, verification.Telegram}

// NewCodeMetrics returns the metrics of a project's codes, registered. current returns its settings, or nil.
func NewCodeMetrics(current func() *settings.Settings, registerer prometheus.Registerer) (*CodeMetrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &CodeMetrics{
		settings: current,
		outcomes: counter("phoneproof_codes_total",
			"Codes that this replica sent, by messenger, by the country of the number and by outcome: sent (also if the messenger refused it for a "+
				"reason that may depend on the number), given (the same of an identity server's own code), not_sent or unknown (no answer).",
			"method", "country", "outcome"),
		redeemed: counter("phoneproof_codes_redeemed_total",
			"Codes that were sent and entered, by messenger and by the country of the number. Each counts once, at the replica that stored it.",
			"method", "country"),
		failures: counter("phoneproof_code_failures_total",
			"Codes that were not accepted, or accepted and not delivered, by messenger and reason. other_number: the messenger sent the code to "+
				"another number, and its digits verify nothing.", "method", "reason"),
		counted: NewCooldown(maxCountedFailures, countedMemory),
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
	for _, method := range codeMethods {
		for region := range m.countriesOf(method) {
			m.redeemed.WithLabelValues(string(method), string(region))
			for _, outcome := range codeOutcomes {
				m.outcomes.WithLabelValues(string(method), string(region), outcome)
			}
		}
	}
	for _, part := range m.listParts() {
		part.Collect(out)
	}
}

// countriesOf returns the countries that the project sends codes to through a messenger.
func (m *CodeMetrics) countriesOf(method verification.Method) map[phone.Region]bool {
	s := m.settings()
	if s == nil {
		return nil
	}
	countries, _ := s.CodeCountries(method)
	return countries
}

// countryOf returns the label of the country of a request's number.
func (m *CodeMetrics) countryOf(r *verification.Request) string {
	if region, _, known := phone.RegionOf(r.Phone); known && m.countriesOf(r.Method)[region] {
		return string(region)
	}
	return otherCountry
}

// addReasons makes the series of a platform's failures, so that they exist from the first scrape on.
func (m *CodeMetrics) addReasons(method verification.Method, reasons []string) {
	for _, reason := range append(reasons, CodeUnreachable, CodeTooLate, CodeNotConfigured, CodeNoAnswer, verification.CodeReasonOtherNumber) {
		m.failures.WithLabelValues(string(method), reason)
	}
}

// CountFailure counts the failure of a code through a messenger that is reported later, once for each message.
func (m *CodeMetrics) CountFailure(method verification.Method, reason, messageID string, now time.Time) {
	if messageID != "" && m.counted.TryStart(now, messageID) {
		m.failures.WithLabelValues(string(method), reason).Inc()
	}
}

// countResult counts what the sender learned of the code of a request.
func (m *CodeMetrics) countResult(r *verification.Request, result verification.CodeResult) {
	outcome := codeOutcomes[result.State]
	if r.IsDelivery() && result.State == verification.CodeSent {
		outcome = outcomeGiven
	}
	m.outcomes.WithLabelValues(string(r.Method), m.countryOf(r), outcome).Inc()
	if result.Reason != "" {
		m.failures.WithLabelValues(string(r.Method), result.Reason).Inc()
	}
}

// CountRedeemed counts a request that was proven by its delivered code.
func (m *CodeMetrics) CountRedeemed(r *verification.Request) {
	m.redeemed.WithLabelValues(string(r.Method), m.countryOf(r)).Inc()
}
