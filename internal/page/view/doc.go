// Package view renders the page that leads an end user to a verified number, as one HTML document of at most 30 KB.
//
// Style and script are part of the document and allowed by their hashes; nothing else is inline, and nothing comes from elsewhere.
// It does without html/template, which makes the program 10 MB larger: what is not trusted is escaped in one place, by attr and text.
package view
