package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

const (
	// defaultTimeout bounds each wait: for a server to take a manual request up, for the lease holder, and for the receiver.
	defaultTimeout = time.Minute
	// searchedEvents is how many of the newest requests --failed and --due look at.
	searchedEvents = 100_000
)

// redelivery holds the flags of redeliver.
type redelivery struct {
	env     *plugin.Env
	key     keyFlags
	failed  bool
	due     bool
	wait    bool
	timeout time.Duration
}

// NewRedeliverCommand returns the command redeliver, which sends events again.
func NewRedeliverCommand(env *plugin.Env) *cobra.Command {
	c := &redelivery{env: env}
	cmd := &cobra.Command{
		Use:   "redeliver NAME ID... | NAME [--failed] [--due]",
		Short: "Send the events of requests once more",
		Long: `Send the event of how a request ended once more, and say what became of it. --failed takes all requests whose event was given up,
because ten attempts failed or the receiver answered 410, and --due all whose event waits for its next attempt, one after another.
An event that waits is not given up earlier for it: the attempt is none of its ten.

Without a key it sets the annotation phoneproof.dev/redeliver of the project, which the holder of its lease carries out, with any storage.
With --api-key or --api-key-file it calls redeliver at a pod, with the scope Redeliver. To find the requests of --failed and --due
and to --wait it reads them: VerificationRequests, or with storage PostgreSQL the API, with a key that has the scope Read.`,
		Example: `  kubectl phoneproof redeliver shop vr4soqontb52m5bmeyx7bop4b4 --wait

  # after the receiver was repaired: all that were given up, and all that wait
  kubectl phoneproof redeliver shop --failed --due`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("name a project")
			case c.lists() && len(args) > 1:
				return errors.New("--failed and --due find the requests themselves: leave out the ids")
			case !c.lists() && len(args) == 1:
				return errors.New("name requests by their ids, or use --failed or --due")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1:]) },
	}
	c.key.AddTo(cmd)
	cmd.Flags().BoolVar(&c.failed, "failed", false, "take all requests whose event was given up: ten attempts failed, or the receiver answered 410")
	cmd.Flags().BoolVar(&c.due, "due", false, "take all requests that have ended and whose event waits for its next attempt")
	cmd.Flags().BoolVar(&c.wait, "wait", false, "wait until the receiver has taken each event, or the next attempt has failed")
	cmd.Flags().DurationVar(&c.timeout, "timeout", defaultTimeout, "how long to wait for each step")
	return plugin.DeclareRights(cmd, append([]plugin.Right{
		{Verbs: "get,patch", Resource: plugin.ResourceProjects},
		{Verbs: "list", Resource: plugin.ResourceEvents, For: "why an event is not sent"},
		{Verbs: "get", Resource: plugin.ResourceRequests, For: "--wait, with storage Kubernetes"},
		{Verbs: "list", Resource: plugin.ResourceRequests, For: "--failed and --due, with storage Kubernetes"},
	}, plugin.RightsForAPI("with a key")...)...)
}

// lists reports whether the command finds the requests itself.
func (c *redelivery) lists() bool { return c.failed || c.due }

// errRefused makes the exit code of a command that could not send each event.
var errRefused = errors.New("not every event was sent")

func (c *redelivery) run(ctx context.Context, name string, ids []string) error {
	opened, err := plugin.Open(ctx, c.env.Flags, name)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	if opened.Project.Spec.Webhook == nil {
		return fmt.Errorf("project %s has no webhook, so there is nowhere to send an event", name)
	}
	var source requestSource
	if c.lists() || c.wait {
		reading := c.key
		reading.Scope = verifyv1.ScopeRead
		if source, err = openSource(ctx, c.env, opened, &reading); err != nil {
			return fmt.Errorf("read requests: %w", err)
		}
	}
	if c.lists() {
		var waiting int
		if ids, waiting, err = c.findRequests(ctx, source); err != nil {
			return err
		}
		if len(ids) == 0 && waiting > 0 {
			return c.env.Print("No event was given up. Waiting for their next attempt: %d, which --due sends now.", waiting)
		}
		if len(ids) == 0 {
			return c.env.Print("There is no such event.")
		}
	}
	send, err := c.newSender(ctx, opened)
	if err != nil {
		return err
	}
	var refused bool
	for _, id := range ids {
		done, err := c.redeliver(ctx, send, source, id)
		if err != nil {
			return fmt.Errorf("request %s: %w", id, err)
		}
		refused = refused || !done
	}
	if refused {
		return errRefused
	}
	return nil
}

// findRequests returns the ids of the requests whose event was given up or waits, as the flags say, oldest first, and how many wait.
func (c *redelivery) findRequests(ctx context.Context, source requestSource) (ids []string, waiting int, err error) {
	list, err := source.List(ctx, Query{}, searchedEvents)
	if err != nil {
		return nil, 0, fmt.Errorf("find events: %w", err)
	}
	for _, request := range slices.Backward(list) {
		d := request.Delivery
		waits := d != nil && d.State == deliveryWaiting && request.Status != statusPending && d.NextAttemptAt.After(time.Now())
		if waits {
			waiting++
		}
		if c.due && waits || c.failed && d != nil && d.State == deliveryExhausted {
			ids = append(ids, request.RequestID)
		}
	}
	return ids, waiting, nil
}

// sender makes the event of a request due. It reports whether that was granted, and in words what became of it.
type sender func(ctx context.Context, id string) (granted bool, message string, err error)

func (c *redelivery) newSender(ctx context.Context, p *plugin.Client) (sender, error) {
	if !c.key.Named() {
		return func(ctx context.Context, id string) (bool, string, error) { return annotate(ctx, p, id, c.timeout) }, nil
	}
	c.key.Scope = verifyv1.ScopeRedeliver
	api, err := connectAPI(ctx, c.env, p, &c.key)
	if err != nil {
		return nil, fmt.Errorf("redeliver: %w", err)
	}
	return func(ctx context.Context, id string) (bool, string, error) {
		_, err := api.Redeliver(ctx, id)
		if answer, ok := errors.AsType[*apiError](err); ok && (answer.Code == "no_event" || answer.Code == "request_not_found") {
			return false, answer.Message, nil
		}
		if err != nil {
			return false, "", fmt.Errorf("redeliver: %w", err)
		}
		return true, "the event is sent once more", nil
	}, nil
}

// redeliver sends one event, and reports whether that was done.
func (c *redelivery) redeliver(ctx context.Context, send sender, source requestSource, id string) (bool, error) {
	before := c.lastAttempt(ctx, source, id)
	granted, message, err := send(ctx, id)
	if err != nil {
		return false, err
	}
	if err := c.env.Print("%s: %s", id, message); err != nil {
		return false, err
	}
	if !granted || !c.wait {
		return granted, nil
	}
	return c.awaitDelivery(ctx, source, id, before)
}
