// Package boundedhttp serves HTTP/1.1 with a limit on the memory that clients can make a process use.
//
// net/http limits a header only by its bytes, and 16 KiB of two-byte fields use twenty times as much memory. It does not
// limit the number of connections. So each connection counts the bytes and lines of a header before net/http reads it, and
// all connections of a listener share a budget. The cost of a connection is the memory that it may use; over the budget,
// the connection that has waited longest for its client is closed.
//
// The states of a connection, and what ends each:
//
//	state      waits for                     may be closed  begins when
//	awaiting   the client, for a header      yes            accepted, or the answer is finished
//	receiving  the client, for a body        yes            the handler begins, and there is a body
//	working    the handler                   no             the handler begins without a body, or the body was received
//	answering  the client, for the answer    yes            the first byte of the answer is written
//	leaving    its own goroutine             is closed      it was evicted to make room
//
// A handler that holds its request takes a slot of a HoldLimiter, so that not all connections are working.
//
// A leaving connection counts until net/http has released it. While too many are leaving, none is accepted.
//
// This package does not parse requests a second time, so that no request can be parsed in two ways: net/http gets a header
// up to its blank line and no further byte, and the call of the handler gives the length of the body. Counting continues
// from the end of a header to the call of the handler, so a different reading of the blank line gains nothing. A connection
// is closed after a chunked body, because its length is unknown.
package boundedhttp
