// Package note fits texts into the notes of Events. The API server refuses an Event whose note is too long, and with it
// what it had to tell.
package note

import "strings"

// limit is a little less than the 1,024 bytes that the API server takes.
const limit = 1000

// Fit returns text, cut between two characters and with "..." at the end where it is too long.
func Fit(text string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
