package request

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// inRedeliveryBubble runs the loop by a clock of its own. The loop stands still after synctest.Wait, so a test may look at what it
// wrote without locks.
func inRedeliveryBubble(t *testing.T, test func(w *redeliveryWorld, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newRedeliveryWorld(t)
		w.delivered("a")
		w.delivered("b")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.controller.Run(ctx) }()
		synctest.Wait()
		test(w, stop)
		stop()
		w.Expect(<-ended).To(Succeed())
		w.Expect(w.projects.ended).To(Equal(1), "the subscription ends with the loop")
	})
}

// after lets that much time pass for the loop.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRun_carriesOutEachWishAsItComes(t *testing.T) {
	inRedeliveryBubble(t, func(w *redeliveryWorld, _ func()) {
		w.Expect(w.told).To(BeEmpty())
		w.projects.wish("a/1")
		after(redeliveryMinGap)
		w.Expect(w.due("a")).To(BeTrue())
		w.projects.wish("b/1")
		after(redeliveryMinGap)
		w.Expect(w.due("b")).To(BeTrue())
		w.Expect(w.observed).To(Equal([]string{"a/1", "b/1"}))
	})
}

func TestRun_takesUpWhatWasWishedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRedeliveryWorld(t)
		w.delivered("a")
		w.projects.wish("a/1")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.controller.Run(ctx) }()
		synctest.Wait()
		w.Expect(w.due("a")).To(BeTrue())
		stop()
		w.Expect(<-ended).To(Succeed())
	})
}

func TestRun_atMostOneASecond(t *testing.T) {
	inRedeliveryBubble(t, func(w *redeliveryWorld, _ func()) {
		const seconds = 20
		for range 100 * seconds {
			w.projects.edit(func(p *verifyv1.VerificationProject) {
				p.Annotations = map[string]string{verifyv1.RedeliverAnnotation: "a/" + time.Now().Format(time.RFC3339Nano)}
			})
			after(time.Second / 100)
		}
		w.Expect(len(w.told)).To(BeNumerically("~", seconds, 1))
	})
}

func TestRun_triesAgainWhileTheStoreIsDown(t *testing.T) {
	inRedeliveryBubble(t, func(w *redeliveryWorld, _ func()) {
		w.backend.Fail(errors.New("broken"))
		w.projects.wish("a/1")
		after(10 * time.Minute)
		w.Expect(w.told).To(BeEmpty())
		w.backend.Fail(nil)
		after(2 * redeliveryMaxGap)
		w.Expect(w.due("a")).To(BeTrue())
	})
}

func TestRun_aWishThatIsWithdrawnMeanwhile(t *testing.T) {
	inRedeliveryBubble(t, func(w *redeliveryWorld, _ func()) {
		w.backend.Fail(errors.New("broken"))
		w.projects.wish("a/1")
		after(time.Minute)
		w.projects.wish("")
		w.backend.Fail(nil)
		after(2 * redeliveryMaxGap)
		w.Expect(w.due("a")).To(BeFalse())
		w.Expect(w.told).To(BeEmpty())
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, before := range map[string]func(*redeliveryWorld){
		"waiting for a change": func(*redeliveryWorld) {},
		"pausing after one":    func(w *redeliveryWorld) { w.projects.wish("a/1") },
		"waiting for a store": func(w *redeliveryWorld) {
			w.backend.Fail(errors.New("broken"))
			w.projects.wish("a/1")
			after(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRedeliveryBubble(t, func(w *redeliveryWorld, stop func()) {
				before(w)
				synctest.Wait()
				began := time.Now()
				stop()
				synctest.Wait()
				w.Expect(time.Now()).To(Equal(began))
			})
		})
	}
}
