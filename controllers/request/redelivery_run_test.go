package request

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
)

// inRedeliveryBubble runs the loop with a fake clock. The loop is blocked after synctest.Wait, so a test may read what it wrote
// without locks.
func inRedeliveryBubble(t *testing.T, test func(w *annotatedProject, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newAnnotatedProject(t)
		w.createDelivered("a")
		w.createDelivered("b")
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

// advanceTime lets the loop run for that long.
func advanceTime(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestRun_carriesOutEachRedelivery(t *testing.T) {
	inRedeliveryBubble(t, func(w *annotatedProject, _ func()) {
		w.Expect(w.events).To(BeEmpty())
		w.projects.annotate("a/1")
		advanceTime(redeliveryMinGap)
		w.Expect(w.isDue("a")).To(BeTrue())
		w.projects.annotate("b/1")
		advanceTime(redeliveryMinGap)
		w.Expect(w.isDue("b")).To(BeTrue())
		w.Expect(w.observed).To(Equal([]string{"a/1", "b/1"}))
	})
}

func TestRun_carriesOutAnOlderRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAnnotatedProject(t)
		w.createDelivered("a")
		w.projects.annotate("a/1")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.controller.Run(ctx) }()
		synctest.Wait()
		w.Expect(w.isDue("a")).To(BeTrue())
		stop()
		w.Expect(<-ended).To(Succeed())
	})
}

func TestRun_atMostOneASecond(t *testing.T) {
	inRedeliveryBubble(t, func(w *annotatedProject, _ func()) {
		const seconds = 20
		for range 100 * seconds {
			w.projects.edit(func(p *verifyv1.VerificationProject) {
				p.Annotations = map[string]string{verifyv1.RedeliverAnnotation: "a/" + time.Now().Format(time.RFC3339Nano)}
			})
			advanceTime(time.Second / 100)
		}
		w.Expect(len(w.events)).To(BeNumerically("~", seconds, 1))
	})
}

func TestRun_triesAgainWhileTheStoreIsDown(t *testing.T) {
	inRedeliveryBubble(t, func(w *annotatedProject, _ func()) {
		w.backend.Fail(errors.New("broken"))
		w.projects.annotate("a/1")
		advanceTime(10 * time.Minute)
		w.Expect(w.events).To(BeEmpty())
		w.backend.Fail(nil)
		advanceTime(2 * controllers.MaxBackoff)
		w.Expect(w.isDue("a")).To(BeTrue())
	})
}

func TestRun_redeliveryIsWithdrawnMeanwhile(t *testing.T) {
	inRedeliveryBubble(t, func(w *annotatedProject, _ func()) {
		w.backend.Fail(errors.New("broken"))
		w.projects.annotate("a/1")
		advanceTime(time.Minute)
		w.projects.annotate("")
		w.backend.Fail(nil)
		advanceTime(2 * controllers.MaxBackoff)
		w.Expect(w.isDue("a")).To(BeFalse())
		w.Expect(w.events).To(BeEmpty())
	})
}

func TestRun_endsAtOnce(t *testing.T) {
	for name, before := range map[string]func(*annotatedProject){
		"waiting for a change": func(*annotatedProject) {},
		"pausing after one":    func(w *annotatedProject) { w.projects.annotate("a/1") },
		"waiting for a store": func(w *annotatedProject) {
			w.backend.Fail(errors.New("broken"))
			w.projects.annotate("a/1")
			advanceTime(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRedeliveryBubble(t, func(w *annotatedProject, stop func()) {
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
