package operator

import "time"

const (
	// allowedFor and refusedFor are how long a decision stands: a right that was taken away ends within the first.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// knownFor is how long a token that was allowed is known: to ask about it again is no question of a stranger.
	knownFor = time.Hour
	// maxDecisions bounds the memory of decisions.
	maxDecisions = 256

	// reviewRate and reviewBurst bound the tokens of strangers that the API server is asked about, callerRate and callerBurst
	// those of one address, so that a stranger at one address cannot use up what a Prometheus with a new token needs.
	reviewRate  = 5 // a second
	reviewBurst = 10
	callerRate  = 1 // a second
	callerBurst = 4
	// maxCallers bounds the addresses that are counted.
	maxCallers = 1024
	// ipv6Bits is the part of an IPv6 address that counts: a stranger may have all addresses behind it.
	ipv6Bits = 64

	// maxReviews bounds the reviews at once, of strangers and of known tokens each.
	maxReviews = 4
	// reviewTimeout bounds the two questions about a token.
	reviewTimeout = 5 * time.Second
)
