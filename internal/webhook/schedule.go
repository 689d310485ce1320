package webhook

import "time"

// schedule holds the wait before each attempt; the first is due at once. Its ten attempts span a little more than three
// days, so that a receiver that breaks on a Friday evening gets its events on Monday.
//
//nolint:gochecknoglobals // a constant, which Go has no arrays of
var schedule = [...]time.Duration{
	0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
	5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is how many attempts an event gets.
const MaxAttempts = len(schedule)

const (
	// jitterShare is the maximum share of a wait that jitter adds to it, so that events that failed together are not
	// retried together.
	jitterShare = 0.2
	// usualRateLimit is the wait that most rate limiters ask for. It is granted if twice the schedule's own wait is
	// less.
	usualRateLimit = time.Minute
)

// NextAttempt returns when to try again after made attempts, the last of them at now. It is zero when the schedule is
// exhausted.
//
// retryAfter is the wait that the receiver asked for, or zero. It is granted between the schedule's own wait and twice
// that (or a minute, if that is more): a receiver can neither speed up the schedule nor delay its events for years. jitter
// returns numbers in [0, 1), as rand.Float64 does; it adds up to a fifth of the schedule's wait, so no attempt is earlier
// than scheduled or granted.
func NextAttempt(made int, now time.Time, retryAfter time.Duration, jitter func() float64) time.Time {
	if made >= MaxAttempts {
		return time.Time{}
	}
	base := schedule[max(0, made)]
	if base == 0 {
		return now
	}
	wait := max(base, grantedWait(base, retryAfter))
	return now.Add(wait + time.Duration(jitterShare*jitter()*float64(base)))
}

// grantedWait returns how much of the wait that a receiver asked for is granted where the schedule's is base.
func grantedWait(base, retryAfter time.Duration) time.Duration {
	return min(retryAfter, max(2*base, usualRateLimit))
}
