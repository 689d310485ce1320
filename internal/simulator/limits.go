package simulator

import "time"

// Every limit on bytes, times and counts of this package.
const (
	maxUsers    = 1000
	maxChats    = 20 // of a user
	maxLines    = 200
	maxAccounts = 500 // of a platform
	maxParcels  = 5000
	maxUpdates  = 5000 // that wait at a bot
	maxFaults   = 50
	// maxSiteRequests is how many verifications are listed, the newest.
	maxSiteRequests = 50
	maxRevoked      = 1000
	maxEvents       = 1000
	maxDeliveries   = 500
	maxReceived     = 200
	maxSent         = 1000
	// maxSeen is how many ids of events the receiver knows again.
	maxSeen = 10_000

	// maxRequestBytes bounds the body of a request to any of the APIs, maxEventBytes that of an event to the receiver.
	maxRequestBytes = 256 << 10
	maxEventBytes   = 64 << 10
	maxTextRunes    = 4096
	maxNameRunes    = 128
	// maxOpaqueBytes bounds biz_opaque_callback_data (Cloud API, "Messages").
	maxOpaqueBytes = 512

	// postTimeout bounds one webhook, posts how many are on their way at once.
	postTimeout = 15 * time.Second
	posts       = 16
	// maxAnswerBytes is what is read of an answer; it decides nothing, but a connection can be used again then.
	maxAnswerBytes = 64 << 10
	// attempts is how often a webhook is posted, each wait twice as long as the one before, the first defaultRetry. The
	// platforms go on for hours; a test is over by then.
	attempts     = 8
	defaultRetry = time.Second
	maxRetry     = time.Minute

	// maxPoll is how long Telegram holds a long poll at most, maxUpdatesBatch how many updates it answers.
	maxPoll         = 50 * time.Second
	maxUpdatesBatch = 100
	// maxWait is how long our own API holds an answer.
	maxWait = 30 * time.Second
	// serviceWindow is how long a business may write to a user who wrote to it.
	serviceWindow = 24 * time.Hour
)
