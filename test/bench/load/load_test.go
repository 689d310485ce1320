package load_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/bench/load"
)

func TestHistogram_quantilesAreThoseOfTheSortedDurations(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for name, next := range map[string]func() time.Duration{
		"a few nanoseconds": func() time.Duration { return time.Duration(chance.Int64N(300)) },
		"milliseconds":      func() time.Duration { return time.Duration(chance.ExpFloat64() * float64(3*time.Millisecond)) },
		"up to years":       func() time.Duration { return time.Duration(chance.Int64() >> chance.IntN(63)) },
		"always the same":   func() time.Duration { return 1234567 },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var whole, half load.Histogram
			var all []time.Duration
			for i := range 10_000 {
				d := next()
				all = append(all, d)
				if i%2 == 0 {
					whole.Record(d)
				} else {
					half.Record(d)
				}
			}
			whole.Add(&half)
			slices.Sort(all)
			g.Expect(whole.Count()).To(BeEquivalentTo(len(all)))
			g.Expect(whole.Max()).To(Equal(all[len(all)-1]))
			for _, share := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
				exact := all[max(int(share*float64(len(all)))-1, 0)]
				found := whole.Quantile(share)
				g.Expect(found).To(BeNumerically(">=", exact), "%v", share)
				g.Expect(float64(found)).To(BeNumerically("<=", float64(exact)*(1+1.0/128)+1), "%v", share)
			}
		})
	}
}

func TestHistogram_empty(t *testing.T) {
	g := NewWithT(t)
	var h load.Histogram
	h.Add(&load.Histogram{})
	g.Expect(h.Count()).To(BeZero())
	g.Expect(h.Quantile(0.99)).To(BeZero())
	g.Expect(h.Mean()).To(BeZero())
	h.Record(-time.Second)
	h.Record(2 * time.Second)
	g.Expect(h.Quantile(0.5)).To(BeZero())
	g.Expect(h.Mean()).To(Equal(time.Second))
}

// newCountingClient returns a client that records the number of each call.
func newCountingClient(do func(n int64) error) (client load.Client, calls func() []int64) {
	var (
		mu   sync.Mutex
		seen []int64
	)
	return func(context.Context) (load.Call, func() error, error) {
			return func(_ context.Context, turn load.Turn) error {
				mu.Lock()
				seen = append(seen, turn.N)
				mu.Unlock()
				return do(turn.N)
			}, nil, nil
		}, func() []int64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Sorted(slices.Values(seen))
		}
}

func TestOpen_chargesAStallToAllRequestsDueMeanwhile(t *testing.T) {
	g := NewWithT(t)
	const stall = 300 * time.Millisecond
	client, _ := newCountingClient(func(n int64) error {
		if n == 0 {
			<-time.After(stall)
		}
		return nil
	})
	r, err := load.Open(t.Context(), 1, 1000, stall, 1, client)
	g.Expect(err).NotTo(HaveOccurred())
	// Every request was due while the first was being answered; the average waited for half of the stall.
	g.Expect(r.Latency.Count()).To(BeNumerically(">", 200))
	g.Expect(r.Latency.Quantile(0.5)).To(BeNumerically(">", stall/10), "a closed loop would have seen next to nothing here")
	g.Expect(r.Latency.Max()).To(BeNumerically(">=", stall))
}

func TestOpen_sendsTheSameScheduleForTheSameSeed(t *testing.T) {
	g := NewWithT(t)
	count := func(seed uint64) int {
		client, calls := newCountingClient(func(int64) error { return nil })
		r, err := load.Open(t.Context(), 4, 2000, 200*time.Millisecond, seed, client)
		g.Expect(err).NotTo(HaveOccurred())
		for i, n := range calls() {
			g.Expect(n).To(BeEquivalentTo(i), "each once")
		}
		g.Expect(r.Took).To(BeNumerically(">", 100*time.Millisecond), "they are not sent before they are due")
		return len(calls())
	}
	first := count(7)
	g.Expect(first).To(BeNumerically("~", 400, 100))
	g.Expect(count(7)).To(Equal(first))
}

