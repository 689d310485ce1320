package whatsapp

import "time"

// Every limit on bytes, time and counts of this package.
const (
	// maxBodyBytes bounds a webhook: Meta's payloads have up to 3 MB ("Webhooks", cloud-api/webhooks), which may
	// be 3,000,000 or 3 MiB.
	maxBodyBytes = 3<<20 + 64<<10

	// freeBodyBytes is what every request may hold without asking; nearly all have less. What is larger shares
	// sharedBodyBytes, so that strangers who send large bodies cost no more memory than that.
	freeBodyBytes   = 2 << 10
	sharedBodyBytes = 16 << 20
	// minBodyRate is how many bytes of a body must arrive per second, after bodyGrace; bodyTimeout bounds it as a whole.
	minBodyRate = 32 << 10
	bodyGrace   = 2 * time.Second
	bodyTimeout = 10 * time.Second

	// maxChallengeBytes bounds what the handshake repeats; Meta sends a number of about ten digits.
	maxChallengeBytes = 256

	// senders is how many senders' messages of one request are worked on at once. Those of one sender stay in order.
	senders = 16
	// messageTimeout bounds the store's part of one message, batchTimeout that of all: a thousand messages of 100 ms each
	// fit. What is left over then is delivered again by Meta, and finds the rest done.
	messageTimeout = 1500 * time.Millisecond
	batchTimeout   = 10 * time.Second
	// maxFailures ends a batch early: that many failures are a store that is down, not a message that is odd.
	maxFailures = 2 * senders
	// retryAfter goes to Meta with a 503; Meta has a schedule of its own.
	retryAfter = "5"

	// promptTimeout bounds the sending of a prompt, which the answer waits for.
	promptTimeout = 4 * time.Second
	// promptPause is how long a prompt that was sent stands for the same one: a copy of a message sends no second one.
	promptPause = 30 * time.Second
	// maxPrompted bounds the memory of such prompts.
	maxPrompted = 4096

	// echoPause is how long a number that was asked by an echo is not asked again.
	echoPause = 24 * time.Hour
	// maxEchoed bounds the memory of that.
	maxEchoed = 8192

	// maxStatuses bounds the memory of messages that were counted by their statuses, statusMemory is how long each counts once: Meta
	// repeats for 7 days, and a message may be read long after it was delivered.
	maxStatuses  = 8192
	statusMemory = 30 * 24 * time.Hour

	// clientTimeout bounds a call of the Graph API whose caller set no shorter time.
	clientTimeout = 10 * time.Second
	// maxAnswerBytes bounds what is read of its answer.
	maxAnswerBytes = 64 << 10
	// maxRetryAfter bounds the wait that Meta asks for: its limits count by the hour.
	maxRetryAfter = time.Hour
	// MaxCallbackBytes bounds a callback URL ("Webhook overrides": at most 200 characters).
	MaxCallbackBytes = 200
	// maxTextRunes and maxPromptRunes bound a text message and the body of an interactive one (Cloud API, "Text messages",
	// "Interactive messages").
	maxTextRunes   = 4096
	maxPromptRunes = 1024
)
