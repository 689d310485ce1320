package callback

import (
	"math/rand/v2"
	"time"
)

const (
	// steadyEvery is how often a platform is asked while all is well. Each look costs it two small calls.
	steadyEvery = 15 * time.Minute
	// soonAfter is when it is asked again after something was changed there: did it stay, do deliveries succeed?
	soonAfter = time.Minute
	// firstRetry is how soon it is asked again when something is wrong; each time in a row doubles that, up to maxRetry.
	firstRetry = 5 * time.Second
	maxRetry   = 10 * time.Minute
	// patience is how many failures in a row that may pass by themselves are not told: about a minute.
	patience = 4
	// maxFarewells is how often the removal of a callback that is not wanted any more is tried.
	maxFarewells = 5
	// minGap is the least time between two looks for changes of the settings, newsGap between those for a poller's news.
	minGap  = time.Second
	newsGap = 5 * time.Second
)

// retryAfter returns how long to wait after that many failures in a row.
func retryAfter(failures int) time.Duration {
	return jittered(min(firstRetry<<min(max(failures-1, 0), 10), maxRetry))
}

// jittered spreads what many projects would do at the same time. It never makes a wait longer.
func jittered(d time.Duration) time.Duration {
	return d - time.Duration(rand.Float64()*float64(d)/5) //nolint:gosec // no secret
}
