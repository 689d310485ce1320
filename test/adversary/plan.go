package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

// reserve is the part of a run's time for its start and its end.
const reserve = 15 * time.Second

// methods are the messengers, as the API calls them.
func methods() []string { return []string{"WHATSAPP", "TELEGRAM"} }

// newScene returns the scene of a number: of five, each kind of victim has one, and honest users have one. Each kind of victim meets
// each attack by each messenger, and then again with another variant.
func (t *trial) newScene(n int) *scene {
	kinds := victimKinds()
	kind, i := n%(len(kinds)+1), n/(len(kinds)+1)
	if kind == len(kinds) {
		honest := honestKinds()
		return &scene{
			stage: &t.stage, n: n + 1, victim: honest[i%len(honest)], method: methods()[i/len(honest)%len(methods())],
			variant: i / len(honest) / len(methods()),
		}
	}
	all := attacks()
	round := i / len(all)
	return &scene{
		stage: &t.stage, n: n + 1, attack: all[i%len(all)], victim: kinds[kind], method: methods()[round%len(methods())],
		variant: round/len(methods()) + i%len(all),
	}
}

// playAll plays as many scenes as the options ask for.
func (t *trial) playAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kinds := len(victimKinds()) + 1
	count := t.victims
	if count == 0 {
		count = len(attacks()) * len(methods())
	}
	end := time.Now().Add(t.duration - reserve)
	numbers := make(chan int)
	go func() { // ends with the last scene, or ctx
		defer close(numbers)
		for n := 0; n < count*kinds || t.victims == 0 && time.Now().Before(end); n++ {
			select {
			case numbers <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	var (
		playing sync.WaitGroup
		mu      sync.Mutex
		all     error
	)
	play := func(s *scene) {
		if err := s.play(ctx); err != nil {
			cancel() // it proves nothing any more
			mu.Lock()
			defer mu.Unlock()
			all = errors.Join(all, err)
		}
	}
	if t.isLong() && t.options.level == levelSession {
		for n, method := range methods() {
			playing.Go(func() { play(&scene{stage: &t.stage, n: -1 - n, victim: ledger.Late, method: method}) })
		}
	}
	for range t.workers {
		playing.Go(func() {
			for n := range numbers {
				play(t.newScene(n))
			}
		})
	}
	playing.Wait()
	return errors.Join(all, context.Cause(ctx))
}

// isLong reports whether the run lasts until requests expire.
func (t *trial) isLong() bool { return t.victims >= 200 || t.victims == 0 && t.duration >= longRun }
