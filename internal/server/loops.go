package server

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/phoneproof/phoneproof/controllers/callback"
	"github.com/phoneproof/phoneproof/controllers/projectstatus"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/panics"
	"github.com/phoneproof/phoneproof/internal/store/kubernetes"
)

// namedLoop is one controller with its source. run ends with its context; an earlier end is a failure.
type namedLoop struct {
	// name is that of the table in package controllers.
	name string
	run  func(ctx context.Context) error
}

// watchedObjects is the watch of a project's objects; see kubernetes.Store.
type watchedObjects interface {
	Watch(listener func(kubernetes.Change)) (stop func())
	All() []kubernetes.Change
}

// termOptions configure the controllers of a term.
type termOptions struct {
	// Objects are the project's requests; nil if they are in a database. Then every replica claims due requests, with or without
	// the lease.
	Objects watchedObjects
	// Settings subscribes to changes of the settings; see settings.Live. A new retention, or a restored secret, changes what is
	// due, so all requests are queued again.
	Settings func() (changes <-chan struct{}, cancel func())
	// Request outlives the term: an attempt that could not be recorded in one is recorded in the next, and not made again. It is
	// nil if Objects is.
	Request    *request.Controller
	Manual     request.ManualOptions
	Redelivery request.RedeliveryOptions
	Status     projectstatus.Options
}

// newTermLoops returns the loops that the holder of a project's lease runs for one term.
func newTermLoops(o termOptions) []namedLoop {
	loops := []namedLoop{
		{"redelivery", func(ctx context.Context) error { return request.NewRedeliveryController(o.Redelivery).Run(ctx) }},
		{"conditions", func(ctx context.Context) error { return projectstatus.New(o.Status).Run(ctx) }},
	}
	if o.Objects == nil {
		return loops
	}
	return append(loops, []namedLoop{
		{"lifecycle", func(ctx context.Context) error {
			return o.Request.Run(ctx, newSource(o, func(c kubernetes.Change) (request.Item, bool) {
				return request.Item{ID: c.ID}, c.Kind == kubernetes.KindRequest
			}))
		}},
		{"manual", func(ctx context.Context) error {
			return request.NewManualController(o.Manual).Run(ctx, newSource(o, func(c kubernetes.Change) (string, bool) {
				return c.ID, c.Kind == kubernetes.KindIncomplete || c.Kind == kubernetes.KindMalformed
			}))
		}},
	}...)
}

// channelOptions configure the controllers of the callbacks.
type channelOptions struct {
	WhatsApp callback.Options
	Graph    *whatsapp.Client

	Telegram callback.Options
	BotAPI   *telegram.Client
	// Bot takes the polled updates.
	Bot     *telegram.Channel
	Gateway *telegram.Gateway
}

// newChannelLoops returns new loops for the callbacks: for the term of a lease, with either store, or for a process that needs no lease.
func newChannelLoops(o channelOptions) []namedLoop {
	return []namedLoop{
		{"whatsapp", func(ctx context.Context) error { return callback.NewWhatsApp(o.WhatsApp, o.Graph).Run(ctx) }},
		{"codes", func(ctx context.Context) error { return callback.NewCodes(o.WhatsApp, o.Graph).Run(ctx) }},
		{"gateway", func(ctx context.Context) error { return callback.NewGateway(o.Telegram, o.Gateway).Run(ctx) }},
		{"telegram", func(ctx context.Context) error { return callback.NewTelegram(o.Telegram, o.BotAPI, o.Bot).Run(ctx) }},
	}
}

// runLoops runs loops until ctx ends. If one fails, the others end too.
func runLoops(ctx context.Context, loops []namedLoop) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range loops {
		group.Go(func() error {
			if err := panics.ToError(func() error { return loop.run(ctx) }); err != nil {
				return fmt.Errorf("%s controller: %w", loop.name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// newSource returns the source of a controller over the watch of objects: all objects at first, then each change, and all objects
// again when the settings change. pick selects the items.
func newSource[T comparable](o termOptions, pick func(kubernetes.Change) (T, bool)) source.TypedSource[T] {
	return source.TypedFunc[T](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[T]) error {
		add := func(change kubernetes.Change) {
			if item, ok := pick(change); ok {
				queue.Add(item)
			}
		}
		addAll := func() {
			for _, change := range o.Objects.All() {
				add(change)
			}
		}
		context.AfterFunc(ctx, o.Objects.Watch(add))
		settings, cancel := o.Settings()
		addAll()
		go func() { // a source must not block; this ends with the controller
			defer cancel()
			for {
				select {
				case <-settings:
					addAll()
				case <-ctx.Done():
					return
				}
			}
		}()
		return nil
	})
}