func TestClosed_endsWithItsTimeOrItsSupply(t *testing.T) {
	g := NewWithT(t)
	client, calls := newCountingClient(func(n int64) error {
		if n >= 50 {
			return load.ErrDone
		}
		return nil
	})
	r, err := load.Closed(t.Context(), 4, time.Hour, client)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Latency.Count()).To(BeEquivalentTo(50))
	g.Expect(calls()).To(HaveLen(54), "each client makes one more call")

	endless, _ := newCountingClient(func(int64) error { return nil })
	r, err = load.Closed(t.Context(), 2, 20*time.Millisecond, endless)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Took).To(BeNumerically(">=", 20*time.Millisecond))
	g.Expect(r.PerSecond()).To(BeNumerically("~", float64(r.Latency.Count())/r.Took.Seconds(), 1e-6))
}

func TestClosed_beginsOnceItsClientsAreConnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		slow := func(context.Context) (load.Call, func() error, error) {
			<-time.After(3 * time.Second)
			return func(context.Context, load.Turn) error {
				<-time.After(100 * time.Millisecond)
				return nil
			}, nil, nil
		}
		r, err := load.Closed(t.Context(), 2, time.Second, slow)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(r.Took).To(Equal(time.Second))
		g.Expect(r.Latency.Count()).To(BeEquivalentTo(20))
	})
}

func TestRuns_endWithTheFirstFailure(t *testing.T) {
	broken := errors.New("broken")
	for name, run := range map[string]func(load.Client) (load.Result, error){
		"open":   func(c load.Client) (load.Result, error) { return load.Open(t.Context(), 2, 1000, time.Hour/1000, 1, c) },
		"closed": func(c load.Client) (load.Result, error) { return load.Closed(t.Context(), 2, time.Hour, c) },
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := newCountingClient(func(n int64) error {
				if n == 20 {
					return broken
				}
				return nil
			})
			_, err := run(client)
			NewWithT(t).Expect(err).To(MatchError(broken))
		})
	}
	_, err := load.Closed(t.Context(), 1, time.Hour, func(context.Context) (load.Call, func() error, error) { return nil, nil, broken })
	NewWithT(t).Expect(err).To(MatchError(broken))
}

func TestPatient_retriesIfTheServerIsBusy(t *testing.T) {
	g := NewWithT(t)
	busy := &load.StatusError{Status: http.StatusServiceUnavailable}
	client, calls := newCountingClient(func(int64) error { return busy })
	seen := 0
	impatient, _ := newCountingClient(func(n int64) error {
		if seen++; n == 1 {
			return load.ErrDone
		}
		if seen < 3 {
			return busy
		}
		return nil
	})
	r, err := load.Closed(t.Context(), 1, time.Hour, load.Patient(impatient))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Latency.Count()).To(BeEquivalentTo(1), "answered at the third try")

	_, err = load.Closed(t.Context(), 1, time.Hour, client)
	g.Expect(err).To(MatchError(busy), "other clients do not retry")
	g.Expect(calls()).To(HaveLen(1))
}

func TestExpect(t *testing.T) {
	g := NewWithT(t)
	var got atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer key" || string(body) != `{"a":1}` || r.Host != "bench":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.RawQuery == "refuse=1":
			http.Error(w, "no", http.StatusTeapot)
		case r.URL.RawQuery == "long=1":
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000)) // chunked: without a Content-Length
		default:
			got.Add(1)
			_, _ = io.WriteString(w, "yes")
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	send := func(path string) load.Client {
		request := load.Request(http.MethodPost, path, http.Header{"Authorization": {"Bearer key"}}, []byte(`{"a":1}`))
		return load.Expect(address, func(turn load.Turn) ([]byte, error) {
			if turn.N == 100 {
				return nil, load.ErrDone
			}
			return request, nil
		})
	}
	_, err := load.Closed(t.Context(), 1, time.Hour, send("/"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Load()).To(BeEquivalentTo(100), "on one connection")
	_, err = load.Closed(t.Context(), 2, time.Hour, send("/?refuse=1"))
	g.Expect(err).To(MatchError(ContainSubstring("the answer is 418: no")))
	_, err = load.Closed(t.Context(), 1, time.Hour, send("/?long=1"))
	g.Expect(err).To(MatchError(ContainSubstring("answer has no Content-Length")))
	server.Close()
	_, err = load.Closed(t.Context(), 1, time.Hour, send("/"))
	g.Expect(err).To(MatchError(ContainSubstring("connect a client")))
}
