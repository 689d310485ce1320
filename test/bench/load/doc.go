// Package load puts load on a server and measures how long its answers take.
//
// Open keeps to a schedule that does not wait for answers, as users do, and counts an answer's time from when its request
// was due: a server that stalls is charged for every request that became due meanwhile. Closed finds the maximum: each
// client sends its next request when the last one was answered.
//
// The invariant: no request that was due is left out. A failed call ends the run with its error, so there are no figures
// of a load that was partly refused.
package load
