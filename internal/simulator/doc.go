// Package simulator plays WhatsApp's and Telegram's platforms and the people who use them, for development, demos and tests.
//
//	phone page, HTTP API -> user -> chat -> account -> signed webhook, or getUpdates -> the server under test
//	                                  ^                                                         |
//	                                  '----------------- Graph API, Bot API <-------------------'
//
// It speaks the platforms' wire formats: what it posts is signed over escaped unicode, comes again when it is refused, and
// looks like what the platforms send; what it answers, errors included, looks like their answers. It plays users, users without
// a number, and users whose id differs from their number. It forges nothing: tests of the server do that by themselves.
//
// Invariants: it takes credentials that begin with sim_ and no others, so no real one ever means anything here; it knows
// nothing of the code that it tests, and nothing in that code knows it, so no check there can be weakened for it; what it
// remembers is bounded and in memory only. Nothing that it says is true of a real phone.
package simulator
