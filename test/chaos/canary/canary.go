// Package canary searches for secrets, codes and numbers where none may be.
//
// The invariant: it finds each whatever its case or grouping, and reports the kind that it found, never the value.
package canary

import (
	"bytes"
	"fmt"
	"strings"
)

// Canaries are values that must not be seen.
type Canaries struct {
	secrets map[string][]byte // by name
	codes   map[string]bool
	numbers map[string]bool
}

// New returns an empty set.
func New() *Canaries {
	return &Canaries{secrets: map[string][]byte{}, codes: map[string]bool{}, numbers: map[string]bool{}}
}

// codeLength is the length of a code without its hyphens.
const codeLength = 16

// Secret adds a secret, with a name to report it by.
func (c *Canaries) Secret(name, value string) { c.secrets[name] = []byte(value) }

// Code adds the code of a request.
func (c *Canaries) Code(code string) {
	if bare := strings.ToUpper(strings.ReplaceAll(code, "-", "")); len(bare) == codeLength {
		c.codes[bare] = true
	}
}

// Number adds an end user's number in E.164.
func (c *Canaries) Number(e164 string) { c.numbers[strings.TrimPrefix(e164, "+")] = true }

// Search returns what a text contains, by kind and with the number of the line. It ignores numbers unless numbersToo.
func (c *Canaries) Search(name string, text []byte, numbersToo bool) []string {
	var found []string
	line := 0
	for row := range bytes.Lines(text) {
		line++
		for what, secret := range c.secrets {
			if bytes.Contains(row, secret) {
				found = append(found, fmt.Sprintf("%s:%d: %s", name, line, what))
			}
		}
		if c.hasCode(row) {
			found = append(found, fmt.Sprintf("%s:%d: a code", name, line))
		}
		if numbersToo && c.hasNumber(row) {
			found = append(found, fmt.Sprintf("%s:%d: a number", name, line))
		}
	}
	return found
}

// hasCode checks every run of letters, digits and hyphens that is long enough.
func (c *Canaries) hasCode(row []byte) bool {
	bare := make([]byte, 0, 64)
	for i := 0; i <= len(row); i++ {
		var b byte
		if i < len(row) {
			b = row[i]
		}
		switch {
		case b >= '0' && b <= '9', b >= 'A' && b <= 'Z':
			bare = append(bare, b)
		case b >= 'a' && b <= 'z':
			bare = append(bare, b-'a'+'A')
		case b == '-':
		default:
			for j := 0; j+codeLength <= len(bare); j++ {
				if c.codes[string(bare[j:j+codeLength])] {
					return true
				}
			}
			bare = bare[:0]
		}
	}
	return false
}

// The lengths of numbers, in digits.
const (
	minNumber = 8
	maxNumber = 15
)

// hasNumber checks every run of digits that is long enough.
func (c *Canaries) hasNumber(row []byte) bool {
	start := 0
	for i := 0; i <= len(row); i++ {
		if i < len(row) && row[i] >= '0' && row[i] <= '9' {
			continue
		}
		digits := row[start:i]
		start = i + 1
		for from := 0; from+minNumber <= len(digits); from++ {
			for length := minNumber; length <= maxNumber && from+length <= len(digits); length++ {
				if c.numbers[string(digits[from:from+length])] {
					return true
				}
			}
		}
	}
	return false
}
