// Package pgserver runs a real PostgreSQL for tests, with data, a socket and a port of its own on loopback, which end with
// the test. It can be killed and restarted, frozen, and disconnected.
//
// The invariant: nothing outlives Stop but a killed test's data folder, and only servers that Start created are touched.
package pgserver
