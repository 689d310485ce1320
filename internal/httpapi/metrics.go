package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of the API. Every label has a small fixed set of values, whatever clients send.
//
//   - phoneproof_http_requests_total{route,method,status}: answers. route is a path of the API, the path of status with
//     " (wait)" for a long poll that got a slot, any with " (keys)" for a 503 that strangers can cause, "/v/" for pages, "/v/ (wait)" for
//     what follows them, or "unknown"; method is one of HTTP's, or "OTHER"; status is the number, where 200 of deliver is a refusal.
//   - phoneproof_http_request_duration_seconds{route}: time to answer.
//   - phoneproof_http_inits_total{result}: init requests: "created", "replayed" for a retry of a stored request, or the error
//     code; "test" for all of test keys.
//   - phoneproof_http_rate_limited_total{limit}: inits and deliveries refused as rate_limited or codes_limited, by the limit: "key",
//     "phoneNumber", "prefix", "subject", "declined", "codes" or "codesPhoneNumber".
//   - phoneproof_http_long_polls: long polls held now.
//   - phoneproof_http_panics_total: panics that were answered as "internal".
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inits    *prometheus.CounterVec
	limited  *prometheus.CounterVec
	waits    prometheus.Gauge
	panics   prometheus.Counter
}

// The results of init that are not error codes.
const (
	initCreated  = "created"
	initReplayed = "replayed"
	initTest     = "test"
)

// strangersSuffix separates the answers 503 that anyone can cause, most of them keys_unavailable, from those that are errors of the server.
const strangersSuffix = " (keys)"

// waitSuffix separates long polls from ordinary reads, because their duration does not depend on the server.
const waitSuffix = " (wait)"

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_http_requests_total", Help: "Requests answered, by route, method and status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "phoneproof_http_request_duration_seconds", Help: "Time to answer a request, by route.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		inits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_http_inits_total", Help: "Init requests, by result: created, replayed, or the error code; test for all of test keys.",
		}, []string{"result"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "phoneproof_http_rate_limited_total",
			Help: "Inits and deliveries refused as rate_limited or codes_limited, by the limit: key, phoneNumber, prefix, subject, declined, " +
				"codes or codesPhoneNumber.",
		}, []string{"limit"}),
		waits: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "phoneproof_http_long_polls", Help: "Long polls of the status operation that are held now.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "phoneproof_http_panics_total", Help: "Panics in handlers, each answered as an internal error.",
		}),
	}
}

func (m *metrics) registerAll(r prometheus.Registerer) error {
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inits, m.limited, m.waits, m.panics} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register collector: %w", err)
		}
	}
	return nil
}

// recordRequest counts the request and writes its one log line.
func (x *exchange) recordRequest() {
	took := max(x.api.clock.Since(x.start), 0).Round(time.Microsecond)
	m := x.api.metrics
	method := knownMethod(x.r.Method)
	m.requests.WithLabelValues(x.route, method, strconv.Itoa(x.status)).Inc()
	m.duration.WithLabelValues(x.route).Observe(took.Seconds())
	if x.cause == nil && !x.api.requests.Enabled(x.r.Context(), slog.LevelInfo) {
		return
	}
	fields := [...]slog.Attr{
		slog.String("xRequestId", x.id), slog.String("route", x.route), slog.String("method", method), slog.Int("status", x.status),
		slog.String("code", string(x.code)), slog.Float64("seconds", took.Seconds()), slog.String("keyName", x.keyName),
	}
	if x.cause != nil {
		values := make([]any, 0, 2*len(fields))
		for _, field := range fields {
			values = append(values, field.Key, field.Value.Any())
		}
		x.api.log.Error(x.cause, logMessage, values...)
		return
	}
	// A record made here avoids the stack lookup and the boxing of values.
	record := slog.NewRecord(time.Now(), slog.LevelInfo, logMessage, 0)
	record.AddAttrs(fields[:]...)
	x.api.requests.Handle(x.r.Context(), record) //nolint:errcheck // a failed log write cannot be logged
}

// logMessage is the message of the log line of a request.
const logMessage = "request"

// knownMethod returns the method, or "OTHER" for one that HTTP does not define.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "OTHER"
	}
}
