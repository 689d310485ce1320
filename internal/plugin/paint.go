package plugin

import (
	"io"
	"os"

	"k8s.io/cli-runtime/pkg/printers"
)

// Paint colours words, on a terminal only.
type Paint struct {
	colours bool
}

// NewPaint returns a Paint for an output. NO_COLOR (https://no-color.org) switches colours off.
func NewPaint(out io.Writer) Paint {
	return Paint{colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && printers.IsTerminal(out)}
}

// Good returns a text in green.
func (p Paint) Good(text string) string { return p.dye("32", text) }

// Bad returns a text in red.
func (p Paint) Bad(text string) string { return p.dye("31", text) }

// Warn returns a text in yellow.
func (p Paint) Warn(text string) string { return p.dye("33", text) }

// Bold returns a text in bold.
func (p Paint) Bold(text string) string { return p.dye("1", text) }

func (p Paint) dye(code, text string) string {
	if !p.colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
