package boundedhttp

import "time"

const (
	// MaxHeaderBytes bounds the request line and all fields. A browser behind a service mesh sends 4 KiB, and an API key may
	// have as much.
	MaxHeaderBytes = 16 << 10
	// MaxHeaderFields bounds the lines after the request line, as Envoy and Apache do.
	MaxHeaderFields = 100

	// ConnectionCost is what a connection counts: two buffers of 4 KiB, a goroutine, a header up to longHeaderBytes and
	// longHeaderFields, and the kernel's part. TestCosts measures this and the next three.
	ConnectionCost = 32<<10 + socketCost
	// longHeaderCost is what a longer header adds.
	longHeaderCost   = 64 << 10
	longHeaderBytes  = 4 << 10
	longHeaderFields = 40
	// chunkedCost is what a chunked body adds: net/http reads a trailer of up to 4 KiB, whose fields are not counted.
	chunkedCost = 128 << 10
	// tlsCost is what TLS adds: its records and the messages of a handshake. TestCosts_TLS measures this.
	tlsCost = 96 << 10
	// handshakeBytes bounds what a client sends before its handshake is complete: crypto/tls would take messages of 64 KiB, and
	// holds a list of one-byte protocols eightfold. The hello of a browser has 2 KiB.
	handshakeBytes = 8 << 10
	// recordBytes bounds what a client sends before the next byte of a request: a record of 16 KiB, and some without content.
	recordBytes = 24 << 10

	// maxConnections bounds the budget where memory is plenty.
	maxConnections = 4096
	// minConnections is what a process with next to no memory still serves.
	minConnections = 16
	// usualMemory is the memory of a process without a limit: nine tenths of the limit that the chart sets.
	usualMemory = 230 << 20
	// connectionsShare is the part of the memory that connections may use, as a divisor.
	connectionsShare = 3

	// receiveBufferBytes and sendBufferBytes are what the kernel is asked to keep of a connection. Linux doubles them.
	receiveBufferBytes = 8 << 10
	sendBufferBytes    = 4 << 10
	// socketCost is what the kernel holds of a connection at most, which counts for a pod too: both doubled buffers, the record
	// that is one too many, and what it keeps in reserve. TestSocketCost measures this.
	socketCost = 32 << 10
	// maxBacklog bounds the connections that the kernel holds before they are accepted, which no budget counts.
	maxBacklog = 256

	// lingerTime and lingerBytes bound what is still taken in of a refused header, so that its client reads the refusal.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)
