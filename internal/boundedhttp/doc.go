// Package boundedhttp serves HTTP/1.1 so that strangers cannot make a process hold more memory than it was given for them.
//
// net/http bounds a header by its bytes alone, and 16 KiB of two-byte fields make it hold twenty times that. Its connections are
// not bounded at all. So each connection counts a header before net/http sees it, and all connections of a listener share
// a budget. What a connection may make net/http hold is its cost; over the budget, the connection that has waited for its
// client for longest is closed.
//
// The states of a connection, and what ends each:
//
//	state      who is waited for             may be closed  begins when
//	awaiting   the client, for a header      yes            accepted, or the answer is finished
//	receiving  the client, for a body        yes            the handler begins, and there is a body
//	working    the handler                   no             the handler begins without a body, or the body was received
//	answering  the client, for the answer    yes            the first byte of the answer is written
//	leaving    its own goroutine             is closed      it was chosen to make room
//
// A connection that leaves counts until net/http has let go of it. While too many leave, none is accepted.
//
// How much of the stream is a header is not parsed here a second time, so that nothing can be parsed in two ways: net/http
// gets a header up to its blank line and no byte more, and says with the call of the handler how long the body is. From the
// end of one header to the call of the handler the count goes on, so a disagreement about the blank line gains nothing.
// A chunked body, whose length is unknown, is the last thing on its connection.
package boundedhttp
