package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

func (c *command) printList(out io.Writer, reports *Reports) error {
	if len(reports.Items) == 0 {
		if _, err := fmt.Fprintln(c.env.Streams.ErrOut, "No projects found."); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	}
	headers := []string{"NAMESPACE", "NAME", "READY", "REASON", "STORAGE", "PROBLEMS", "AGE"}
	if c.output.Wide() {
		headers = append(headers, "URL", "MESSAGE")
	}
	table := plugin.NewTable(out, headers...)
	for i := range reports.Items {
		r := &reports.Items[i]
		row := []string{
			r.Namespace, r.Name, r.Ready, r.Reason, r.Storage, strconv.Itoa(len(r.Problems)), plugin.Age(r.CreatedAt, c.now()),
		}
		if c.output.Wide() {
			row = append(row, r.BaseURL, r.Message)
		}
		table.Row(row...)
	}
	return table.Flush()
}

// printReport prints one project in sections.
func printReport(out io.Writer, r *Report, now time.Time, paint plugin.Paint) error {
	ready := paint.Bad(r.Ready)
	if r.Ready == string(metav1.ConditionTrue) {
		ready = paint.Good(r.Ready)
	}
	fmt.Fprintf(out, "%s  ready: %s  reason: %s\n\n", paint.Bold(r.Namespace+"/"+r.Name), ready, plugin.Clean(r.Reason))
	table := plugin.NewTable(out)
	table.Row("Address:", r.BaseURL)
	table.Row("In the cluster:", r.Service)
	addIfSet(table, "WhatsApp callback:", r.WhatsAppCallback)
	addIfSet(table, "Telegram callback:", r.TelegramCallback)
	addIfSet(table, "Webhook receiver:", r.WebhookHost)
	table.Row("Storage:", r.Storage)
	table.Row("Replicas:", describeReplicas(r))
	table.Row("Lease holder:", describeLease(r, now))
	table.Row("Stored requests:", describeCounts(r.StoredRequests))
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printKeys(out, r, now); err != nil {
		return err
	}
	if err := printConditions(out, r, now); err != nil {
		return err
	}
	printProblems(out, r, paint)
	return nil
}

func addIfSet(table *plugin.Table, name, value string) {
	if value != "" {
		table.Row(name, value)
	}
}

func describeReplicas(r *Report) string {
	switch {
	case r.Suspended:
		return "0, suspended"
	case r.Replicas == nil:
		return "not known"
	default:
		return fmt.Sprintf("%d of %d ready, %d of the present version", r.Replicas.Ready, r.Replicas.Wanted, r.Replicas.Updated)
	}
}

func describeLease(r *Report, now time.Time) string {
	if r.LeaseHolder == "" {
		return "none"
	}
	return r.LeaseHolder + ", renewed " + plugin.Age(r.LeaseRenewedAt, now) + " ago"
}

func describeCounts(counts map[string]int64) string {
	if len(counts) == 0 {
		return "not known"
	}
	parts := make([]string, 0, len(counts))
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(parts, ", ")
}

func printKeys(out io.Writer, r *Report, now time.Time) error {
	fmt.Fprintln(out)
	table := plugin.NewTable(out, "API KEY", "SCOPES", "EXPIRES", "SECRET")
	for _, k := range r.Keys {
		scopes := make([]string, 0, len(k.Scopes))
		for _, scope := range k.Scopes {
			scopes = append(scopes, string(scope))
		}
		expires := "never"
		if !k.ExpiresAt.IsZero() {
			expires = k.ExpiresAt.Format(time.RFC3339)
			if !now.Before(k.ExpiresAt) {
				expires = "expired"
			}
		}
		table.Row(k.Name, strings.Join(scopes, ","), expires, k.Secret+" "+k.SecretKey)
	}
	return table.Flush()
}

func printConditions(out io.Writer, r *Report, now time.Time) error {
	fmt.Fprintln(out)
	table := plugin.NewTable(out, "CONDITION", "STATUS", "REASON", "SINCE")
	for _, c := range r.Conditions {
		table.Row(c.Type, c.Status, c.Reason, plugin.Age(c.Since, now))
	}
	return table.Flush()
}

// printProblems prints what is wrong, in the words of the conditions, which say what to do.
func printProblems(out io.Writer, r *Report, paint plugin.Paint) {
	fmt.Fprintln(out)
	if len(r.Problems) == 0 {
		fmt.Fprintln(out, paint.Good("Nothing is wrong."))
	}
	for _, p := range r.Problems {
		mark := paint.Warn("note")
		if p.Fatal {
			mark = paint.Bad("problem")
		}
		fmt.Fprintf(out, "%s %s (%s): %s\n  see %s\n", mark, p.Condition, p.Reason, plugin.Clean(p.Message), p.See)
	}
	for _, what := range r.Unknown {
		fmt.Fprintln(out, paint.Warn("not found out")+" "+plugin.Clean(what))
	}
}
