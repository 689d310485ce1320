// Package docs runs what README.md, CONTRIBUTING.md and the pages of docs show, word for word.
//
// Its invariant: every fenced block of those pages is named once in the table of its test, with what checks it or with the
// reason why nothing can. A block that is added, and one that is removed, need a change of the table.
package docs
