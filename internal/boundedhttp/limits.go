package boundedhttp

import "time"

const (
	// MaxHeaderBytes limits the request line and all fields. A browser behind a service mesh sends 4 KiB, and an API key
	// may have another 4 KiB.
	MaxHeaderBytes = 16 << 10
	// MaxHeaderFields limits the lines after the request line, as Envoy and Apache do.
	MaxHeaderFields = 100

	// ConnectionCost is the cost of each connection, in bytes: two buffers of 4 KiB, a goroutine, a header up to
	// longHeaderBytes and longHeaderFields, and the kernel's part. TestCosts measures this, longHeaderCost and chunkedCost.
	ConnectionCost = 32<<10 + socketCost
	// longHeaderCost is added for a longer header.
	longHeaderCost   = 64 << 10
	longHeaderBytes  = 4 << 10
	longHeaderFields = 40
	// chunkedCost is added for a chunked body: net/http reads a trailer of up to 4 KiB, whose fields are not counted.
	chunkedCost = 128 << 10
	// tlsCost is added for TLS: its records and the messages of a handshake. TestCosts_TLS measures this.
	tlsCost = 96 << 10
	// handshakeBytes limits what a client sends before its handshake is complete: crypto/tls would accept messages of 64 KiB,
	// and a list of one-byte protocols uses eight times its size. The hello of a browser has 2 KiB.
	handshakeBytes = 8 << 10
	// recordBytes limits what a client sends before the next byte of a request: one record of 16 KiB, and some empty ones.
	recordBytes = 24 << 10

	// maxConnections limits the budget of a process with much memory.
	maxConnections = 4096
	// minConnections is the budget of a process with very little memory.
	minConnections = 16
	// usualMemory is the memory of a process without a limit: nine tenths of the limit that the chart sets.
	usualMemory = 230 << 20
	// connectionsShare is the part of the memory that connections may use, as a divisor.
	connectionsShare = 3

	// receiveBufferBytes and sendBufferBytes are the socket buffers requested from the kernel. Linux doubles them.
	receiveBufferBytes = 8 << 10
	sendBufferBytes    = 4 << 10
	// socketCost is the maximum of kernel memory of a connection, which counts against the limit of a pod too: both doubled
	// buffers, one record over the limit, and the kernel's reserve. TestSocketCost measures this.
	socketCost = 32 << 10
	// maxBacklog limits the connections that wait in the kernel to be accepted, which do not count against the budget.
	maxBacklog = 256

	// lingerTime and lingerBytes limit what is still read of a refused header, so that its client can read the refusal.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)
