package postgres

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestKeyWindow_whatCountsAndWhatHasToLeave(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	rate := verification.Rate{Requests: 10, Period: time.Minute}
	for name, test := range map[string]struct {
		window      keyWindow
		counted     int64
		wait        time.Duration
		beyondFirst bool
	}{
		"nothing was ever admitted":      {keyWindow{}, 0, 0, false},
		"everything has left":            {keyWindow{total: 50}, 0, 0, false},
		"one row, with room":             {keyWindow{total: 9, first: admissions{at: ago(30), total: 9, n: 9}}, 9, 0, false},
		"one row, full":                  {keyWindow{total: 10, first: admissions{at: ago(30), total: 10, n: 10}}, 10, 30 * time.Second, false},
		"a later row counts too":         {keyWindow{total: 60, first: admissions{at: ago(50), total: 55, n: 5}}, 10, 10 * time.Second, false},
		"of a row before only the rest":  {keyWindow{total: 59, first: admissions{at: ago(50), total: 55, n: 5}}, 9, 0, false},
		"this batch fills it":            {keyWindow{total: 5, first: admissions{at: ago(20), total: 5, n: 5}, admitted: 5}, 10, 40 * time.Second, false},
		"this batch alone fills it":      {keyWindow{total: 70, admitted: 10}, 10, time.Minute, false},
		"the rate was lowered":           {keyWindow{total: 20, first: admissions{at: ago(40), total: 5, n: 5}, leaves: ago(10)}, 20, 50 * time.Second, true},
		"lowered, but one row has it":    {keyWindow{total: 20, first: admissions{at: ago(40), total: 20, n: 20}}, 20, 20 * time.Second, false},
		"the last that counts goes next": {keyWindow{total: 10, first: admissions{at: ago(60).Add(1), total: 10, n: 10}}, 10, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.window.counted()).To(Equal(test.counted))
			g.Expect(test.window.wait(rate, now)).To(Equal(test.wait))
			g.Expect(test.window.beyondFirst(rate)).To(Equal(test.beyondFirst))
		})
	}
}

func TestKeyWindow_rowsNeverGoBackWithTheClock(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g.Expect((&keyWindow{lastAt: now.Add(time.Hour)}).at(now)).To(Equal(now.Add(time.Hour)))
	g.Expect((&keyWindow{lastAt: now.Add(-time.Hour)}).at(now)).To(Equal(now))
}

func TestNumberWindow_waitsForTheOneThatHasToLeave(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	w := &numberWindow{times: []time.Time{now.Add(-50 * time.Second), now.Add(-20 * time.Second), now.Add(-10 * time.Second)}}
	g.Expect(w.wait(verification.Rate{Requests: 4, Period: time.Minute}, now)).To(BeZero())
	g.Expect(w.wait(verification.Rate{Requests: 3, Period: time.Minute}, now)).To(Equal(10 * time.Second))
	g.Expect(w.wait(verification.Rate{Requests: 1, Period: time.Minute}, now)).To(Equal(50 * time.Second))
}

func TestGroupsOf_asksForNothingThatIsNotLimited(t *testing.T) {
	g := NewWithT(t)
	number, err := phone.FromE164("+4915123456789")
	g.Expect(err).NotTo(HaveOccurred())
	calls := []*call[creation, verification.Created]{
		{in: creation{New: verification.New{Phone: number, KeyName: "shop", Subject: "ada"}}}, {in: creation{New: verification.New{Phone: number}}},
	}
	rate := verification.Rate{Requests: 1, Period: time.Minute}
	both := verification.Limits{PerKey: rate, PerPhoneNumber: rate}
	g.Expect(groupsOf(calls, both)).To(BeNil())
	both.PerSubject = rate
	g.Expect(groupsOf(calls, both)).To(Equal([]string{"subject ada"}))
	both.PerPrefix = verification.PrefixRate{Rate: rate, Digits: 6}
	g.Expect(groupsOf(calls, both)).To(Equal([]string{"prefix 491512 ", "prefix 491512 shop", "subject ada"}))
}
