// Package docs runs the fenced blocks of README.md, CONTRIBUTING.md and the pages of docs unchanged.
//
// Its invariant: every fenced block of those pages is named once in the table of its test, with its check or with the reason
// why it cannot be checked. Adding or removing a block requires a change of the table.
package docs
