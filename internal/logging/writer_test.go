package logging_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/phoneproof/phoneproof/internal/logging"
)

// out keeps what is written.
type out struct {
	mu     sync.Mutex
	writes []string
	err    error
}

func (o *out) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	o.writes = append(o.writes, string(p))
	return len(p), nil
}

func (o *out) written() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.writes...)
}

func write(g *WithT, w io.Writer, lines ...string) {
	for _, line := range lines {
		n, err := w.Write([]byte(line))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n).To(Equal(len(line)))
	}
}

func TestWriter_keepsLinesForAMoment(t *testing.T) {
	g, o, c := NewWithT(t), &out{}, clocktesting.NewFakeClock(time.Now())
	w := logging.NewWriter(o, c)
	write(g, w.Later(), "1\n", "2\n")
	c.Step(logging.Hold - 1)
	g.Expect(o.written()).To(BeEmpty())
	write(g, w.Later(), "3\n")
	c.Step(1)
	g.Expect(o.written()).To(Equal([]string{"1\n2\n3\n"}), "the first one's time counts for all")
	g.Expect(c.HasWaiters()).To(BeFalse(), "while nothing waits there is no timer")

	write(g, w.Later(), "4\n")
	c.Step(logging.Hold)
	g.Expect(o.written()).To(HaveLen(2))
}

func TestWriter_writesEverythingBeforeWhatMatters(t *testing.T) {
	g, o, c := NewWithT(t), &out{}, clocktesting.NewFakeClock(time.Now())
	w := logging.NewWriter(o, c)
	write(g, w, "start\n")
	write(g, w.Later(), "1\n", "2\n")
	write(g, w, "broken\n", "end\n")
	g.Expect(o.written()).To(Equal([]string{"start\n", "1\n2\nbroken\n", "end\n"}))
	g.Expect(c.HasWaiters()).To(BeFalse())

	write(g, w.Later(), "3\n")
	g.Expect(w.Flush()).To(Succeed())
	g.Expect(w.Flush()).To(Succeed())
	g.Expect(o.written()).To(HaveLen(4))
}

func TestWriter_keepsNoMoreThanItMay(t *testing.T) {
	g, o := NewWithT(t), &out{}
	w := logging.NewWriter(o, clocktesting.NewFakeClock(time.Now()))
	line := strings.Repeat("x", 1023) + "\n"
	for range 100 {
		write(g, w.Later(), line)
	}
	g.Expect(w.Flush()).To(Succeed())
	g.Expect(o.written()).To(HaveLen(4))
	g.Expect(strings.Join(o.written(), "")).To(Equal(strings.Repeat(line, 100)))

	write(g, w.Later(), strings.Repeat(line, 100))
	g.Expect(w.Flush()).To(Succeed())
	g.Expect(o.written()).To(HaveLen(5), "one that is larger goes too")
}

func TestWriter_goesOnAfterAFailure(t *testing.T) {
	g, o := NewWithT(t), &out{err: errors.New("full")}
	w := logging.NewWriter(o, clocktesting.NewFakeClock(time.Now()))
	write(g, w.Later(), "1\n")
	g.Expect(w.Flush()).To(MatchError("write log: full"))
	o.err = nil
	write(g, w, "2\n")
	g.Expect(o.written()).To(Equal([]string{"2\n"}))
}

func TestWriter_losesNothingAmongMany(t *testing.T) {
	const writers, lines = 8, 2000
	g, o := NewWithT(t), &out{}
	w := logging.NewWriter(o, clock.RealClock{})
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for n := range lines {
				to := w.Later()
				if n%100 == 0 {
					to = w
				}
				if _, err := fmt.Fprintf(to, "%d %d\n", i, n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	g.Expect(w.Flush()).To(Succeed())
	next := make([]int, writers)
	for line := range strings.Lines(strings.Join(o.written(), "")) {
		var i, n int
		_, err := fmt.Sscanf(line, "%d %d\n", &i, &n)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n).To(Equal(next[i]), "in order")
		next[i]++
	}
	g.Expect(next).To(HaveEach(lines))
}
