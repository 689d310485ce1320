// Package browser drives a headless Chromium for tests and for the demo: its pages are opened, tapped, hidden, slowed down,
// pictured and judged like those of a person with a phone or a screen.
//
// The invariant: Chromium ends with the process that started it, however that ends. Pages share one Chromium and nothing else:
// each has cookies and a history of its own, so that tests may run in parallel.
package browser
