// Package load puts load on a server and tells how long its answers took.
//
// Open keeps to a schedule that does not wait for answers, as users do, and counts an answer's time from when its request
// was due: a server that stalls is charged for everybody who came meanwhile. Closed finds the maximum: each client sends
// its next request when the last one was answered.
//
// The invariant: nothing that was due is left out. A call that fails ends the run with its error; there are no figures of
// a load that was partly refused.
package load
