package webhook

import "time"

// Everything that bounds what a receiver, or whoever chose its URL, can cost us.
const (
	// DefaultTimeout bounds a whole attempt, from the name's resolution to the end of the answer, where settings do
	// not say otherwise.
	DefaultTimeout = 15 * time.Second
	// maxDial bounds a dial, and again a TLS handshake. http.Transport lets both outlive the attempt that started
	// them, so the attempt's own timeout does not.
	maxDial = 10 * time.Second
	// maxDrain is how long an answer's body is read on after its status is known. Nothing in it matters: reading it
	// only keeps the connection usable, and a body of a byte per second is not worth a slot.
	maxDrain = time.Second
	// maxBody is how much of an answer's body is read.
	maxBody = 64 << 10
	// maxHeader bounds the answer's header, all informational (1xx) ones before it included.
	maxHeader = 16 << 10
	// maxURL is what the API accepts as spec.webhook.url.
	maxURL = 2048
	// maxAddresses is how many of a name's addresses one dial tries. Names can have thousands, and each is a
	// connection that a tenant makes us open.
	maxAddresses = 8

	// MaxInFlight is how many attempts at one receiver run at the same time.
	MaxInFlight = 32
	// SlowStart is how many at first.
	SlowStart = 10
	// firstGuess is how long an attempt is taken to last before there was one. A usual receiver answers in less, and
	// a slow one corrects it with its first answers.
	firstGuess = 100 * time.Millisecond
	// minBusy and maxBusy bound how long a caller is told to wait for a slot.
	minBusy = 50 * time.Millisecond
	maxBusy = 30 * time.Second
	// maxReceivers is when receivers that are idle are forgotten.
	maxReceivers = 1024

	// maxTransports is how many pools of connections are kept: one per namespace and caBundle. A server has one.
	maxTransports = 16
	// maxIdle is how long an unused connection is kept. Shorter than the keep-alive of usual servers (60 s and more),
	// because a request that meets a closing connection is a failed attempt.
	maxIdle = 30 * time.Second
	// pingAfter and pingTimeout find a dead HTTP/2 connection, which would otherwise fail each attempt that shares it.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second

	// maxSignatures bounds the header webhook-signature.
	maxSignatures = 8
)
