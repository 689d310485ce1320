package requests

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

func newGetCommand(env *plugin.Env) *cobra.Command {
	r := newReader(env)
	cmd := &cobra.Command{
		Use:   "get NAME ID",
		Short: "Show a request: its hints, and the attempts to deliver its event",
		Example: `  kubectl phoneproof requests get shop vr4soqontb52m5bmeyx7bop4b4

  # for a script, with the whole number
  kubectl phoneproof requests get shop vr4soqontb52m5bmeyx7bop4b4 -o yaml`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := r.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			request, err := source.Get(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return r.output.Print(env.Streams.Out, request, func(out io.Writer) error {
				return r.printRequest(out, &request)
			})
		},
	}
	r.addFlags(cmd)
	return plugin.DeclareRights(cmd, readRights("get")...)
}

func (r *reader) printRequest(out io.Writer, request *Request) error {
	table := plugin.NewTable(out)
	for _, line := range [][2]string{
		{"Request:", request.RequestID},
		{"Number:", r.table.number(request.PhoneNumber)},
		{"Kind:", request.Kind},
		{"Method:", request.Method},
		{"Status:", describeStatus(request)},
		{"Hint:", request.Hint},
		{"Created:", showTime(request.CreatedAt)},
		{"Expires:", showTime(request.ExpiresAt)},
		{"Verified:", showTime(request.VerifiedAt)},
		{"Reported number:", r.table.number(request.ActualPhoneNumber)},
		{"Assurance:", request.Assurance},
		{"Code:", strings.TrimSpace(request.CodeDelivery + " " + request.CodeReason)},
		{"API key:", request.APIKey},
		{"Reference:", request.Reference},
		{"Metadata:", describeMetadata(request.Metadata)},
		{"Locale:", request.Locale},
		{"Event:", showDelivery(request.Delivery)},
		{"Problem:", request.Problem},
	} {
		if line[1] != "" {
			table.Row(line[0], line[1])
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printHints(out, request.Hints); err != nil {
		return err
	}
	return printAttempts(out, request.Attempts)
}

func printHints(out io.Writer, hints []Hint) error {
	if len(hints) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := plugin.NewTable(out, "HINT", "FIRST AT")
	for _, h := range hints {
		table.Row(h.Kind, showTime(h.At))
	}
	return table.Flush()
}

func printAttempts(out io.Writer, attempts []Attempt) error {
	if len(attempts) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := plugin.NewTable(out, "ATTEMPT AT", "EVENT", "ANSWER", "REASON")
	for _, a := range attempts {
		answer := ""
		if a.StatusCode != 0 {
			answer = strconv.Itoa(a.StatusCode)
		}
		table.Row(showTime(a.At), a.Event, answer, a.Reason)
	}
	return table.Flush()
}

func showDelivery(d *Delivery) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("%s, %d attempts", d.State, d.Attempts)
	switch {
	case !d.DeliveredAt.IsZero():
		text += ", at " + showTime(d.DeliveredAt)
	case !d.NextAttemptAt.IsZero():
		text += ", next at " + showTime(d.NextAttemptAt)
	}
	return text
}

func showTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
