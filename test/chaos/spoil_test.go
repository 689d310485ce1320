package main

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/schedule"
	"github.com/phoneproof/phoneproof/test/system"
)

func TestOperationOf(t *testing.T) {
	g := NewWithT(t)
	for statement, operation := range map[string]string{
		"INSERT INTO phoneproof_requests\n(project, id) SELECT":                         opInsert,
		"UPDATE phoneproof_requests SET phase = $6":                                     opUpdate,
		"WITH due AS (SELECT id) UPDATE phoneproof_requests AS r SET phase = 'EXPIRED'": opUpdate,
		"UPDATE phoneproof_requests SET\n\tepoch = epoch + 1, version = version + 1":    opClaim,
		"SELECT id FROM phoneproof_requests":                                            "",
		"DELETE FROM phoneproof_requests":                                               "",
		"COMMIT":                                                                        "",
	} {
		g.Expect(operationOf(statement)).To(Equal(operation), statement)
	}
}

func TestCheckMissing(t *testing.T) {
	g := NewWithT(t)
	i := &injector{hits: map[schedule.Kind]map[string]int{}, missing: map[schedule.Kind][]string{}}
	wants := []string{opInsert, opUpdate}
	g.Expect(i.missingOperations(schedule.CutCommit, wants)).To(Equal(wants))
	i.recordHits(schedule.CutCommit, map[hit]int{{opInsert, "first-1"}: 1, {opClaim, "first-2"}: 7})
	g.Expect(i.checkMissing()).To(MatchError("cut-commit hit no update"))
	g.Expect(i.missingOperations(schedule.CutCommit, wants)).To(Equal([]string{opUpdate}), "the next of its kind must still hit it")
	i.recordHits(schedule.CutCommit, map[hit]int{{opUpdate, "first-1"}: 1})
	g.Expect(i.checkMissing()).To(Succeed())
	g.Expect(i.missingOperations(schedule.LagWatch, []string{lateEvent})).To(HaveLen(1))
	i.recordHits(schedule.LagWatch, nil)
	g.Expect(i.checkMissing()).To(MatchError("lag-watch hit no late event"))
}

func TestPartialFault_restartsUntilItHits(t *testing.T) {
	g := NewWithT(t)
	synctest.Test(t, func(t *testing.T) {
		begins := 1
		s := partialFault{
			hits:         func() map[hit]int { return map[hit]int{{operation: oldState}: max(0, begins-2)} },
			restart:      func() { begins++ },
			storeStopped: func() bool { return false },
		}
		s.awaitHits(t.Context(), map[hit]int{}, []string{oldState})
		g.Expect(begins).To(Equal(3), "the third start hit")
	})
}

func TestPartialFault_endsWithoutAHit(t *testing.T) {
	g := NewWithT(t)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := partialFault{
			hits:         func() map[hit]int { return map[hit]int{{operation: opClaim}: 1} },
			storeStopped: func() bool { return time.Since(began) < time.Minute },
		}
		s.awaitHits(t.Context(), map[hit]int{}, []string{opClaim, opUpdate})
		g.Expect(time.Since(began)).To(BeNumerically("~", time.Minute+hitTimeout, 2*pollInterval), "a stopped store can be hit by nothing")
	})
}

func TestAddedHits(t *testing.T) {
	g := NewWithT(t)
	first, second := hit{opInsert, "first-1"}, hit{opInsert, "first-2"}
	added := addedHits(map[hit]int{first: 2, second: 1}, map[hit]int{first: 5, second: 1, {opUpdate, "first-3"}: 1})
	g.Expect(added).To(Equal(map[hit]int{first: 3, {opUpdate, "first-3"}: 1}))
	g.Expect(formatHits(map[schedule.Kind]map[string]int{schedule.CutCommit: {"insert": 3, "update": 1}})).To(
		Equal("cut-commit: 3 insert, 1 update"))
}

func TestSplitByVictim(t *testing.T) {
	g := NewWithT(t)
	fault := ledger.Fault{Kind: string(schedule.CutStore), From: time.Unix(1, 0), Until: time.Unix(2, 0)}
	g.Expect(splitByVictim(fault, nil)).To(HaveExactElements(fault), "it hit no process")
	part := func(victim string, hits map[string]int) ledger.Fault {
		f := fault
		f.Victims, f.Hits = []string{victim}, hits
		return f
	}
	g.Expect(splitByVictim(fault, map[hit]int{
		{opInsert, "first-1"}: 3, {opClaim, "first-1"}: 1, {opUpdate, "first-2"}: 2, {opClaim, ""}: 1,
	})).To(ConsistOf(
		part("first-1", map[string]int{opInsert: 3, opClaim: 1}), // it lost no update
		part("first-2", map[string]int{opUpdate: 2}),
		part(ledger.Everyone, map[string]int{opClaim: 1}),
	))
}

func TestLines_failIfTheOwnerIsUnknown(t *testing.T) {
	g := NewWithT(t)
	var l lines
	here, there := net.Pipe()
	t.Cleanup(func() { _ = errors.Join(here.Close(), there.Close()) })
	g.Expect(l.nameOwner(here)).To(BeEmpty(), "there is no project yet")
	g.Expect(l.checkNames()).To(Succeed())
	l.project.Store(&system.Project{})
	g.Expect(l.nameOwner(here)).To(BeEmpty())
	g.Expect(l.checkNames()).To(MatchError(ContainSubstring("name owner of connection")))
}
