package callback

import (
	"time"

	"github.com/phoneproof/phoneproof/controllers"
)

const (
	// checkInterval is how often a platform is checked while all is well. Each check takes two or three small calls.
	checkInterval = 15 * time.Minute
	// recheckDelay is the time until the check after a change: is the callback still there, do deliveries succeed?
	recheckDelay = time.Minute
	// firstRetry is the delay after the first failure; each failure in a row doubles it, up to maxRetry.
	firstRetry = 5 * time.Second
	maxRetry   = 10 * time.Minute
	// patience is how many temporary failures in a row are not reported yet: about a minute.
	patience = 4
	// maxRemovals is how often the removal of an obsolete callback is tried.
	maxRemovals = 5
	// minGap is the least time between two checks for changes of the settings, pollGap for changes of the poller's state.
	minGap  = time.Second
	pollGap = 5 * time.Second
)

// retryAfter returns how long to wait after that many failures in a row.
func retryAfter(failures int) time.Duration {
	return controllers.Backoff(failures, firstRetry, maxRetry)
}
