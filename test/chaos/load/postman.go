package load

import (
	"context"
	"sync"
	"time"
)

// scheduler runs tasks at given times.
type scheduler struct {
	tasks chan task
	busy  sync.WaitGroup
}

type task struct {
	at time.Time
	do func(context.Context)
}

func newScheduler() *scheduler { return &scheduler{tasks: make(chan task, 1024)} }

// runAt runs do at a time. It must be called from a running worker, so that waitAll has not begun.
func (p *scheduler) runAt(at time.Time, do func(context.Context)) {
	p.busy.Add(1)
	p.tasks <- task{at, do}
}

func (p *scheduler) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-p.tasks:
			running.Go(func() {
				defer p.busy.Done()
				sleep(ctx, time.Until(t.at))
				t.do(ctx)
			})
		}
	}
}

// waitAll returns when all tasks are done or ctx has ended.
func (p *scheduler) waitAll(ctx context.Context) {
	done := make(chan struct{})
	go func() { // ends when the tasks do, and they end with ctx
		p.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
