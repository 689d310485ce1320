// Package controllers lists every control loop of PhoneProof, by folder:
//
//	folder         loop           moves                              in       while
//	project        (operator)     projects, to running APIs          operator the operator's lease is held
//	request        lifecycle      stored requests, to their end      serve    the project's lease is held; on every replica
//	                                                                          if the store hands out claims (memory, PostgreSQL)
//	request        manual         those created with kubectl, until  serve    the project's lease is held, with the
//	                              they are like any other                     Kubernetes store
//	request        redelivery     the project's annotation           serve    the project's lease is held
//	callback       whatsapp,      the callbacks at the messengers,   serve    the project's lease is held; always, without
//	               telegram       and Telegram's updates                      a cluster
//	projectstatus  conditions     the project's status, as far as    serve    the project's lease is held
//	                              serve writes it
//
// A term of a lease begins with new controllers and ends with them, so none keeps what another leader may have changed.
package controllers

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

// Loop is one controller with its source. Run ends with its context; an earlier end is a failure.
type Loop struct {
	// Name is that of the table above.
	Name string
	Run  func(ctx context.Context) error
}

// Objects is the watch of a project's objects; see kubernetes.Store.
type Objects interface {
	Watch(listener func(kubernetes.Change)) (stop func())
	All() []kubernetes.Change
}

// TermOptions configure the controllers of a term.
type TermOptions struct {
	// Objects are the project's requests; nil if they are in a database. Then every replica claims due requests, with or without
	// the lease.
	Objects Objects
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

// Term returns the loops that the holder of a project's lease runs for one term.
func Term(o TermOptions) []Loop {
	loops := []Loop{
		{"redelivery", func(ctx context.Context) error { return request.NewRedeliveryController(o.Redelivery).Run(ctx) }},
		{"conditions", func(ctx context.Context) error { return projectstatus.New(o.Status).Run(ctx) }},
	}
	if o.Objects == nil {
		return loops
	}
	return append(loops, []Loop{
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

// ChannelOptions configure the controllers of the callbacks.
type ChannelOptions struct {
	WhatsApp callback.Options
	Graph    *whatsapp.Client

	Telegram callback.Options
	BotAPI   *telegram.Client
	// Bot takes the polled updates.
	Bot *telegram.Channel
}

// Channels returns new loops for the callbacks: for the term of a lease, with either store, or for a process that needs no lease.
func Channels(o ChannelOptions) []Loop {
	return []Loop{
		{"whatsapp", func(ctx context.Context) error { return callback.NewWhatsApp(o.WhatsApp, o.Graph).Run(ctx) }},
		{"telegram", func(ctx context.Context) error { return callback.NewTelegram(o.Telegram, o.BotAPI, o.Bot).Run(ctx) }},
	}
}

// Run runs loops until ctx ends. If one fails, the others end too.
func Run(ctx context.Context, loops []Loop) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range loops {
		group.Go(func() error {
			if err := panics.ToError(func() error { return loop.Run(ctx) }); err != nil {
				return fmt.Errorf("%s controller: %w", loop.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// newSource returns the source of a controller over the watch of objects: all objects at first, then each change, and all objects
// again when the settings change. pick selects the items.
func newSource[T comparable](o TermOptions, pick func(kubernetes.Change) (T, bool)) source.TypedSource[T] {
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
