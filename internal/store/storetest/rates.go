package storetest

import (
	"context"
	"errors"
	"strconv"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func rateChecks() []check {
	return []check{
		{name: "admit as many requests per key as configured", run: ratesPerKey},
		{name: "admit as many requests per phone number as configured", run: ratesPerNumber},
		{name: "count the forms of one number as one", run: ratesPerLine},
		{name: "admit as many requests per prefix as configured", run: ratesPerPrefix},
		{name: "limit the prefixes of each key separately", run: ratesPrefixOfKeys},
		{name: "admit as many requests per subject as configured", run: ratesPerSubject},
		{name: "neither limit nor count an id that exists", run: ratesExisting},
		{name: "do not count refused creations", run: ratesRefused},
		{name: "do not count by prefix or subject what another limit refused", run: ratesGroupsRefused},
		{name: "count deleted requests", run: ratesDeleted},
		{name: "are not exceeded by concurrent creations", run: ratesRaced},
		{name: "follow a limit that is changed", run: ratesChanged},
		{name: "return the remaining quota", run: ratesQuota},
	}
}

func perKey(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerKey: verification.Rate{Requests: n, Period: period}}
}

func perNumber(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerPhoneNumber: verification.Rate{Requests: n, Period: period}}
}

func ratesPerKey(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(newProject().Name())
	limits := perKey(3, time.Hour)
	for i := range 3 {
		t.expectAdmitted(ctx, []verification.Store{a, b}[i%2], t.newForKey("one", claimedNumber), limits)
	}
	for _, s := range []verification.Store{a, b} {
		wait := t.expectRefused(ctx, s, t.newForKey("one", claimedNumber), limits, verification.CodeRateLimited)
		t.Expect(wait).To(BeNumerically("<=", time.Hour))
	}
	t.expectAdmitted(ctx, a, t.newForKey("two", claimedNumber), limits)
	t.expectAdmitted(ctx, foreign, t.newForKey("one", claimedNumber), limits)
	t.expectAdmitted(ctx, a, t.newForKey("one", claimedNumber), verification.Limits{})
}

func ratesPerNumber(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(newProject().Name())
	limits := perNumber(2, time.Hour)
	t.expectAdmitted(ctx, a, t.newForKey("one", claimedNumber), limits)
	t.expectAdmitted(ctx, b, t.newForKey("two", claimedNumber), limits)
	t.harness.Settle()
	_, err := a.Create(ctx, t.newForKey("three", claimedNumber), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect(refusal.Field).To(Equal("phoneNumber"), "the refusal names its limit")
	t.expectRefused(ctx, b, t.newForKey("one", claimedNumber), limits, verification.CodeRateLimited)
	t.expectAdmitted(ctx, a, t.newForKey("one", "+4915112345679"), limits)
	t.expectAdmitted(ctx, foreign, t.newForKey("one", claimedNumber), limits)
}

func ratesPerLine(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := perNumber(2, time.Hour)
	for _, forms := range [][2]string{
		{"+5511987654321", "+551187654321"}, {"+525512345678", "+5215512345678"}, {"+541123456789", "+5491123456789"},
	} {
		t.expectAdmitted(ctx, s, t.newForKey("key", forms[0]), limits)
		t.expectAdmitted(ctx, s, t.newForKey("key", forms[1]), limits)
		t.expectRefused(ctx, s, t.newForKey("key", forms[0]), limits, verification.CodeRateLimited)
		t.expectRefused(ctx, s, t.newForKey("key", forms[1]), limits, verification.CodeRateLimited)
	}
	t.expectAdmitted(ctx, s, t.newForKey("key", "+551123456789"), limits)
	t.expectAdmitted(ctx, s, t.newForKey("key", "+551123456789"), limits)
	t.expectAdmitted(ctx, s, t.newForKey("key", "+5511923456789"), limits) // a landline has no ninth digit: this is another line
}

func perPrefix(digits, n int, period time.Duration) verification.Limits {
	return verification.Limits{PerPrefix: verification.PrefixRate{Rate: verification.Rate{Requests: n, Period: period}, Digits: digits}}
}

func perSubject(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerSubject: verification.Rate{Requests: n, Period: period}}
}

