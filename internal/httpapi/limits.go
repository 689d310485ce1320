package httpapi

import "time"

// Every limit on bytes, time and counts of the HTTP API. What must hold between them is tested by TestLimits_fitTogether.
const (
	// maxBodyBytes bounds the body of init. The longest useful one is under 1 KiB; what is over the limit is
	// never kept, whether its length was announced or not.
	maxBodyBytes = 8 << 10
	// unreadBodyTime bounds how long the rest of a body that nobody wanted is still taken in after its refusal, 256 KiB
	// at most: long enough for what was on its way when the refusal was sent, which would else reset the connection
	// before the client has read it.
	unreadBodyTime = 500 * time.Millisecond

	// maxSubject bounds the subject of init, in characters.
	maxSubject = 128

	// maxRequestIDBytes bounds an X-Request-Id that is taken over from the client.
	maxRequestIDBytes = 128

	// maxWait bounds a long poll, so that it ends before the idle timeouts of the proxies in use (60 s).
	maxWait = 30 * time.Second
	// maxWaitsPerKey and maxWaits bound the long polls held at once; one more is answered at once. Where memory is short
	// they are fewer, see MaxWaits. A held one costs about 16 KiB, its connection included (measured in server_test.go).
	maxWaitsPerKey = 100
	maxWaits       = 2000

	// statusPerVerification is how many reads an API key has at one server for each verification that it may start: a
	// statusTime of one read every two seconds. minStatusRate is what it has at least, in a second, and statusBurstTime the
	// time whose reads may come at once.
	statusPerVerification = 30
	statusTime            = time.Minute
	minStatusRate         = 100
	statusBurstTime       = 5 * time.Second

	// storeTimeout bounds each call of the store, so that a store that hangs is a 503 within two seconds.
	storeTimeout = 1500 * time.Millisecond

	// Retry-After of our own refusals.
	retryStore     = 2 * time.Second
	retryStatus    = time.Second
	retryChannel   = 30 * time.Second
	retrySuspended = 5 * time.Minute
)

// limits are those of the connections. Tests make them smaller; nothing else changes them.
type limits struct {
	// readHeader bounds the time from a request's first byte to the end of its headers: slow headers.
	readHeader time.Duration
	// read bounds the time to the end of its body: slow bodies.
	read time.Duration
	// write bounds the time from the end of the headers to the end of the answer; it holds the longest long poll.
	write time.Duration
	// idle bounds how long a connection waits for its next request; more than the proxies in use keep theirs (60 s),
	// so that it is they who close it and no request meets a closing connection.
	idle time.Duration
}

var defaultLimits = limits{
	readHeader: 5 * time.Second,
	read:       10 * time.Second,
	write:      maxWait + 10*time.Second,
	idle:       90 * time.Second,
}

const (
	// defaultDrainDelay is how long a server that is told to stop still answers, so that load balancers notice first.
	defaultDrainDelay = 5 * time.Second
	// defaultShutdownTimeout bounds how long requests in flight may take after that. Long polls end at once, so it
	// needs to hold a slow body and a slow store only.
	defaultShutdownTimeout = 15 * time.Second
)
