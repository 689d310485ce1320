package requests

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// lastAttempt returns when the last attempt was made before a redelivery; zero if there was none, or no such request is stored.
func (c *redelivery) lastAttempt(ctx context.Context, source requestSource, id string) time.Time {
	if !c.wait {
		return time.Time{}
	}
	request, err := source.Get(ctx, id)
	if err != nil || len(request.Attempts) == 0 { // the redelivery itself reports what is wrong
		return time.Time{}
	}
	return request.Attempts[0].At
}

// awaitDelivery waits until an attempt was made after the one of before. It reports whether the receiver took the event.
func (c *redelivery) awaitDelivery(ctx context.Context, source requestSource, id string, before time.Time) (bool, error) {
	var last Request
	err := wait.PollUntilContextTimeout(ctx, outcomeInterval, c.timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if last, err = source.Get(ctx, id); err != nil {
			return false, err
		}
		return last.Delivery != nil && len(last.Attempts) > 0 && !last.Attempts[0].At.Equal(before) && !isFollowed(&last), nil
	})
	switch {
	case wait.Interrupted(err):
		return false, fmt.Errorf("its event was not sent within %s", c.timeout)
	case err != nil:
		return false, fmt.Errorf("wait for the attempt: %w", err)
	}
	return last.Delivery.State == deliveryDelivered, c.env.Print("%s: %s", id, describeEnd(&last))
}

// isFollowed reports whether the redelivery follows at once: the last attempt was under way when it was asked for.
func isFollowed(r *Request) bool {
	return r.Delivery.State == deliveryWaiting && !r.Delivery.NextAttemptAt.After(r.Attempts[0].At)
}

// describeEnd says what became of the last attempt.
func describeEnd(r *Request) string {
	switch reason := r.Attempts[0].Reason; r.Delivery.State {
	case deliveryDelivered:
		return "delivered"
	case deliveryExhausted:
		return "given up: " + reason
	default:
		return "the attempt failed: " + reason + "; the next one is at " + r.Delivery.NextAttemptAt.Format(time.RFC3339)
	}
}
