package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// report holds the results of a run.
type report struct {
	Machine machine   `json:"machine"`
	Began   time.Time `json:"began"`
	Took    string    `json:"took"`
	Rounds  int       `json:"rounds"`
	Seconds float64   `json:"seconds"`
	// Repeated is how many measurements met a refused call and were repeated.
	Repeated int   `json:"repeated"`
	Rows     []row `json:"rows"`
}

// write writes bench.json and bench.md into a folder and prints the table.
func (r report) write(dir string, out io.Writer) error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create report folder: %w", err)
	}
	for name, content := range map[string]string{"bench.json": string(content) + "\n", "bench.md": r.markdown()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	_, err = io.WriteString(out, r.markdown())
	return err
}

// markdown returns the table, followed by the machine that it was measured on.
func (r report) markdown() string {
	lines := [][]string{{"figure", "unit", "ours", "limit", "ratio", "aim"}}
	for _, row := range r.Rows {
		lines = append(lines, row.cells())
	}
	var text strings.Builder
	text.WriteString(formatTable(lines))
	fmt.Fprintf(&text, "\n%d rounds of %v s, by turns; median (least to most); %d measurements begun anew after a refused call. %s.\n",
		r.Rounds, r.Seconds, r.Repeated, r.Machine)
	return text.String()
}

// formatTable aligns cells, with a line below the first row.
func formatTable(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rule := make([]string, len(widths))
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	var text strings.Builder
	for _, line := range slices.Insert(slices.Clone(lines), 1, rule) {
		for i, cell := range line {
			fmt.Fprintf(&text, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		text.WriteString("|\n")
	}
	return text.String()
}

// cells returns the cells of a table row.
func (r row) cells() []string {
	cells := []string{r.figure, r.unit, formatSpread(r.ours), "", "", ""}
	if r.limitIs != "" {
		cells[3], cells[4] = formatSpread(r.limit)+" "+r.limitIs, formatSpread(r.ratio())
	}
	if r.aim != nil {
		verdict := "met"
		if !r.aim.isMet(r.judgedValue()) {
			verdict = "missed"
		}
		cells[5] = r.aim.String() + ", " + verdict
	}
	return cells
}

// formatRow returns a row as one line of text.
func formatRow(r row) string {
	cells := slices.DeleteFunc(r.cells(), func(cell string) bool { return cell == "" })
	return strings.Join(cells, " | ")
}

// formatSpread returns the median of rounds and their range.
func formatSpread(s series) string {
	if len(s) < 2 {
		return formatFigure(s.median())
	}
	return fmt.Sprintf("%s (%s to %s)", formatFigure(s.median()), formatFigure(slices.Min(s)), formatFigure(slices.Max(s)))
}

// formatFigure returns a figure with three significant digits.
func formatFigure(v float64) string {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "-"
	case v == 0, math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// summary is a series in bench.json.
type summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Rounds series  `json:"rounds"`
}

func newSummary(s series) *summary {
	if len(s) == 0 {
		return nil
	}
	return &summary{s.median(), slices.Min(s), slices.Max(s), s}
}

// MarshalJSON encodes the row with the figure of every round.
func (r row) MarshalJSON() ([]byte, error) {
	encoded := struct {
		Figure  string   `json:"figure"`
		Unit    string   `json:"unit,omitempty"`
		Ours    *summary `json:"ours"`
		LimitIs string   `json:"limitIs,omitempty"`
		Limit   *summary `json:"limit,omitempty"`
		Ratio   *summary `json:"ratio,omitempty"`
		Aim     string   `json:"aim,omitempty"`
		Met     *bool    `json:"met,omitempty"`
	}{Figure: r.figure, Unit: r.unit, Ours: newSummary(r.ours), LimitIs: r.limitIs}
	if r.limitIs != "" {
		encoded.Limit, encoded.Ratio = newSummary(r.limit), newSummary(r.ratio())
	}
	if r.aim != nil {
		encoded.Aim, encoded.Met = r.aim.String(), new(r.aim.isMet(r.judgedValue()))
	}
	return json.Marshal(encoded)
}
