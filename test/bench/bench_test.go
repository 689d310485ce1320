package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The format is that of https://go.dev/design/14313-benchmark-format.
func TestReport_isInGosBenchmarkFormat(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	b := &bench{out: out, program: "phoneproof"}
	g.Expect(b.writeHeader(t.Context())).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(
		`\A# .+\ngoos: \S+\ngoarch: \S+\ncpu: .+\nUnit req/s better=higher\nUnit events/s better=higher\n\z`))
	out.Reset()
	g.Expect(b.writeSample("Init/store=postgresql", sample{unitRate: 4313.125, unitServer: 0.5, "resident-B": 1e9})).To(Succeed())
	g.Expect(out.String()).To(Equal("BenchmarkInit/store=postgresql 1 4313.12 req/s 1e+09 resident-B 0.5 server-ns/op\n"))
}

func TestMeasureByTurns_goesBackwardsEverySecondRound(t *testing.T) {
	g := NewWithT(t)
	var sides []side
	for i, name := range []string{"A", "B", "C"} {
		sides = append(sides, side{name, func(_ context.Context, round int) (sample, error) {
			return sample{"is": float64(10*i + round)}, nil
		}})
	}
	out := &strings.Builder{}
	g.Expect((&bench{rounds: 3, out: out}).measureByTurns(t.Context(), sides...)).To(Succeed())
	g.Expect(out.String()).To(Equal(`BenchmarkA 1 0 is
BenchmarkB 1 10 is
BenchmarkC 1 20 is
BenchmarkC 1 21 is
BenchmarkB 1 11 is
BenchmarkA 1 1 is
BenchmarkA 1 2 is
BenchmarkB 1 12 is
BenchmarkC 1 22 is
`))
}

func TestMeasureByTurns_repeatsWhatWasRefused(t *testing.T) {
	g := NewWithT(t)
	out, failures := &strings.Builder{}, 0
	g.Expect((&bench{rounds: 2, out: out}).measureByTurns(t.Context(), side{"A", func(_ context.Context, round int) (sample, error) {
		if failures++; failures%2 == 1 {
			return nil, errors.New("refused once")
		}
		return sample{"is": float64(round)}, nil
	}})).To(Succeed())
	g.Expect(out.String()).To(Equal("BenchmarkA 1 0 is\nBenchmarkA 1 1 is\n"))

	out.Reset()
	err := (&bench{rounds: 1, out: out}).measureByTurns(t.Context(), side{"A", func(context.Context, int) (sample, error) {
		return sample{"is": 1}, errors.New("refused")
	}})
	g.Expect(err).To(MatchError("A, round 1: refused"))
	g.Expect(out.String()).To(BeEmpty(), "a load that is partly refused has no figure")
}

func TestChooseFigures(t *testing.T) {
	g := NewWithT(t)
	g.Expect(chooseFigures("")).To(HaveLen(len(figures)))
	g.Expect(chooseFigures("init,memory")).To(HaveLen(3))
	_, err := chooseFigures("init,nothing")
	g.Expect(err).To(MatchError(ContainSubstring(`no figure begins with "nothing"`)))
	g.Expect(run(t.Context(), []string{"-rounds=0"})).To(MatchError(ContainSubstring("at least 1")))
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
	post := func(url, body string) int {
		response, err := http.Post(url, "application/json", strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		return response.StatusCode
	}
	g.Expect(post(s.graph+"/v1/1/messages", `{"requestId":"vra"}`)).To(Equal(http.StatusOK), "a reply is no event")
	for _, id := range []string{"vrother", "vrb", "vrb"} {
		g.Expect(post(s.url, `{"requestId":"`+id+`"}`)).To(Equal(http.StatusNoContent))
	}
	at, err := s.awaitEvents(t.Context(), []started{{ID: "vrb"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(at).To(HaveLen(1))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.awaitEvents(ended, []started{{ID: "vrb"}, {ID: "vra"}})
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(s.close()).To(Succeed())
}

func TestStoredRequests_haveTheIDsOfTheDatabase(t *testing.T) {
	g := NewWithT(t)
	ids := storedRequests("vrdone", 12)
	g.Expect(ids[0].ID).To(Equal("vrdone" + strings.Repeat("a", 19) + "b"))
	g.Expect(ids[11].ID).To(Equal("vrdone" + strings.Repeat("a", 18) + "bc"))
}