// newForSubject returns a creation for that subject.
func (t *trial) newForSubject(subject string) verification.New {
	n := t.newCreation()
	n.Subject = subject
	return n
}

func ratesPerPrefix(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(newProject().Name())
	limits := perPrefix(6, 3, time.Hour)
	for i, number := range []string{"+4915112345670", "+4915112345671", "+4915119999999"} {
		t.expectAdmitted(ctx, []verification.Store{a, b}[i%2], t.newForKey("one", number), limits)
	}
	t.harness.Settle()
	_, err := a.Create(ctx, t.newForKey("one", "+4915110000000"), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect([]string{refusal.Limit, refusal.Field}).To(Equal([]string{verification.LimitPerPrefix, "phoneNumber"}))
	t.expectRefused(ctx, b, t.newForKey("one", "+4915118888888"), limits, verification.CodeRateLimited)
	t.expectAdmitted(ctx, a, t.newForKey("one", "+4915212345678"), limits)
	t.expectAdmitted(ctx, foreign, t.newForKey("one", "+4915112345678"), limits)
	t.expectAdmitted(ctx, a, t.newForKey("one", "+4915112345678"), verification.Limits{})

	for _, number := range []string{"+525512345678", "+5215512345679", "+525512345670"} { // 52155 and 5255 are one range
		t.expectAdmitted(ctx, b, t.newForKey("mexico", number), limits)
	}
	t.expectRefused(ctx, b, t.newForKey("mexico", "+5215512345671"), limits, verification.CodeRateLimited)
	whole := perPrefix(9, 1, time.Hour)
	t.expectAdmitted(ctx, a, t.newForKey("short", "+49151000"), whole)
	t.expectRefused(ctx, a, t.newForKey("short", "+49151000"), whole, verification.CodeRateLimited)
	t.expectAdmitted(ctx, a, t.newForKey("short", "+491510001"), whole)
}

// ratesPrefixOfKeys floods a range through one key, and through none as manual requests do.
func ratesPrefixOfKeys(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := perPrefix(6, 2, time.Hour)
	for _, flooded := range []string{"signup", ""} {
		for _, s := range []verification.Store{a, b} {
			t.expectAdmitted(ctx, s, t.newForKey(flooded, "+4915112345670"), limits)
			t.harness.Settle()
		}
		t.expectRefused(ctx, b, t.newForKey(flooded, "+4915112345671"), limits, verification.CodeRateLimited)
	}
	for _, s := range []verification.Store{a, b} {
		t.expectAdmitted(ctx, s, t.newForKey("checkout", "+4915112345672"), limits)
	}
}

func ratesPerSubject(ctx context.Context, t *trial) {
	a, b, foreign := t.openReplica(), t.openReplica(), t.harness.Open(newProject().Name())
	limits := perSubject(2, time.Hour)
	t.expectAdmitted(ctx, a, t.newForSubject("ada"), limits)
	t.expectAdmitted(ctx, b, t.newForSubject("ada"), limits)
	t.harness.Settle()
	_, err := a.Create(ctx, t.newForSubject("ada"), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect([]string{refusal.Limit, refusal.Field}).To(Equal([]string{verification.LimitPerSubject, "subject"}))
	t.expectRefused(ctx, b, t.newForSubject("ada"), limits, verification.CodeRateLimited)
	t.expectAdmitted(ctx, b, t.newForSubject("bob"), limits)
	t.expectAdmitted(ctx, foreign, t.newForSubject("ada"), limits)
	for range 4 { // requests without a subject do not share one
		t.expectAdmitted(ctx, a, t.newForSubject(""), limits)
	}
	t.expectAdmitted(ctx, a, t.newForSubject("ada"), verification.Limits{})
}

func ratesExisting(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := perKey(2, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = limits.PerKey, limits.PerKey
	limits.PerPrefix = verification.PrefixRate{Rate: limits.PerKey, Digits: 6}
	n := t.newForSubject("ada")
	t.expectAdmitted(ctx, s, n, limits)
	replay := func() {
		for range 5 {
			t.harness.Settle()
			created, err := s.Create(ctx, n, limits)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(created.Existing).To(BeTrue())
		}
	}
	replay() // must not count
	t.expectAdmitted(ctx, s, t.newCreation(), limits)
	t.expectRefused(ctx, s, t.newCreation(), limits, verification.CodeRateLimited)
	replay() // must not be limited
}

// ratesRefused makes each limit refuse repeatedly, and checks that the other limits did not count it.
func ratesRefused(ctx context.Context, t *trial) {
	s := t.openReplica()
	both := perKey(2, time.Hour)
	both.PerPhoneNumber = verification.Rate{Requests: 1, Period: time.Hour}
	both.MaxStored = 2

	t.expectAdmitted(ctx, s, t.newForKey("one", claimedNumber), both)
	for range 4 { // refused for the number, must not count for the key
		t.expectRefused(ctx, s, t.newForKey("one", claimedNumber), both, verification.CodeRateLimited)
	}
	t.expectAdmitted(ctx, s, t.newForKey("one", "+4915112345679"), both)
	for range 4 { // refused for the key, must not count for the number
		t.expectRefused(ctx, s, t.newForKey("one", "+4915112345670"), both, verification.CodeRateLimited)
	}
	for range 4 { // refused for the storage cap, must not count at all
		if t.harness.hasFeature(Cap) {
			t.expectRefused(ctx, s, t.newForKey("two", "+4915112345670"), both, verification.CodeTooManyStored)
		}
	}
	both.MaxStored = 0
	t.expectAdmitted(ctx, s, t.newForKey("two", "+4915112345670"), both)
	t.expectAdmitted(ctx, s, t.newForKey("two", "+4915112345671"), both)
	t.expectRefused(ctx, s, t.newForKey("two", "+4915112345672"), both, verification.CodeRateLimited)
}

// ratesGroupsRefused makes the number, the prefix and the subject refuse repeatedly, and checks that prefix and subject did
// not count it.
func ratesGroupsRefused(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := perPrefix(6, 2, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = verification.Rate{Requests: 1, Period: time.Hour}, limits.PerPrefix.Rate
	from := func(key, subject, number string) verification.New {
		n := t.newForKey(key, number)
		n.Subject = subject
		return n
	}
	t.expectAdmitted(ctx, s, from("one", "ada", "+4915112345670"), limits)
	for range 4 { // refused for the number
		t.expectRefused(ctx, s, from("one", "ada", "+4915112345670"), limits, verification.CodeRateLimited)
	}
	t.expectAdmitted(ctx, s, from("one", "ada", "+4915112345672"), limits)
	for range 4 { // refused for the prefix
		t.expectRefused(ctx, s, from("one", "bob", "+4915112345673"), limits, verification.CodeRateLimited)
	}
	for range 4 { // refused for the subject
		t.expectRefused(ctx, s, from("two", "ada", "+4915212345674"), limits, verification.CodeRateLimited)
	}
	t.expectAdmitted(ctx, s, from("two", "bob", "+4915212345675"), limits)
	t.expectAdmitted(ctx, s, from("two", "bob", "+4915212345676"), limits)
	t.expectRefused(ctx, s, from("two", "eve", "+4915212345677"), limits, verification.CodeRateLimited)
	t.expectRefused(ctx, s, from("two", "bob", "+4915312345677"), limits, verification.CodeRateLimited)
}

func ratesDeleted(ctx context.Context, t *trial) {
	a, b := t.openReplica(), t.openReplica()
	limits := perKey(3, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = limits.PerKey, limits.PerKey
	limits.PerPrefix = verification.PrefixRate{Rate: limits.PerKey, Digits: 6}
	for range 3 {
		r := t.expectAdmitted(ctx, a, t.newForSubject("ada"), limits).Request
		t.harness.Settle()
		t.Expect(b.Delete(ctx, r.ID, r.Version)).To(Succeed())
	}
	t.expectRefused(ctx, a, t.newForKey("backend", "+4915212345679"), limits, verification.CodeRateLimited)
	t.expectRefused(ctx, b, t.newForKey("other", claimedNumber), limits, verification.CodeRateLimited)
	byPrefix := verification.Limits{PerPrefix: limits.PerPrefix}
	t.expectRefused(ctx, b, t.newForKey("backend", "+4915112345679"), byPrefix, verification.CodeRateLimited)
	again := t.newForKey("other", "+4915212345679")
	again.Subject = "ada"
	t.expectRefused(ctx, b, again, limits, verification.CodeRateLimited)
	t.expectAdmitted(ctx, b, t.newForKey("other", "+4915212345679"), limits)
}

func ratesRaced(ctx context.Context, t *trial) {
	const limit = 10
	for number, limits := range map[string]verification.Limits{
		"+4915112345671": perKey(limit, time.Hour), "+4915112345672": perNumber(limit, time.Hour),
		"+4915212345673": perPrefix(6, limit, time.Hour), "+4915112345674": perSubject(limit, time.Hour),
	} {
		creation := func(key string) verification.New {
			n := t.newForKey(key, number)
			if limits.PerSubject.Limited() {
				n.Subject = "raced"
			}
			return n
		}
		stores := t.openReplicas(4)
		raced := "raced-" + number[len(number)-1:] // otherwise the limits of two cases would count the same requests
		_, errs := runRacers(racers, func(i int) (verification.Created, error) {
			key := raced
			if limits.PerPhoneNumber.Limited() || limits.PerSubject.Limited() {
				key = strconv.Itoa(i)
			}
			return stores[i%len(stores)].Create(ctx, creation(key), limits)
		})
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
				continue
			}
			t.Expect(err).To(haveCode(verification.CodeRateLimited))
		}
		if t.harness.hasFeature(ExactLimits) {
			t.Expect(admitted).To(Equal(limit))
		} else {
			t.Expect(admitted).To(And(BeNumerically(">=", limit), BeNumerically("<=", limit*len(stores))))
		}
		for _, s := range stores {
			t.expectRefused(ctx, s, creation(raced), limits, verification.CodeRateLimited)
		}
	}
}

func ratesChanged(ctx context.Context, t *trial) {
	s := t.openReplica()
	for range 4 {
		t.expectAdmitted(ctx, s, t.newCreation(), perKey(4, time.Hour))
	}
	t.expectRefused(ctx, s, t.newCreation(), perKey(4, time.Hour), verification.CodeRateLimited)
	t.expectRefused(ctx, s, t.newCreation(), perKey(2, time.Hour), verification.CodeRateLimited)
	t.expectAdmitted(ctx, s, t.newCreation(), perKey(5, time.Hour))
	t.expectRefused(ctx, s, t.newCreation(), perKey(5, time.Hour), verification.CodeRateLimited)
}

func ratesQuota(ctx context.Context, t *trial) {
	s := t.openReplica()
	limits := perKey(3, time.Hour)
	first := t.expectAdmitted(ctx, s, t.newCreation(), limits)
	for left := range 3 {
		created := first
		if left > 0 {
			t.passTime(ctx, t.harness.Tick/10)
			created = t.expectAdmitted(ctx, s, t.newCreation(), limits)
		}
		t.Expect(created.Key.Remaining).To(Equal(2 - left))
		elapsed := created.Request.CreatedAt.Sub(first.Request.CreatedAt)
		t.Expect(created.Key.Reset).To(BeNumerically("~", time.Hour-elapsed, 10*time.Millisecond), "until the oldest leaves")
	}
	t.Expect(t.expectAdmitted(ctx, s, t.newCreation(), perNumber(9, time.Hour)).Key).To(BeZero(), "only a limit per key has a quota")
}
