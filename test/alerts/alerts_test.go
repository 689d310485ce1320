// Package alerts_test evaluates the chart's alerts with Prometheus' own engine. It is a module of its own, because the engine's
// dependencies are not the product's; promtool would bring the clients of a dozen clouds.
package alerts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"sigs.k8s.io/yaml"
)

// Rules are evaluated an hour after the first sample of each series.
var (
	evaluatedAt = time.UnixMilli(0).Add(time.Hour)
	promQL      = parser.NewParser(parser.Options{})
)

const root = "../.."

// alertCase holds what is stored, and whether an alert's expression has a result then. Series are in promtool's notation,
// with one sample a minute: `up 1x60` is 1 for the whole hour.
type alertCase struct {
	name   string
	fires  bool
	series []string
}

var alertCases = map[string][]alertCase{
	"PhoneProofOperatorDown": {
		{"not while it is scraped", false, []string{`up{job="proof-operator-metrics", namespace="phoneproof-system"} 1x60`}},
		{"not while one replica of two is scraped", false, []string{`up{job="proof-operator-metrics", namespace="phoneproof-system", pod="a"} 0x60`,
			`up{job="proof-operator-metrics", namespace="phoneproof-system", pod="b"} 1x60`}},
		{"when its scrape fails", true, []string{`up{job="proof-operator-metrics", namespace="phoneproof-system"} 1x50 0x9`}},
		{"when its pods are gone, and their series with them", true, []string{`up{job="proof-operator-metrics", namespace="phoneproof-system"} 1x30 stale`}},
		{"when Prometheus never found it", true, nil},
		{"when only another release's operator is scraped", true, []string{`up{job="proof-operator-metrics", namespace="team-a"} 1x60`}},
	},
	"PhoneProofProjectNotReady": {
		{"not for a project that is ready", false, []string{condition("Ready", "True", "Ready")}},
		{"not for a suspended one", false, []string{condition("Ready", "False", "Suspended")}},
		{"when it is not ready", true, []string{condition("Ready", "False", "StorageUnreachable")}},
		{"when that is unknown", true, []string{condition("Ready", "Unknown", "NotReported")}},
	},
	"PhoneProofProjectStalled": {
		{"not for a project that goes on", false, []string{condition("Stalled", "False", "NotStalled")}},
		{"when it is stalled", true, []string{condition("Stalled", "True", "NotPermitted")}},
	},
	"PhoneProofWebhookFailing": {
		{"not while events are delivered", false, []string{condition("WebhookHealthy", "True", "Delivered")}},
		{"when the receiver fails", true, []string{condition("WebhookHealthy", "False", "http_500")}},
	},
	"PhoneProofServerErrors": {
		{"not for 4 % of errors", false, []string{answers("200", 96), answers("500", 4)}},
		{"not for errors of clients", false, []string{answers("200", 10), answers("404", 90)}},
		{"not for unknown keys while a Secret is missing", false, []string{
			strings.Replace(answers("503", 10), "status", `route="/api/verify/init (keys)", status`, 1), answers("200", 90),
		}},
		{"for 10 % of errors", true, []string{answers("200", 90), answers("503", 10)}},
	},
	"PhoneProofStorageFull": {
		{"not for created requests", false, []string{`phoneproof_http_inits_total{` + server + `, result="created"} 0+60x60`}},
		{"for requests refused because too many are stored", true, []string{`phoneproof_http_inits_total{` + server + `, result="too_many_stored"} 0+1x60`}},
	},
	"PhoneProofMoveToPostgreSQL": {
		{"not for 3 a second", false, []string{storedIn("kubernetes"), `phoneproof_http_inits_total{` + server + `, result="created"} 0+180x60`}},
		{"not on PostgreSQL", false, []string{storedIn("postgresql"), `phoneproof_http_inits_total{` + server + `, result="created"} 0+300x60`}},
		{"for 5 a second", true, []string{storedIn("kubernetes"), `phoneproof_http_inits_total{` + server + `, result="created"} 0+300x60`}},
	},
	"PhoneProofDatabaseDown": {
		{"not while it serves", false, []string{`phoneproof_postgresql_up{` + server + `} 1x60`}},
		{"when one replica does not reach it", true, []string{`phoneproof_postgresql_up{` + server + `} 1x60`, `phoneproof_postgresql_up{namespace="shop", project="shop", pod="b"} 0x60`}},
	},
	"PhoneProofRequestsSkipped": {
		{"not while none is", false, []string{`phoneproof_request_skipped_total{` + server + `} 7x60`}},
		{"when one is", true, []string{`phoneproof_request_skipped_total{` + server + `} 7x50 8x9`}},
	},
	"PhoneProofWhatsAppSilent": {
		{"not for a project that hears its users", false, []string{condition("WhatsAppReady", "True", "Registered")}},
		{"when it is silent", true, []string{condition("Silent", "True", "NoMessages")}},
	},
	"PhoneProofWhatsAppBilled": {
		{"not for two messages of each verification", false, []string{startedBy("WHATSAPP", 5), billedSeries("service", 10)}},
		{"not for a few more", false, []string{startedBy("WHATSAPP", 1), billedSeries("service", 2), billedSeries("utility", 0)}},
		{"not where nothing is billed", false, []string{startedBy("WHATSAPP", 0), billedSeries("service", 0)}},
		{"not for requests that moved to WhatsApp on the page", false, []string{startedBy("WHATSAPP", 0), startedBy("TELEGRAM", 5), billedSeries("service", 10)}},
		{"for many more, of all categories", true, []string{startedBy("WHATSAPP", 1), startedBy("TELEGRAM", 1), billedSeries("service", 4), billedSeries("utility", 2)}},
		{"for replies to strangers alone", true, []string{startedBy("WHATSAPP", 0), billedSeries("service", 2)}},
	},
	"PhoneProofCodesNotReady": {
		{"not for a template that can be sent", false, []string{condition("CodesReady", "True", "TemplateReady")}},
		{"not for one that cannot be read", false, []string{condition("CodesReady", "Unknown", "TemplateUnchecked")}},
		{"when it is paused", true, []string{condition("CodesReady", "False", "TemplateNotApproved")}},
		{"when the Gateway's balance is empty", true, []string{condition("GatewayReady", "False", "BalanceEmpty")}},
	},
	"PhoneProofCodesLimited": {
		{"not for a project whose template is ready", false, []string{condition("CodesReady", "True", "TemplateReady")}},
		{"when half of a share is used", true, []string{condition("CodesLimited", "True", "CodesHalfUsed")}},
	},
	"PhoneProofCodesUnredeemed": {
		{"not for a few codes", false, []string{codesOnce("total", "DE", 7), codesOnce("total", "LV", 7), codesOnce("redeemed_total", "DE", 0)}},
		{"not for codes that were not sent", false, []string{codesOnce("total", "DE", 90, "not_sent"), codesOnce("redeemed_total", "DE", 0)}},
		{"not for one in four", false, []string{codesOnce("total", "DE", 90), codesOnce("redeemed_total", "DE", 25)}},
		{"for one in six of one country", true, []string{codesOnce("total", "DE", 90), codesOnce("redeemed_total", "DE", 90),
			codesOnce("total", "LV", 30), codesOnce("redeemed_total", "LV", 5)}},
		{"when none was ever entered", true, []string{codesOnce("total", "DE", 90)}},
	},
	"PhoneProofDeclines": {
		{"not for a handful", false, []string{sessionSteps("proven", 1), declinedOnce(5)}},
		{"not for 4 % of many", false, []string{sessionSteps("proven", 5), sessionSteps("proven", 5, "b"), declinedOnce(24)}},
		{"not for what was declined before the last hour", false, []string{sessionSteps("proven", 1), sessionSteps("declined", 0)}},
		{"not for the declines of other projects", false, []string{sessionSteps("proven", 1), declinedOnce(5),
			`phoneproof_session_proofs_total{namespace="bank", project="bank", pod="a", step="declined"} 0x50 5x9`}},
		{"for 6 % of many", true, []string{sessionSteps("proven", 5), sessionSteps("proven", 5, "b"), declinedOnce(36)}},
		{"for declines alone", true, []string{sessionSteps("proven", 0), declinedOnce(7)}},
	},
	"PhoneProofNamespaceUnread": {
		{"not while all are read", false, []string{`phoneproof_operator_namespace_unread{namespace="a"} 0x60`, `phoneproof_operator_namespace_unread{namespace="b"} 0x60`}},
		{"not once it is read by an operator that took over", false, []string{`phoneproof_operator_namespace_unread{namespace="a", pod="a"} 1x60`,
			`phoneproof_operator_namespace_unread{namespace="a", pod="b"} 0x60`}},
		{"when one is not", true, []string{`phoneproof_operator_namespace_unread{namespace="a"} 0x60`, `phoneproof_operator_namespace_unread{namespace="b"} 1x60`}},
	},
	"PhoneProofPanics": {
		{"not while there is none", false, []string{`phoneproof_http_panics_total{` + server + `} 0x60`}},
		{"when there is one", true, []string{`phoneproof_http_panics_total{` + server + `} 0x50 1x9`}},
	},
}

