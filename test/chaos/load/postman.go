package load

import (
	"context"
	"sync"
	"time"
)

// postman does later what is to be done later.
type postman struct {
	tasks chan task
	busy  sync.WaitGroup
}

type task struct {
	at time.Time
	do func(context.Context)
}

func newPostman() *postman { return &postman{tasks: make(chan task, 1024)} }

// after has something done at a time. Whoever calls it must run, so that wait has not begun.
func (p *postman) after(at time.Time, do func(context.Context)) {
	p.busy.Add(1)
	p.tasks <- task{at, do}
}

func (p *postman) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-p.tasks:
			running.Go(func() {
				defer p.busy.Done()
				pause(ctx, time.Until(t.at))
				t.do(ctx)
			})
		}
	}
}

// wait returns when all is done, or ctx has ended.
func (p *postman) wait(ctx context.Context) {
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
