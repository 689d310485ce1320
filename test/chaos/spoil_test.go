package main

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/commits"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
)

func TestOperationOf(t *testing.T) {
	g := NewWithT(t)
	for statement, operation := range map[string]string{
		"INSERT INTO phoneproof_requests\n(project, id) SELECT":                         commits.Insert,
		"UPDATE phoneproof_requests SET phase = $6":                                     commits.Update,
		"WITH due AS (SELECT id) UPDATE phoneproof_requests AS r SET phase = 'EXPIRED'": commits.Update,
		"UPDATE phoneproof_requests SET\n\tepoch = epoch + 1, version = version + 1":    commits.Claim,
		"SELECT id FROM phoneproof_requests":                                            "",
		"DELETE FROM phoneproof_requests":                                               "",
		"COMMIT":                                                                        "",
	} {
		g.Expect(operationOf(statement)).To(Equal(operation), statement)
	}
}

func TestMissed(t *testing.T) {
	g := NewWithT(t)
	i := &injector{hits: map[schedule.Kind]map[string]int{schedule.CutCommit: {"insert": 1}}}
	g.Expect(i.missed()).To(Succeed())
	i.hits[schedule.LagWatch] = map[string]int{}
	g.Expect(i.missed()).To(MatchError("lag-watch hit nothing"))
}

func TestSpoiling_beginsAgainUntilItHits(t *testing.T) {
	g := NewWithT(t)
	synctest.Test(t, func(t *testing.T) {
		begins := 1
		s := spoiling{
			hits:  func() (map[string]int, error) { return map[string]int{"old state": max(0, begins-2)}, nil },
			again: func() { begins++ },
		}
		hits, err := s.awaitHit(t.Context(), map[string]int{"old state": 0})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(hits).To(Equal(map[string]int{"old state": 1}), "the third begin hit")
	})
}

func TestDifference(t *testing.T) {
	g := NewWithT(t)
	added := difference(map[string]int{"insert": 2, "claim": 1}, map[string]int{"insert": 5, "claim": 1, "update": 1})
	g.Expect(added).To(Equal(map[string]int{"insert": 3, "update": 1}))
	g.Expect(listHits(map[schedule.Kind]map[string]int{schedule.CutCommit: added})).To(Equal("cut-commit: 3 insert, 1 update"))
}