func TestAlerts(t *testing.T) {
	expressions := alertExpressions(t)
	for alert := range alertCases {
		if expressions[alert] == "" {
			t.Errorf("the chart has no alert %s, of which this file has cases", alert)
		}
	}
	for alert, expression := range expressions {
		cases := alertCases[alert]
		if len(cases) == 0 {
			t.Errorf("%s has no cases in this file", alert)
		}
		for _, c := range cases {
			t.Run(alert+" "+c.name, func(t *testing.T) {
				if got := isFiring(t, expression, c.series); got != c.fires {
					t.Errorf("fires: %t, want %t: %s", got, c.fires, expression)
				}
			})
		}
	}
}

func TestAlerts_withoutScrapes(t *testing.T) {
	for alert, expression := range alertExpressions(t) {
		if want := alert == "PhoneProofOperatorDown"; isFiring(t, expression, nil) != want {
			t.Errorf("%s fires: %t, want %t", alert, !want, want)
		}
	}
}

func TestAlerts_areInTheRunbook(t *testing.T) {
	runbook := readFile(t, "docs/runbook.md")
	for alert := range alertExpressions(t) {
		if !bytes.Contains(runbook, []byte("\n## "+alert+"\n")) {
			t.Errorf("docs/runbook.md has no section %s", alert)
		}
	}
}

