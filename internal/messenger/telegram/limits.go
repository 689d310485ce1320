package telegram

import "time"

// Every limit on bytes, times and counts of this package.
const (
	// maxUpdateBytes bounds the body of a webhook request: one update. The longest text has 4,096 characters, and a
	// message that replies to another one carries both.
	maxUpdateBytes = 1 << 20
	// maxSecretBytes is what setWebhook allows as secret_token: "1-256 characters".
	maxSecretBytes = 256
	// maxPayload is the longest payload of a deep link: "up to 64 characters" (Telegram, "Deep linking").
	maxPayload = 64
	// maxUpdateID is the largest whole number that every JSON reader keeps exact. Telegram's own have 31 bits.
	maxUpdateID = 1 << 53

	// maxAnswerBytes and maxUpdatesBytes bound what is read of an answer of the Bot API.
	maxAnswerBytes  = 64 << 10
	maxUpdatesBytes = 8 << 20
	// maxTextCharacters is the longest text of a message (reference, sendMessage).
	maxTextCharacters = 4096
	// callTimeout bounds a call of the Bot API, promptTimeout one that an update waits for.
	callTimeout   = 10 * time.Second
	promptTimeout = 5 * time.Second
	// storeTimeout bounds what an update does in the store.
	storeTimeout = 3 * time.Second

	// maxConnections is how many updates Telegram may post at the same time: its default.
	maxConnections = 40
	// retryUpdate is when Telegram is asked to post an update again that could not be stored. It honours Retry-After
	// (WebhookActor.cpp); without one it waits longer each time, and a request may expire meanwhile.
	retryUpdate = 5 * time.Second

	// defaultPollTimeout is how long Telegram holds a long poll. It ends them after 50 s (Client.h), and proxies in
	// between may end them after 60 s.
	defaultPollTimeout = 30 * time.Second
	minPollTimeout     = time.Second
	maxPollTimeout     = 50 * time.Second
	// pollSlack is how much later than that the answer may come.
	pollSlack = 10 * time.Second
	// pollBatch is how many updates are asked for at once: the most that there are.
	pollBatch = 100
	// idleWait is how often a poller that has nothing to poll looks at the settings.
	idleWait = 5 * time.Second
	// minBackoff and maxBackoff bound the wait after a poll that failed; each failure doubles it.
	minBackoff = time.Second
	maxBackoff = time.Minute
	// maxRetryAfter bounds the wait that Telegram asks for. Its own flood waits end at 10 minutes (Client.cpp).
	maxRetryAfter = 10 * time.Minute
	// maxPrompts is how often a poller tries to send the prompt that one update needs before it goes on without: one
	// chat must not hold up all others. A webhook is free of that, because Telegram has a queue for each chat.
	maxPrompts = 5
	// pollSenders is how many senders of a fetched batch have their updates done at the same time: as many as Telegram would
	// post. Look-ups of unknown codes share reads of the store only if they are made at the same time.
	pollSenders = maxConnections
	// maxFailures ends a batch early: that many failures are a store that is down.
	maxFailures = 5
	// retryLookUp is when a poller tries a code again that was not looked up because all senders together send too many unknown
	// ones. After lookUpPatience it gives up: every replica knows the codes of requests that were stored so long ago, and
	// those are free.
	retryLookUp    = time.Second
	lookUpPatience = 2 * time.Second
)
