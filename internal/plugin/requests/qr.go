package requests

import (
	"fmt"
	"io"
	"strings"

	"rsc.io/qr"
)

// quietZone is the margin of a QR code, in modules, that readers need.
const quietZone = 2

// drawQR prints a QR code. Two modules share a character, one above the other. On a terminal it is black on white, whatever the
// colours of the terminal.
func drawQR(out io.Writer, content string, terminal bool) error {
	code, err := qr.Encode(content, qr.L)
	if err != nil {
		return fmt.Errorf("draw QR code: %w", err)
	}
	var drawn strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		if terminal {
			drawn.WriteString("\x1b[30;107m")
		}
		for x := -quietZone; x < code.Size+quietZone; x++ {
			drawn.WriteString(drawModules(code.Black(x, y), code.Black(x, y+1), terminal))
		}
		if terminal {
			drawn.WriteString("\x1b[0m")
		}
		drawn.WriteByte('\n')
	}
	if _, err := io.WriteString(out, drawn.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// drawModules returns the character of two modules. Without colours the background is expected to be dark, so that the white ones are
// drawn.
func drawModules(upper, lower, terminal bool) string {
	if !terminal {
		upper, lower = !upper, !lower
	}
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	default:
		return " "
	}
}