func TestDashboard_parses(t *testing.T) {
	var dashboard any
	if err := json.Unmarshal(readFile(t, "charts/phoneproof/files/dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	queries := panelQueries(dashboard)
	if len(queries) == 0 {
		t.Fatal("no queries found")
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h")
	for _, query := range queries {
		if _, err := promQL.ParseExpr(variables.Replace(query)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// server holds the labels of a server's series.
const server = `namespace="shop", project="shop", pod="a"`

func condition(kind, status, reason string) string {
	return fmt.Sprintf(`phoneproof_project_condition{namespace="shop", name="shop", type=%q, status=%q, reason=%q} 1x60`, kind, status, reason)
}

func storedIn(store string) string {
	return fmt.Sprintf(`phoneproof_server_info{namespace="shop", pod="a", store=%q} 1x60`, store)
}

// answers returns the series of a server that answers a number of requests a minute with a status.
func answers(status string, perMinute int) string {
	return fmt.Sprintf(`phoneproof_http_requests_total{%s, status=%q} 0+%dx60`, server, status, perMinute)
}

// startedBy returns the series of verifications that are started a minute, and billed that of messages that Meta bills a minute.
func startedBy(method string, perMinute int) string {
	return fmt.Sprintf(`phoneproof_verifications_started_total{%s, method=%q} 0+%dx60`, server, method, perMinute)
}

func billedSeries(category string, perMinute int) string {
	return fmt.Sprintf(`phoneproof_whatsapp_messages_billed_total{%s, category=%q} 0+%dx60`, server, category, perMinute)
}

// sessionSteps returns the series of steps of session proofs that are made a minute, at the replica a or another one.
func sessionSteps(step string, perMinute int, pod ...string) string {
	labels := server
	if len(pod) > 0 {
		labels = strings.Replace(server, `pod="a"`, fmt.Sprintf("pod=%q", pod[0]), 1)
	}
	return fmt.Sprintf(`phoneproof_session_proofs_total{%s, step=%q} 0+%dx60`, labels, step, perMinute)
}

// codesOnce returns the series of a number of codes that were sent, or had another outcome, or were redeemed within the last minutes.
func codesOnce(metric, country string, number int, outcome ...string) string {
	if metric == "total" {
		country += `", outcome="` + append(outcome, "sent")[0]
	}
	return fmt.Sprintf(`phoneproof_codes_%s{%s, country="%s"} 0x50 %dx9`, metric, server, country, number)
}

// declinedOnce returns the series of a number of requests that were declined within the last minutes.
func declinedOnce(number int) string {
	return fmt.Sprintf(`phoneproof_session_proofs_total{%s, step="declined"} 0x50 %dx9`, server, number)
}

// alertExpressions returns the expressions of the chart's PrometheusRule, by the names of their alerts.
func alertExpressions(t *testing.T) map[string]string {
	t.Helper()
	template := exec.CommandContext(t.Context(), "go", "tool", "-modfile=hack/tools/helm/go.mod", "helm.sh/helm/v4/cmd/helm",
		"template", "phoneproof", "charts/phoneproof", "--namespace", "phoneproof-system", "--kube-version", "1.32.0",
		"--values", "charts/phoneproof/ci/everything-values.yaml", "--show-only", "templates/prometheusrule.yaml")
	template.Dir = root
	var stderr bytes.Buffer
	template.Stderr = &stderr
	out, err := template.Output()
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, stderr.String())
	}
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	if err := yaml.Unmarshal(out, &rule); err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{}
	for _, group := range rule.Spec.Groups {
		for _, rule := range group.Rules {
			expressions[rule.Alert] = rule.Expr
		}
	}
	if len(expressions) == 0 {
		t.Fatal("the chart renders no alerts")
	}
	return expressions
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// panelQueries returns every "expr" in a dashboard.
func panelQueries(value any) []string {
	var queries []string
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			queries = append(queries, panelQueries(element)...)
		}
	case map[string]any:
		if query, ok := value["expr"].(string); ok {
			queries = append(queries, query)
		}
		for _, element := range value {
			queries = append(queries, panelQueries(element)...)
		}
	}
	return queries
}

// isFiring reports whether an expression has a result.
func isFiring(t *testing.T, expression string, series []string) bool {
	t.Helper()
	var stored []storage.Series
	for _, text := range series {
		stored = append(stored, parseSeries(t, text))
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000, Timeout: time.Minute, Parser: promQL})
	query, err := engine.NewInstantQuery(t.Context(), queryable(stored), nil, expression, evaluatedAt)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return len(vector) > 0
}

func parseSeries(t *testing.T, text string) storage.Series {
	t.Helper()
	metric, values, err := promQL.ParseSeriesDesc(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	series := promql.Series{Metric: metric}
	for minute, value := range values {
		if !value.Omitted {
			at := (time.Duration(minute) * time.Minute).Milliseconds()
			series.Floats = append(series.Floats, promql.FPoint{T: at, F: value.Value})
		}
	}
	return promql.NewStorageSeries(series)
}

func queryable(series []storage.Series) storage.Queryable {
	return storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return &storage.MockQuerier{
			SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
				found := &seriesSet{}
				for _, s := range series {
					if matchesAll(s.Labels(), matchers) {
						found.rest = append(found.rest, s)
					}
				}
				return found
			},
		}, nil
	})
}

func matchesAll(metric labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(metric.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

// seriesSet is a storage.SeriesSet over a slice.
type seriesSet struct {
	current storage.Series
	rest    []storage.Series
}

// Next moves to the next series and reports whether there is one.
func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

// At returns the current series.
func (s *seriesSet) At() storage.Series { return s.current }

// Err returns nil.
func (s *seriesSet) Err() error { return nil }

// Warnings returns nil.
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
