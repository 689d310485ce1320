package controllers

import "strings"

// noteLimit is a little less than the 1,024 bytes that the API server takes.
const noteLimit = 1000

// FitNote returns a text that fits into the note of an Event: cut between two characters and with "..." at the end where it is too
// long. The API server refuses an Event whose note is too long, and with it what it had to tell.
func FitNote(text string) string {
	if len(text) <= noteLimit {
		return text
	}
	return strings.ToValidUTF8(text[:noteLimit], "") + "..."
}
