package plugin

import (
	"strings"

	"github.com/spf13/cobra"
)

// Docs is the address of the documentation as a website; empty for the files of the repository.
type Docs string

// AddTo adds the flag of the address to a command.
func (d *Docs) AddTo(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(d), "docs-url", "", "the address of the documentation as a website; empty for the paths of its files")
}

// Link returns where a page has an entry.
func (d Docs) Link(page, entry string) string {
	anchor := "#" + strings.ToLower(entry)
	if d == "" {
		return "docs/" + page + ".md" + anchor
	}
	return strings.TrimSuffix(string(d), "/") + "/" + page + anchor
}
