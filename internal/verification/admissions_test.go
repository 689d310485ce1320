package verification

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newCounted(t *testing.T, id, key, e164 string) Counted {
	t.Helper()
	return Counted{ID: id, KeyName: key, Phone: number(t, e164)}
}

func TestAdmissions_dropIdleWindows(t *testing.T) {
	const many = 10_000
	g := NewWithT(t)
	a := NewAdmissions()
	limits := Limits{
		PerKey:         Rate{Requests: 5, Period: time.Minute},
		PerPhoneNumber: Rate{Requests: 5, Period: 10 * time.Minute},
	}
	admit := func(i int, limits Limits, now time.Time) {
		a.Admit(newCounted(t, strconv.Itoa(i), "key-"+strconv.Itoa(i), "+4915100"+strconv.Itoa(100_000+i)), limits, now)
	}
	for i := range many {
		admit(i, limits, noon)
	}
	g.Expect(a.numbers.byKey).To(HaveLen(many))
	admit(many, limits, noon.Add(10*time.Minute-1))
	g.Expect(a.numbers.byKey).To(HaveLen(many + 1))
	admit(many+1, limits, noon.Add(10*time.Minute))
	g.Expect(a.keys.byKey).To(HaveLen(2), "kept for the period of numbers, to count prefixes anew")
	g.Expect(a.numbers.byKey).To(HaveLen(2))
	g.Expect(a.numbers.idle.Len()).To(Equal(2))
	admit(many+2, Limits{}, noon.Add(10*time.Minute))
	g.Expect(a.numbers.byKey).To(BeEmpty(), "without a rate there are no windows")
}

func TestAdmissions_holdNoMoreThanTheRateAdmits(t *testing.T) {
	g := NewWithT(t)
	a := NewAdmissions()
	limits := Limits{PerKey: Rate{Requests: 3, Period: time.Minute}}
	for i := range 10_000 {
		c, now := newCounted(t, strconv.Itoa(i), "busy", "+4915112345678"), noon.Add(time.Duration(i)*time.Second)
		if a.Refuse(c, limits, now) == nil {
			a.Admit(c, limits, now)
		}
	}
	admissions := windowOf[string](a.keys.byKey["busy"]).admissions
	g.Expect(len(admissions)).To(BeNumerically("<=", 3))
	g.Expect(cap(admissions)).To(BeNumerically("<=", 16))
}

func TestAdmissions_quotaAfterTheRateWasLowered(t *testing.T) {
	g := NewWithT(t)
	a := NewAdmissions()
	limits := Limits{PerKey: Rate{Requests: 5, Period: time.Minute}}
	for i := range 4 {
		a.Admit(newCounted(t, strconv.Itoa(i), "web", "+4915112345678"), limits, noon.Add(time.Duration(i)*time.Second))
	}
	limits.PerKey.Requests = 2
	now := noon.Add(10 * time.Second)
	err := a.Refuse(newCounted(t, "next", "web", "+4915112345678"), limits, now)
	g.Expect(err).To(MatchError(RateLimited(LimitPerKey, 0)))
	g.Expect(err).To(HaveField("RetryAfter", 52*time.Second), "the third of four must leave")
	g.Expect(a.keys.quota("web", limits.PerKey, now)).To(Equal(Quota{Reset: 52 * time.Second}))
}

// The clock of another replica may be ahead; what is dated later comes from a forged object or a clock that was set back.
func TestAdmissions_countNothingOfTheFuture(t *testing.T) {
	for name, c := range map[string]struct {
		at     time.Time
		counts bool
	}{
		"now":                            {noon, true},
		"another replica's clock":        {noon.Add(maxAhead), true},
		"a forged time":                  {noon.Add(maxAhead + time.Microsecond), false},
		"a forged time for all eternity": {time.Date(9999, 12, 31, 23, 59, 58, 0, time.UTC), false},
	} {
		t.Run(name, func(t *testing.T) {
			once := Rate{Requests: 1, Period: time.Hour}
			for _, limits := range []Limits{{PerKey: once}, {PerPhoneNumber: once}} {
				elsewhere, setBack := NewSharedAdmissions(), NewAdmissions()
				elsewhere.Add(newCounted(t, "a", "web", "+4915112345678"), c.at, noon)
				setBack.Admit(newCounted(t, "a", "web", "+4915112345678"), limits, c.at)
				for _, a := range []*Admissions{elsewhere, setBack} {
					refusal := a.Refuse(newCounted(t, "b", "web", "+4915112345678"), limits, noon)
					NewWithT(t).Expect(refusal != nil).To(Equal(c.counts))
				}
			}
		})
	}
}

