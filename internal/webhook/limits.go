package webhook

import "time"

// These limits bound what a receiver, or the author of its URL, can cost this process.
const (
	// DefaultTimeout bounds a whole attempt, from DNS to the end of the answer, unless settings have another timeout.
	DefaultTimeout = 15 * time.Second
	// maxDial bounds a dial, and again a TLS handshake. http.Transport lets both outlive the attempt that started them,
	// so the attempt's own timeout does not end them.
	maxDial = 10 * time.Second
	// maxDrain is how long an answer's body is read after its status is known. Reading it only keeps the connection
	// usable, and a body that arrives at a byte per second is not worth a slot.
	maxDrain = time.Second
	// maxBody is how many bytes of an answer's body are read.
	maxBody = 64 << 10
	// maxHeader bounds the answer's header in bytes, including all informational (1xx) ones before it.
	maxHeader = 16 << 10
	// maxURL is the API's limit of spec.webhook.url.
	maxURL = 2048
	// maxAddresses is how many of a name's addresses one dial tries. A name can have thousands, and a tenant could make
	// us open a connection to each.
	maxAddresses = 8

	// MaxInFlight is the maximum of concurrent attempts at one receiver.
	MaxInFlight = 32
	// SlowStart is that maximum at first.
	SlowStart = 10
	// firstGuess is the assumed duration of an attempt before the first one. Most receivers answer in less, and the
	// first answers of a slow one correct it.
	firstGuess = 100 * time.Millisecond
	// minBusy and maxBusy bound the wait for a slot that a BusyError names.
	minBusy = 50 * time.Millisecond
	maxBusy = 30 * time.Second
	// maxReceivers is the number of receivers above which idle ones are forgotten.
	maxReceivers = 1024

	// maxTransports is the maximum of connection pools: one per namespace and caBundle. A server has one.
	maxTransports = 16
	// maxIdle is how long an idle connection is kept. Servers close theirs after 2 s (Gunicorn) or more, and an event that
	// meets such an end is a failed attempt: it may have arrived, so it is not sent again at once.
	maxIdle = time.Second
	// pingAfter and pingTimeout find a dead HTTP/2 connection, which would otherwise fail each attempt that shares it.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second

	// maxSignatures bounds the header webhook-signature.
	maxSignatures = 8
)
