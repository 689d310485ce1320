package httpapi

import (
	"time"

	"github.com/phoneproof/phoneproof/internal/tokenbucket"
)

// All limits on bytes, time and counts of the HTTP API. TestLimits_fitTogether checks the relations between them.
const (
	// maxBodyBytes limits the bodies of init and confirm. The longest useful one has about 2 KiB, or 6 KiB if all that is not ASCII is
	// escaped. A longer one is never kept in memory, whether its length was announced or not.
	maxBodyBytes = 8 << 10
	// maxSignedBytes limits the bodies of identity servers, which are read before their signature can be checked, and signatureAge how old
	// or early that may be.
	maxSignedBytes = 64 << 10
	signatureAge   = 300 * time.Second
	// unreadBodyTime limits how long the rest of a body, 256 KiB at most, is still read after its refusal. Bytes that
	// were already sent would otherwise reset the connection before the client has read the refusal.
	unreadBodyTime = 500 * time.Millisecond

	// maxSubject limits the subject of init, in characters.
	maxSubject = 128
	// maxReference and maxLocale limit the fields of these names, in characters. All of a locale are ASCII.
	maxReference = 128
	maxLocale    = 35
	// maxMetadataPairs and maxMetadataBytes limit the metadata of init; the bytes are those of all keys and values in UTF-8.
	maxMetadataPairs = 16
	maxMetadataBytes = 1 << 10

	// maxRequestIDBytes limits an X-Request-Id that is adopted from the client.
	maxRequestIDBytes = 128

	// defaultPage is the limit of a list that has none, and readsPerList is how many reads a list counts as. maxSinceBytes limits the
	// parameter since.
	defaultPage   = 50
	readsPerList  = 10
	maxSinceBytes = 40

	// maxWait limits a long poll, so that it ends before the idle timeout of common proxies (60 s).
	maxWait = 30 * time.Second
	// hintPause is how long a long poll takes at least whose hint differs already, so that a client that always sends the same one does not
	// ask in a hot loop. maxHintBytes limits the parameter hint.
	hintPause    = time.Second
	maxHintBytes = 64
	// maxWaitsPerKey limits the long polls of a key that are held at once; one more is answered immediately. keyShare is the part of
	// what the server may hold that a key may have, and testShare that of all test keys together, as divisors. A long poll costs
	// about 16 KiB, its connection included (measured in server_test.go).
	maxWaitsPerKey = 100
	keyShare       = 4
	testShare      = 8

	// statusPerVerification is the number of reads that an API key has at one server for each verification that it may
	// start: one read every two seconds for statusTime. minStatusRate is the minimum of reads per second, and
	// statusBurstTime is the time whose reads may arrive at once.
	statusPerVerification = 30
	statusTime            = time.Minute
	minStatusRate         = 100
	statusBurstTime       = 5 * time.Second

	// maxLimitedKeys bounds the API keys that are counted: more than a project has, so that only names of removed ones go.
	maxLimitedKeys = 64
	// maxDeliveredNumbers bounds the keys and numbers whose deliveries are counted: those that had the last ones.
	maxDeliveredNumbers = 1 << 14

	// redeliveriesPerSecond is how many events an API key may have sent again at one server, whatever its limit on inits; statusBurstTime
	// applies. Each is one message to the project's receiver, at least.
	redeliveriesPerSecond = 10

	// storeTimeout limits each call of the store, so that a store that hangs results in a 503 within two seconds.
	storeTimeout = 1500 * time.Millisecond

	// Retry-After of the errors of this package.
	retryStore     = 2 * time.Second
	retryStatus    = time.Second
	retryDelivery  = 10 * time.Second
	retryChannel   = 30 * time.Second
	retrySuspended = 5 * time.Minute
)

// limits are the timeouts of connections. Only tests change them.
type limits struct {
	// readHeader limits the time from the first byte of a request to the end of its headers, against slow headers.
	readHeader time.Duration
	// read limits the time to the end of its body, against slow bodies.
	read time.Duration
	// write limits the time from the end of the headers to the end of the answer, and includes the longest long poll.
	write time.Duration
	// idle limits how long a connection waits for its next request. It is longer than the idle timeout of common proxies
	// (60 s), so that the proxy closes the connection first and no request arrives on a closing one.
	idle time.Duration
}

var defaultLimits = limits{
	readHeader: 5 * time.Second,
	read:       10 * time.Second,
	write:      maxWait + 10*time.Second,
	idle:       90 * time.Second,
}

const (
	// defaultDrainDelay is how long a stopping server still answers, so that load balancers notice first.
	defaultDrainDelay = 5 * time.Second
	// defaultShutdownTimeout limits how long requests in flight may take after that. Long polls end at once, so it must
	// only allow for a slow body and a slow store.
	defaultShutdownTimeout = 15 * time.Second
)

var (
	// keyDeliveryRate is how often a key may deliver. In the time in which deliveryRate refills, it names fewer numbers than
	// maxDeliveredNumbers.
	keyDeliveryRate = tokenbucket.Rate{PerSecond: minStatusRate, Burst: minStatusRate * statusBurstTime.Seconds()}
	// deliveryRate is how often a key may deliver to one number, with repetitions of a call whose answer was lost. It is above the limits of
	// sending, and far below what it takes to guess a code.
	deliveryRate = tokenbucket.Rate{PerSecond: 0.1, Burst: 5}
)
