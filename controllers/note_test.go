package controllers

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFitNote(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"empty":                  {"", ""},
		"short":                  {"the receiver fails", "the receiver fails"},
		"just short enough":      {strings.Repeat("a", 1000), strings.Repeat("a", 1000)},
		"too long":               {strings.Repeat("a", 1001), strings.Repeat("a", 1000) + "..."},
		"cut within a character": {strings.Repeat("a", 999) + "\u00e4", strings.Repeat("a", 999) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(FitNote(row.text)).To(Equal(row.want))
		})
	}
}
