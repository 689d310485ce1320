package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSeries_median(t *testing.T) {
	for _, row := range []struct {
		rounds series
		want   float64
	}{{series{3}, 3}, {series{5, 1, 3}, 3}, {series{4, 1, 2, 100}, 3}} {
		NewWithT(t).Expect(row.rounds.median()).To(BeNumerically("~", row.want, 1e-9), "%v", row.rounds)
	}
	NewWithT(t).Expect(math.IsNaN(series{}.median())).To(BeTrue())
}

func TestRow_isJudgedByTheMedianOfItsRatios(t *testing.T) {
	g := NewWithT(t)
	r := row{figure: "f", unit: "1/s", ours: series{90, 100, 300}, limit: series{100, 200, 100}, limitIs: "bare", aim: atLeast(0.9)}
	g.Expect(r.ratio()).To(Equal(series{0.9, 0.5, 3}))
	g.Expect(r.judgedValue()).To(BeNumerically("~", 0.9, 1e-9), "not 100 over 100")
	g.Expect(r.cells()).To(Equal([]string{"f", "1/s", "100 (90.0 to 300)", "100 (100 to 200) bare", "0.90 (0.50 to 3.00)", "≥ 0.9, met"}))
	r.aim = atMost(0.8)
	g.Expect(r.cells()[5]).To(Equal("≤ 0.8, missed"))

	alone := row{figure: "f", unit: "MiB", ours: series{4}, aim: atMost(4)}
	g.Expect(alone.cells()).To(Equal([]string{"f", "MiB", "4.00", "", "", "≤ 4, met"}))
	g.Expect(formatRow(alone)).To(Equal("f | MiB | 4.00 | ≤ 4, met"))
}

func TestFormatFigure(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 12345.6: "12346", 99.96: "100.0", 12.34: "12.3", 1.239: "1.24", 0.1: "0.10", 0.01234: "0.0123", math.NaN(): "-", math.Inf(1): "-",
	} {
		NewWithT(t).Expect(formatFigure(value)).To(Equal(want))
	}
}

