package requests

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// tableOptions say what a table shows.
type tableOptions struct {
	showNumbers bool
	wide        bool
}

// headers are the columns, those of wide tables last.
func (o *tableOptions) headers() []string {
	headers := []string{"ID", "NUMBER", "METHOD", "STATUS", "HINT", "EVENT", "AGE"}
	if o.wide {
		headers = append(headers, "ATTEMPTS", "KEY", "REFERENCE", "METADATA", "PROBLEM")
	}
	return headers
}

// row returns the cells of a request.
func (o *tableOptions) row(r *Request, now time.Time) []string {
	row := []string{r.RequestID, o.number(r.PhoneNumber), r.Method, describeStatus(r), r.Hint, describeEvent(r), plugin.Age(r.CreatedAt, now)}
	if o.wide {
		attempts := ""
		if r.Delivery != nil {
			attempts = strconv.Itoa(r.Delivery.Attempts)
		}
		row = append(row, attempts, r.APIKey, r.Reference, describeMetadata(r.Metadata), r.Problem)
	}
	return row
}

func (o *tableOptions) number(number string) string {
	if o.showNumbers {
		return number
	}
	return plugin.Mask(number)
}

func (o *tableOptions) printTo(out io.Writer, list []Request, now time.Time) error {
	table := plugin.NewTable(out, o.headers()...)
	for i := range list {
		table.Row(o.row(&list[i], now)...)
	}
	return table.Flush()
}

func describeStatus(r *Request) string {
	status := r.Status
	if r.Test {
		status += " (test)"
	}
	if r.Problem != "" {
		status += " (problem)"
	}
	return status
}

func describeEvent(r *Request) string {
	if r.Delivery == nil {
		return ""
	}
	return r.Delivery.State
}

func describeMetadata(pairs map[string]string) string {
	parts := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, " ")
}
