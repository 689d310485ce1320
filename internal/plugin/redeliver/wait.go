package redeliver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/phoneproof/phoneproof/internal/plugin/podapi"
	"github.com/phoneproof/phoneproof/internal/plugin/requests"
)

// awaitDelivery waits until the receiver has taken the event, or an attempt after the redelivery has failed. It reports whether the event
// was taken.
func (c *command) awaitDelivery(ctx context.Context, source requests.Source, id string) (bool, error) {
	var last podapi.Request
	err := wait.PollUntilContextTimeout(ctx, pollInterval, c.timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if last, err = source.Get(ctx, id); err != nil {
			return false, err //nolint:wrapcheck // it says what failed
		}
		d := last.Delivery
		// A redelivery that was granted begins with no attempts, or goes on with those of a schedule that is under way.
		return d != nil && (d.State != podapi.DeliveryPending || failedSince(d, last.Attempts)), nil
	})
	switch {
	case wait.Interrupted(err):
		return false, fmt.Errorf("the event of request %s was not sent within %s", id, c.timeout)
	case err != nil:
		return false, err //nolint:wrapcheck // it says what failed
	}
	return last.Delivery.State == podapi.DeliveryDelivered, c.env.Print("%s: %s", id, describeEnd(&last)) //nolint:wrapcheck // it says what failed
}

// failedSince reports whether an attempt was made and another one is planned.
func failedSince(d *podapi.Delivery, attempts []podapi.Attempt) bool {
	return d.Attempts > 0 && len(attempts) > 0 && d.NextAttemptAt.After(attempts[0].At)
}

func describeEnd(r *podapi.Request) string {
	if r.Delivery.State == podapi.DeliveryDelivered {
		return "delivered"
	}
	reason := "no reason is known"
	if len(r.Attempts) > 0 {
		reason = r.Attempts[0].Reason
	}
	if r.Delivery.State == podapi.DeliveryExhausted {
		return "given up: " + reason
	}
	return "the attempt failed: " + reason + "; the next one is at " + r.Delivery.NextAttemptAt.Format("15:04:05 MST")
}
