// Package pgserver runs a real PostgreSQL for tests: its own data, a socket and a port of its own on loopback, gone with
// the test. It can be killed and started again, stopped in the middle, and cut off.
//
// The invariant: nothing outlives Stop but a killed test's data folder, and no server is touched that Start did not make.
package pgserver
