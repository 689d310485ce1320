package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestStoreClock(t *testing.T) {
	type word struct {
		ahead      time.Duration // what the answer tells, from the machine's time when it was asked
		took       time.Duration
		resolution time.Duration
		want       time.Duration // the offset after it
	}
	for name, words := range map[string][]word{
		"a machine that is right":               {{ahead: 0, want: 0}},
		"a little off is right":                 {{ahead: time.Second, want: 0}, {ahead: -time.Second, want: 0}},
		"an hour behind":                        {{ahead: time.Hour, want: time.Hour}},
		"an hour ahead":                         {{ahead: -time.Hour, want: -time.Hour}},
		"the middle of what is possible":        {{ahead: time.Hour, took: 2 * time.Second, want: time.Hour - time.Second}},
		"a whole second is any moment of it":    {{ahead: -1900 * time.Millisecond, resolution: time.Second, want: 0}},
		"little more is off":                    {{ahead: -2100 * time.Millisecond, resolution: time.Second, want: -1600 * time.Millisecond}},
		"an answer that took long tells little": {{ahead: 10 * time.Second, took: time.Minute, want: 0}},
		"it stays while it fits":                {{ahead: time.Hour, want: time.Hour}, {ahead: time.Hour + 900*time.Millisecond, want: time.Hour}},
		"it follows":                            {{ahead: time.Hour, want: time.Hour}, {ahead: time.Hour + 3*time.Second, want: time.Hour + 3*time.Second}},
		"a machine that was put right":          {{ahead: time.Hour, want: time.Hour}, {ahead: 100 * time.Millisecond, want: 0}},
		"a machine that is set back meanwhile":  {{ahead: 0, took: -time.Hour, want: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			machine := clocktesting.NewFakeClock(noon)
			c := newStoreClock(machine, funcr.New(func(string, string) {}, funcr.Options{}))
			for _, w := range words {
				asked := machine.Now()
				told := c.beginMeasurement()
				machine.SetTime(asked.Add(w.took))
				told(asked.Add(w.ahead), w.resolution)
				g.Expect(c.Offset()).To(Equal(w.want))
				g.Expect(c.Now()).To(Equal(machine.Now().Add(w.want)))
				g.Expect(c.Since(c.Now().Add(-time.Minute))).To(Equal(time.Minute))
			}
		})
	}
}

func TestStoreClock_logsOnceAMinute(t *testing.T) {
	g := NewWithT(t)
	var lines []string
	machine := clocktesting.NewFakeClock(noon)
	c := newStoreClock(machine, funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	for i := range 10 {
		c.beginMeasurement()(machine.Now().Add(time.Duration(i+1)*time.Hour), 0)
	}
	g.Expect(lines).To(ConsistOf(ContainSubstring(`"offset"="1h0m0s"`)))
	machine.Step(time.Minute)
	c.beginMeasurement()(machine.Now(), 0)
	g.Expect(lines).To(HaveLen(2))
	machine.Step(time.Minute)
	c.beginMeasurement()(machine.Now(), 0)
	g.Expect(lines).To(HaveLen(2), "nothing changed")
}

func TestStoreClock_takesTheDateOfAnswers(t *testing.T) {
	g := NewWithT(t)
	date := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		if date != "" {
			w.Header().Set("Date", date)
		}
	}))
	defer server.Close()
	machine := clocktesting.NewFakeClock(noon)
	c := newStoreClock(machine, funcr.New(func(string, string) {}, funcr.Options{}))
	client := &http.Client{Transport: c.wrapTransport(http.DefaultTransport)}
	ask := func() {
		response, err := client.Get(server.URL)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
	}
	date = noon.Add(time.Hour).Format(http.TimeFormat)
	ask()
	g.Expect(c.Offset()).To(Equal(time.Hour + time.Second/2))
	for _, date = range []string{"", "soon"} {
		ask()
		g.Expect(c.Offset()).To(Equal(time.Hour+time.Second/2), "nothing was measured")
	}
	date = noon.Format(http.TimeFormat)
	ask()
	g.Expect(c.Offset()).To(BeZero())
	server.Close()
	response, err := client.Get(server.URL)
	if err == nil {
		_ = response.Body.Close()
	}
	g.Expect(err).To(HaveOccurred())
}
