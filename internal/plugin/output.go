package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/internal/phone"
)

// The formats; the empty one is a table.
const (
	wide     = "wide"
	jsonName = "json"
	yamlName = "yaml"
)

// formats are the values of --output.
var formats = []string{"", wide, jsonName, yamlName}

// OutputFlags are the flags of commands that print objects: as a table for people, or as JSON or YAML for programs.
type OutputFlags struct {
	format string
}

// AddTo adds the flags to a command.
func (f *OutputFlags) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.format, "output", "o", "", "output format: json, yaml or wide; a table if empty")
	completion := cobra.FixedCompletions([]cobra.Completion{jsonName, yamlName, wide}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", completion); err != nil {
		panic(err) // the flag is defined above
	}
}

// Validate returns an error for a format that does not exist.
func (f *OutputFlags) Validate() error {
	if !slices.Contains(formats, f.format) {
		return fmt.Errorf("--output %q is unknown: use json, yaml or wide", f.format)
	}
	return nil
}

// Wide reports whether a table has all its columns.
func (f *OutputFlags) Wide() bool { return f.format == wide }

// IsTable reports whether people read the output.
func (f *OutputFlags) IsTable() bool { return f.format == "" || f.format == wide }

// Print prints the object as JSON or YAML, or else what the table function writes.
func (f *OutputFlags) Print(out io.Writer, object any, table func(io.Writer) error) error {
	switch f.format {
	case jsonName:
		return printJSON(out, object)
	case yamlName:
		encoded, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("encode YAML: %w", err)
		}
		return write(out, string(encoded))
	default:
		return table(out)
	}
}

func printJSON(out io.Writer, object any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Table aligns columns. What it prints cannot control the terminal.
type Table struct {
	tabs *tabwriter.Writer
	err  error
}

// NewTable returns a table with a line of headers; without one if there are none.
func NewTable(out io.Writer, headers ...string) *Table {
	t := &Table{tabs: tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)}
	if len(headers) > 0 {
		t.Row(headers...)
	}
	return t
}

// Row adds a line. An empty cell is shown as a hyphen.
func (t *Table) Row(cells ...string) {
	clean := make([]string, len(cells))
	for i, cell := range cells {
		if clean[i] = Clean(cell); clean[i] == "" {
			clean[i] = "-"
		}
	}
	_, err := fmt.Fprintln(t.tabs, strings.Join(clean, "\t"))
	t.err = errors.Join(t.err, err)
}

// Flush prints what was not printed yet.
func (t *Table) Flush() error {
	if err := errors.Join(t.err, t.tabs.Flush()); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// Clean returns a text as one line that cannot control a terminal.
func Clean(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, printers.EscapeTerminal(text))
}

// Age returns how long ago a time was, such as 5m; empty for no time.
func Age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(t)))
}

// Mask returns a phone number with its country code and last two digits alone. What cannot be read as a number is hidden whole.
func Mask(number string) string {
	if number == "" {
		return ""
	}
	parsed, err := phone.FromE164(number)
	if err != nil {
		return "[hidden]"
	}
	return parsed.String()
}