func TestReport_write(t *testing.T) {
	g := NewWithT(t)
	dir, printed := filepath.Join(t.TempDir(), "bin"), &strings.Builder{}
	r := report{Machine: machine{CPUs: 2}, Rounds: 2, Seconds: 5, Rows: []row{
		{figure: "ours alone", unit: "ms", ours: series{1, 3}},
		{figure: "a ratio", unit: "µs", ours: series{2, 4}, limit: series{1, 1}, limitIs: "bare", aim: atMost(1.1)},
	}}
	g.Expect(r.write(dir, printed)).To(Succeed())
	pasted, err := os.ReadFile(filepath.Join(dir, "bench.md"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(printed.String()).To(Equal(string(pasted)))
	g.Expect(printed.String()).To(HavePrefix(
		`| figure     | unit | ours                | limit                    | ratio               | aim           |
| ---------- | ---- | ------------------- | ------------------------ | ------------------- | ------------- |
| ours alone | ms   | 2.00 (1.00 to 3.00) |                          |                     |               |
| a ratio    | µs   | 3.00 (2.00 to 4.00) | 1.00 (1.00 to 1.00) bare | 3.00 (2.00 to 4.00) | ≤ 1.1, missed |
`))
	content, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	g.Expect(err).NotTo(HaveOccurred())
	var decoded struct {
		Rows []map[string]any `json:"rows"`
	}
	g.Expect(json.Unmarshal(content, &decoded)).To(Succeed())
	g.Expect(decoded.Rows[0]).To(HaveLen(3), "no limit, no aim")
	g.Expect(decoded.Rows[1]).To(And(HaveKeyWithValue("met", false), HaveKeyWithValue("limitIs", "bare"), HaveKey("ratio")))
	g.Expect(decoded.Rows[1]["ours"]).To(HaveKeyWithValue("rounds", ConsistOf(2.0, 4.0)))
}

func TestMeasureByTurns_goesBackwardsEverySecondRound(t *testing.T) {
	g := NewWithT(t)
	var order string
	sides := make([]side, 3)
	for i, name := range []string{"a", "b", "c"} {
		sides[i] = func(_ context.Context, round int) (sample, error) {
			order += name
			return sample{"is": float64(10*i + round)}, nil
		}
	}
	found, err := (&bench{rounds: 3}).measureByTurns(t.Context(), sides...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(order).To(Equal("abccbaabc"))
	g.Expect(found[1].valuesOf("is")).To(Equal(series{10, 11, 12}))

	sides[1] = func(context.Context, int) (sample, error) { return nil, errors.New("refused") }
	_, err = (&bench{rounds: 1}).measureByTurns(t.Context(), sides...)
	g.Expect(err).To(MatchError("round 1: refused"))

	failures, b := 0, &bench{rounds: 2}
	found, err = b.measureByTurns(t.Context(), func(_ context.Context, round int) (sample, error) {
		if failures++; failures%2 == 1 {
			return nil, errors.New("refused once")
		}
		return sample{"is": float64(round)}, nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found[0].valuesOf("is")).To(Equal(series{0, 1}))
	g.Expect(b.repeated).To(Equal(2))
}

func TestChooseFigures(t *testing.T) {
	g := NewWithT(t)
	g.Expect(chooseFigures("")).To(HaveLen(len(figures)))
	chosen, err := chooseFigures("hanging,memory")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(chosen).To(HaveLen(3))
	_, err = chooseFigures("init,nothing")
	g.Expect(err).To(MatchError(ContainSubstring(`no figure begins with "nothing"`)))
	g.Expect(run(t.Context(), []string{"-rounds=0"})).To(MatchError(ContainSubstring("at least 1")))
}

func TestReadPgbenchLog(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	log := "0 1 1500 0 1700000000 123456 20\n0 2 500 0 1700000000 223456 20\n"
	g.Expect(os.WriteFile(filepath.Join(dir, "pgbench_log.1"), []byte(log), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "pgbench_log.1.1"), []byte("1 1 700 0 1700000000 123456 20\n"), 0o600)).To(Succeed())
	all, err := readPgbenchLog(dir)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all.Count()).To(BeEquivalentTo(3))
	g.Expect(all.Max()).To(Equal(1500 * time.Microsecond))
}

func TestRequestID(t *testing.T) {
	g := NewWithT(t)
	g.Expect(requestID([]byte(`{"event":"verification.success","requestId":"vrabc","projectId":"p"}`))).To(Equal("vrabc"))
	g.Expect(requestID([]byte(`{}`))).To(BeEmpty())
}

func TestSink_waitsForTheEventsOfTheseRequests(t *testing.T) {
	g := NewWithT(t)
	s, err := startSink(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	post := func(id string) {
		p := posting{URL: s.url, Body: []byte(`{"requestId":"` + id + `"}`)}
		g.Expect(p.send(t.Context(), http.DefaultClient)).To(Succeed())
	}
	post("vrother")
	post("vra")
	post("vra")
	at, err := s.awaitEvents(t.Context(), []started{{ID: "vra"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(at).To(HaveLen(1))
	g.Expect(s.checkHanging()).To(MatchError(ContainSubstring("events of 2 requests")))

	s.reset()
	s.holdAnswers()
	held := make(chan struct{})
	go func() {
		defer close(held)
		post("vrb")
	}()
	g.Eventually(s.heldCount).WithTimeout(time.Minute).Should(Equal(1))
	g.Expect(s.checkHanging()).To(Succeed())
	s.releaseAnswers()
	<-held
	_, err = s.awaitEvents(t.Context(), []started{{ID: "vrb"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.lastEvent().Body).To(ContainSubstring("vrb"))
	g.Expect(s.close()).To(Succeed())
}

func TestStoredRequests_haveTheIDsOfTheDatabase(t *testing.T) {
	g := NewWithT(t)
	ids := storedRequests("vrdone", 12)
	g.Expect(ids[0].ID).To(Equal("vrdone" + strings.Repeat("a", 19) + "b"))
	g.Expect(ids[11].ID).To(Equal("vrdone" + strings.Repeat("a", 18) + "bc"))
}
