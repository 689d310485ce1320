package postgres

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestKeyWindow_countAndRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	rate := verification.Rate{Requests: 10, Period: time.Minute}
	for name, test := range map[string]struct {
		window      keyWindow
		counted     int64
		wait        time.Duration
		beyondFirst bool
	}{
		"nothing was ever admitted":     {keyWindow{}, 0, 0, false},
		"everything has left":           {keyWindow{total: 50}, 0, 0, false},
		"one row, with room":            {keyWindow{total: 9, first: admissions{at: ago(30), total: 9, n: 9}}, 9, 0, false},
		"one row, full":                 {keyWindow{total: 10, first: admissions{at: ago(30), total: 10, n: 10}}, 10, 30 * time.Second, false},
		"a later row counts too":        {keyWindow{total: 60, first: admissions{at: ago(50), total: 55, n: 5}}, 10, 10 * time.Second, false},
		"the oldest row left partly":    {keyWindow{total: 59, first: admissions{at: ago(50), total: 55, n: 5}}, 9, 0, false},
		"this batch fills it":           {keyWindow{total: 5, first: admissions{at: ago(20), total: 5, n: 5}, admitted: 5}, 10, 40 * time.Second, false},
		"this batch alone fills it":     {keyWindow{total: 70, admitted: 10}, 10, time.Minute, false},
		"the rate was lowered":          {keyWindow{total: 20, first: admissions{at: ago(40), total: 5, n: 5}, leaves: ago(10)}, 20, 50 * time.Second, true},
		"lowered within the oldest row": {keyWindow{total: 20, first: admissions{at: ago(40), total: 20, n: 20}}, 20, 20 * time.Second, false},
		"the last one leaves next":      {keyWindow{total: 10, first: admissions{at: ago(60).Add(1), total: 10, n: 10}}, 10, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(test.window.currentCount()).To(Equal(test.counted))
			g.Expect(test.window.retryAfter(rate, now)).To(Equal(test.wait))
			g.Expect(test.window.beyondFirst(rate)).To(Equal(test.beyondFirst))
		})
	}
}

func TestNotBefore(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	g.Expect(notBefore(now.Add(time.Hour), now)).To(Equal(now.Add(time.Hour)))
	g.Expect(notBefore(now.Add(-time.Hour), now)).To(Equal(now))
}

func TestPlaceWindow_retryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	places := map[int64]time.Time{7: ago(70), 8: ago(50), 9: ago(20), 10: ago(10)}
	for name, test := range map[string]struct {
		window   placeWindow
		requests int
		wait     time.Duration
	}{
		"nothing was ever admitted":  {placeWindow{}, 1, 0},
		"fewer than the rate admits": {placeWindow{last: 2, times: map[int64]time.Time{1: ago(5), 2: ago(4)}}, 3, 0},
		"the fourth last has left":   {placeWindow{last: 10, times: places}, 4, 0},
		"the third last has not":     {placeWindow{last: 10, times: places}, 3, 10 * time.Second},
		"the rate was lowered":       {placeWindow{last: 10, times: places}, 1, 50 * time.Second},
		"the next one is swept":      {placeWindow{last: 10, times: map[int64]time.Time{9: ago(20)}}, 3, 0},
		"this batch took the place":  {placeWindow{last: 10, times: places, admitted: 1}, 4, 10 * time.Second},
		"this batch alone fills it":  {placeWindow{admitted: 2}, 2, time.Minute},
		"this batch fills it again":  {placeWindow{last: 10, times: places, admitted: 1}, 1, time.Minute},
		"it leaves exactly now":      {placeWindow{last: 1, times: map[int64]time.Time{1: ago(60)}}, 1, 0},
		"it leaves a microsecond later": {
			placeWindow{last: 1, times: map[int64]time.Time{1: ago(60).Add(time.Microsecond)}}, 1, time.Microsecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rate := verification.Rate{Requests: test.requests, Period: time.Minute}
			NewWithT(t).Expect(test.window.retryAfter(rate, now)).To(Equal(test.wait))
		})
	}
}

func TestPlaceWindow_timesNeverDecrease(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &placeWindow{last: 1, lastAt: now.Add(time.Second), admitted: 1}
	g.Expect(w.retryAfter(verification.Rate{Requests: 1, Period: time.Minute}, now)).To(Equal(61*time.Second), "counted from the admission")
}

func TestDemand_skipsUnlimited(t *testing.T) {
	g := NewWithT(t)
	number, err := phone.FromE164("+4915123456789")
	g.Expect(err).NotTo(HaveOccurred())
	calls := []*call[creation, verification.Created]{
		{in: creation{New: verification.New{Phone: number, KeyName: "shop", Subject: "ada"}}}, {in: creation{New: verification.New{Phone: number}}},
	}
	one, two := verification.Rate{Requests: 1, Period: time.Minute}, verification.Rate{Requests: 2, Period: time.Hour}
	limits := verification.Limits{PerKey: one}
	g.Expect(demandOfNumbers(calls, limits)).To(BeZero())
	g.Expect(demandOfGroups(calls, limits)).To(BeZero())
	limits.PerPhoneNumber, limits.PerSubject = two, one
	g.Expect(demandOfNumbers(calls, limits)).To(Equal(placeDemand{
		names: []string{"+4915123456789"}, rates: []verification.Rate{two}, requests: []int64{2}, calls: []int64{2},
	}))
	g.Expect(demandOfGroups(calls, limits).names).To(Equal([]string{"subject ada"}))
	limits.PerPrefix = verification.PrefixRate{Rate: two, Digits: 6}
	g.Expect(demandOfGroups(calls, limits)).To(Equal(placeDemand{
		names: []string{"prefix 491512 ", "prefix 491512 shop", "subject ada"},
		rates: []verification.Rate{two, two, one}, requests: []int64{2, 2, 1}, calls: []int64{1, 1, 1},
	}))
	calls[0].in.Terms.Deliver = verification.DeliverCode
	d := demandOfGroups(calls, verification.Limits{Codes: verification.CodeLimits{PerDay: two}})
	g.Expect(d.names).To(Equal([]string{
		"code number 1h0m0s +4915123456789", "code number 1m0s +4915123456789", "code number 24h0m0s +4915123456789", "codes 1h0m0s shop",
	}))
	g.Expect(d.requests).To(Equal([]int64{3, 1, 5, 2}))
	calls[0].in.Method = verification.Telegram
	d = demandOfGroups(calls, verification.Limits{GatewayCodes: verification.CodeLimits{PerDay: two, Project: one}})
	g.Expect(d.names).To(Equal([]string{
		"code number 1h0m0s +4915123456789", "code number 1m0s +4915123456789", "code number 24h0m0s +4915123456789",
		"codes telegram 1h0m0s shop", "codes telegram project",
	}))
	calls[0].in.Test = true
	g.Expect(demandOfGroups(calls, verification.Limits{Codes: verification.CodeLimits{PerDay: two}})).To(BeZero())
}
