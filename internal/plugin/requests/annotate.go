package requests

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

const (
	outcomeInterval = 300 * time.Millisecond
	// eventTimeout is how long the Event of an outcome may take after the status has it.
	eventTimeout = 10 * time.Second
)

// annotate asks the holder of the lease to send an event, and returns what it answered.
func annotate(ctx context.Context, p *plugin.Client, id string, timeout time.Duration) (granted bool, message string, err error) {
	if len(validation.IsDNS1123Subdomain(id)) > 0 { // the holder would record the annotation as malformed, without the id
		return false, "", errors.New("this is not the id of a request")
	}
	mark := id + "/" + rand.Text()
	before := p.Project.DeepCopy()
	if p.Project.Annotations == nil {
		p.Project.Annotations = map[string]string{}
	}
	p.Project.Annotations[verifyv1.RedeliverAnnotation] = mark
	if err := p.Patch(ctx, p.Project, client.MergeFrom(before)); err != nil {
		return false, "", fmt.Errorf("annotate project: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, outcomeInterval, timeout, true, func(ctx context.Context) (bool, error) {
		if err := p.Reload(ctx); err != nil {
			return false, err
		}
		return p.Project.Status.ObservedRedeliver == mark, nil
	})
	if wait.Interrupted(err) {
		return false, "", fmt.Errorf("no holder of the lease has carried it out within %s; kubectl phoneproof status %s says why",
			timeout, p.Project.Name)
	}
	if err != nil {
		return false, "", fmt.Errorf("wait for the redelivery: %w", err)
	}
	return readOutcome(ctx, p, mark)
}

// readOutcome returns what the Event of the redelivery says.
func readOutcome(ctx context.Context, p *plugin.Client, mark string) (granted bool, message string, err error) {
	var outcome *eventsv1.Event
	err = wait.PollUntilContextTimeout(ctx, outcomeInterval, eventTimeout, true, func(ctx context.Context) (bool, error) {
		var list eventsv1.EventList
		if err := p.List(ctx, &list, client.InNamespace(p.Project.Namespace), client.MatchingFields{
			"regarding.uid": string(p.Project.UID),
		}); err != nil {
			return false, fmt.Errorf("list events: %w", err)
		}
		outcome = findOutcome(list.Items, mark)
		return outcome != nil, nil
	})
	switch {
	case err == nil:
		return outcome.Reason == reasonScheduled, plugin.Clean(outcome.Note), nil
	case apierrors.IsForbidden(err):
		return false, "carried out or refused; the Event that says which may not be read: it needs list " + plugin.ResourceEvents, nil
	case wait.Interrupted(err):
		return false, "carried out or refused; no Event says which of the two", nil
	default:
		return false, "", fmt.Errorf("wait for the redelivery's Event: %w", err)
	}
}

// Reasons of the Events of a redelivery.
const (
	reasonScheduled = "RedeliveryScheduled"
	reasonRefused   = "RedeliveryRefused"
)

// findOutcome returns the Event of the redelivery with that mark; nil if there is none yet. Its time would not do: an Event is stored
// later than the status, and the Event of a refusal may not name the request.
func findOutcome(list []eventsv1.Event, mark string) *eventsv1.Event {
	for i := range list {
		e := &list[i]
		if e.Annotations[verifyv1.RedeliverAnnotation] == mark && (e.Reason == reasonScheduled || e.Reason == reasonRefused) {
			return e
		}
	}
	return nil
}
