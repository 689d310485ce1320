package kubernetes

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func fromE164(t *testing.T, text string) phone.Number {
	t.Helper()
	n, err := phone.FromE164(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return n
}

// createdAt is a request as the watch brings it.
func createdAt(t *testing.T, name string, at time.Time) *entry {
	t.Helper()
	return &entry{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1", ResourceVersion: "1"}, object: &verifyv1.VerificationRequest{},
		request: verification.Request{ID: name, Phone: fromE164(t, "+15550100199"), KeyName: "backend", CreatedAt: at},
	}
}

// TestLedger_bringsNothingBack reads a state right before the watch tells of the object's end.
func TestLedger_bringsNothingBack(t *testing.T) {
	g := NewWithT(t)
	l := newCreationLimits()
	l.addObserved(createdAt(t, "vr1", noon), noon)
	gone := createdAt(t, "vr1", noon)
	gone.kind = KindGone
	l.replaceStored(gone)
	g.Expect(l.stored).To(HaveKeyWithValue("vr1", gone), "a finalizer holds it")
	l.removeStored("vr1")
	l.replaceStored(gone)
	g.Expect(l.stored).To(BeEmpty())
}

// TestLedger_countsARepetitionOnce repeats the creation of a code whose first try may have been carried out.
func TestLedger_countsARepetitionOnce(t *testing.T) {
	g := NewWithT(t)
	l := newCreationLimits()
	limits := verification.Limits{
		PerPhoneNumber: verification.Rate{Requests: 1, Period: time.Minute},
		Codes:          verification.CodeLimits{PerDay: verification.Rate{Requests: 9, Period: 24 * time.Hour}},
	}
	admit := func(id string, at time.Time) error {
		_, _, err := l.admitOrEvict(admission{
			Counted:   verification.Counted{ID: id, KeyName: "backend", Phone: fromE164(t, "+15550100199"), Deliver: verification.DeliverCode},
			limits:    limits,
			takesRoom: true,
		}, at)
		return err
	}
	g.Expect(admit("vr1", noon)).To(Succeed())
	l.endReservation("vr1")
	g.Expect(admit("vr1", noon.Add(time.Second))).To(Succeed())
	l.endReservation("vr1")
	g.Expect(admit("vr2", noon.Add(2*time.Second))).NotTo(Succeed(), "another one to that number")
	limits.PerKey = verification.Rate{Requests: 1, Period: time.Hour}
	l.admitted.Add(verification.Counted{ID: "vr3", KeyName: "backend", Phone: fromE164(t, "+15550100198")}, noon, noon)
	g.Expect(admit("vr1", noon.Add(3*time.Second))).NotTo(Succeed(), "the key's rate is used up by now")
	limits.PerKey = verification.Rate{}
	g.Expect(admit("vr2", noon.Add(4*time.Second))).NotTo(Succeed(), "a refused repetition still counts")
}

func TestRecent_goesByNothingOld(t *testing.T) {
	g := NewWithT(t)
	var r ownWrites
	seen, own := createdAt(t, "vr1", noon), createdAt(t, "vr1", noon)
	own.ResourceVersion = "2"
	r.recordWrite(own)
	watched := func(e *entry) func() *entry { return func() *entry { return e } }
	g.Expect(r.latestState("vr1", watched(seen))).To(BeIdenticalTo(own))
	r.entries["vr1"] = ownWrite{entry: own, at: time.Now().Add(-ownWriteLife - time.Second)}
	g.Expect(r.latestState("vr1", watched(seen))).To(BeIdenticalTo(seen), "the watch knows better by now")
	g.Expect(r.latestState("vr1", watched(nil))).To(BeNil(), "the watch has seen its end")
}

func TestRecent_losesNoWriteThatTheWatchPassesMeanwhile(t *testing.T) {
	g := NewWithT(t)
	var r ownWrites
	seen, own := createdAt(t, "vr1", noon), createdAt(t, "vr1", noon)
	own.ResourceVersion = "2"
	r.recordWrite(own)
	g.Expect(r.latestState("vr1", func() *entry {
		r.forgetObserved(own)
		return seen // as it was a moment before
	})).To(BeIdenticalTo(own))
}

// TestLedger_replicasOfAFullStoreMakeRoomWithDifferentRequests has two of them at work on the same thousand.
func TestLedger_replicasOfAFullStoreMakeRoomWithDifferentRequests(t *testing.T) {
	const stored, creations = 1000, 20
	chosen := func() map[string]bool {
		l := newCreationLimits()
		for i := range stored {
			e := createdAt(t, fmt.Sprintf("vr%04d", i), noon.Add(time.Duration(i)*time.Second))
			e.kind, e.request.Phase = KindRequest, verification.Expired
			l.addObserved(e, noon.Add(time.Hour))
		}
		names := make(map[string]bool)
		for range creations {
			a := admission{
				Counted: verification.Counted{ID: "vr", Phone: fromE164(t, "+15550100199")}, takesRoom: true,
				limits: verification.Limits{MaxStored: stored},
			}
			_, old, err := l.admitOrEvict(a, noon.Add(time.Hour))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			names[old.Name] = true
		}
		return names
	}
	g := NewWithT(t)
	one, other, both := chosen(), chosen(), 0
	g.Expect(one).To(HaveLen(creations), "each creation another")
	for name := range one {
		g.Expect(name < fmt.Sprintf("vr%04d", stored/10+creations)).To(BeTrue(), "an old one")
		if other[name] {
			both++
		}
	}
	g.Expect(both).To(BeNumerically("<", 3*creations/4), "some by chance")
}

// TestLedger_aSmallStoreMakesRoomWithTheOldest is where a tenth is one.
func TestLedger_aSmallStoreMakesRoomWithTheOldest(t *testing.T) {
	g := NewWithT(t)
	l := newCreationLimits()
	for _, i := range []int{3, 1, 2} {
		e := createdAt(t, strconv.Itoa(i), noon.Add(time.Duration(i)*time.Second))
		e.kind, e.request.Phase = KindRequest, verification.Expired
		l.addObserved(e, noon.Add(time.Hour))
	}
	for _, name := range []string{"1", "2", "3"} {
		old, _ := l.chooseEvictable(false, verification.Limits{}, noon.Add(time.Hour), 3)
		g.Expect(old).To(HaveField("Name", name))
		l.removeStored(name)
	}
	old, wait := l.chooseEvictable(false, verification.Limits{}, noon.Add(time.Hour), 3)
	g.Expect(old).To(BeNil())
	g.Expect(wait).To(BeNumerically("<", 0))
}

// TestLedger_coolsDown has a replica decline a request, whose earlier states the watch brings late.
func TestLedger_coolsDown(t *testing.T) {
	g := NewWithT(t)
	l := newCreationLimits()
	pending, declined := createdAt(t, "vr1", noon), createdAt(t, "vr1", noon)
	declined.request.Phase, declined.request.Hints = verification.Expired, []verification.Hint{{Kind: verification.HintDeclined, At: noon}}
	admit := func(now time.Time) error {
		_, _, err := l.admitOrEvict(admission{
			Counted: verification.Counted{ID: "vr2", Phone: fromE164(t, "+15550100199")}, limits: verification.Limits{DeclineCooldown: time.Hour},
		}, now)
		return err
	}
	l.addWritten(declined)
	g.Expect(admit(noon)).To(Succeed(), "an object whose deletion the watch has brought")
	l.addObserved(pending, noon)
	g.Expect(admit(noon)).To(Succeed())
	l.addWritten(declined)
	g.Expect(admit(noon)).To(MatchError(verification.RateLimited(verification.LimitDeclined, 0)))
	l.addObserved(pending, noon)
	g.Expect(admit(noon)).To(MatchError(verification.RateLimited(verification.LimitDeclined, 0)), "a state from before")
	l.addObserved(declined, noon)
	g.Expect(admit(noon.Add(time.Hour - time.Microsecond))).To(MatchError(verification.RateLimited(verification.LimitDeclined, 0)))
	g.Expect(admit(noon.Add(time.Hour))).To(Succeed())
	gone := *declined
	gone.kind = KindGone
	l.addObserved(&gone, noon)
	g.Expect(admit(noon)).To(Succeed(), "it is being deleted")
	l.addObserved(declined, noon)
	l.removeStored("vr1")
	g.Expect(admit(noon)).To(Succeed())
}

func TestLedger_countsSubjectsThatTheWatchBrings(t *testing.T) {
	g := NewWithT(t)
	l := newCreationLimits()
	e := createdAt(t, "vr1", noon)
	e.object.Spec.Init = &verifyv1.Init{SubjectHash: "ada"}
	l.addObserved(e, noon)
	limits := verification.Limits{PerSubject: verification.Rate{Requests: 1, Period: time.Hour}}
	next := verification.Counted{ID: "vr2", Phone: fromE164(t, "+15550100198"), Subject: "ada"}
	_, _, err := l.admitOrEvict(admission{Counted: next, limits: limits}, noon)
	g.Expect(err).To(MatchError(&verification.Error{Code: verification.CodeRateLimited}))
}