// TestSharedAdmissions_forget counts what other replicas admit, while this one admits nothing.
func TestSharedAdmissions_forget(t *testing.T) {
	g := NewWithT(t)
	a := NewSharedAdmissions()
	for i := range 10_000 {
		now := noon.Add(time.Duration(i) * time.Minute)
		c := newCounted(t, strconv.Itoa(i), "web", "+4915112345678")
		a.Add(c, now, now)
		a.Add(c, now, now)
	}
	minutes := int(MaxPeriod / time.Minute)
	g.Expect(windowOf[string](a.keys.byKey["web"]).admissions).To(HaveLen(minutes), "each counts once")
	a.Add(newCounted(t, "old", "other", "+4915112345679"), noon, noon.Add(MaxPeriod))
	g.Expect(a.keys.byKey).NotTo(HaveKey("other"))
}

func TestSharedAdmissions_aManualRequestDoesNotShortenTheWindowOfKeys(t *testing.T) {
	g := NewWithT(t)
	a := NewSharedAdmissions()
	limits := Limits{PerKey: Rate{Requests: 10, Period: 12 * time.Hour}}
	for i := range 10 {
		a.Add(newCounted(t, strconv.Itoa(i), "web", "+4915112345678"), noon, noon)
	}
	later := noon.Add(11 * time.Hour)
	a.Admit(newCounted(t, "manual", "", "+4915112345679"), Limits{}, later)
	g.Expect(a.Refuse(newCounted(t, "next", "web", "+4915112345670"), limits, later)).To(MatchError(RateLimited(LimitPerKey, 0)))
}

func TestSharedAdmissions_removeUncounts(t *testing.T) {
	g := NewWithT(t)
	a := NewSharedAdmissions()
	once := Rate{Requests: 1, Period: time.Hour}
	limits := Limits{PerKey: once, PerPhoneNumber: once, PerSubject: once, PerPrefix: PrefixRate{Rate: once, Digits: 4}}
	c := newCounted(t, "a", "web", "+4915112345678")
	c.Subject = "ada"
	for range 2 {
		g.Expect(a.Refuse(c, limits, noon)).To(Succeed())
		g.Expect(a.Admit(c, limits, noon).Remaining).To(BeZero())
		g.Expect(a.Refuse(c, limits, noon)).NotTo(Succeed())
		a.Remove(c, noon)
	}
	g.Expect(a.keys.idle.Len() + a.numbers.idle.Len() + a.prefixes.idle.Len() + a.subjects.idle.Len()).To(BeZero())
}

func TestAdmissions_uncountAndForgetCodes(t *testing.T) {
	g := NewWithT(t)
	a := NewAdmissions()
	once := Limits{Codes: CodeLimits{PerHour: Rate{Requests: 1, Period: time.Hour}}}
	c := newCounted(t, "a", "web", "+4915112345678")
	c.Deliver = DeliverCode
	other := newCounted(t, "b", "web", "+4915112345679")
	other.Deliver = DeliverCode
	for _, undo := range []func(){func() { a.Remove(c, noon) }, a.Forget, func() {}} {
		g.Expect(a.Refuse(c, once, noon)).To(Succeed())
		a.Admit(c, once, noon)
		g.Expect(a.Refuse(c, Limits{}, noon)).To(MatchError(CodesLimited(LimitCodeNumber, time.Minute)))
		g.Expect(a.Refuse(other, once, noon)).To(MatchError(CodesLimited(LimitCodes, time.Hour)))
		undo()
	}
	other.Method = Telegram
	g.Expect(a.Refuse(other, Limits{Codes: once.Codes, GatewayCodes: once.Codes}, noon)).To(Succeed(), "each messenger counts alone")
	c.Deliver = DeliverNothing
	g.Expect(a.Refuse(c, once, noon)).To(Succeed(), "links go on")
}

// TestSharedAdmissions_countPrefixesAnew starts a limit by prefixes, and then changes their length.
func TestSharedAdmissions_countPrefixesAnew(t *testing.T) {
	g := NewWithT(t)
	a := NewSharedAdmissions()
	a.Add(newCounted(t, "a", "web", "+15550100199"), noon, noon)
	refuses := func(e164 string, digits int) bool {
		limits := Limits{PerPrefix: PrefixRate{Rate: Rate{Requests: 1, Period: time.Hour}, Digits: digits}}
		return a.Refuse(newCounted(t, "b", "web", e164), limits, noon) != nil
	}
	g.Expect(refuses("+15550199999", 4)).To(BeTrue())
	g.Expect(refuses("+15550199999", 7)).To(BeFalse())
	g.Expect(refuses("+15550199999", 4)).To(BeTrue())
	a.Add(newCounted(t, "c", "shop", "+15550100200"), noon, noon)
	g.Expect(refuses("+15550100299", 9)).To(BeFalse())
	g.Expect(a.prefixes.byKey).To(HaveKey(PrefixGroup{KeyName: "shop", Prefix: "155501002"}), "each key's are its own")
	g.Expect(a.Refuse(newCounted(t, "d", "", "+15550199999"), Limits{}, noon)).To(Succeed())
	g.Expect(a.prefixes.byKey).To(BeEmpty(), "nothing is counted by prefixes while nothing limits by them")
}
