package storetest

import (
	"context"
	"errors"
	"strconv"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func rates() []check {
	return []check{
		{name: "admit as many requests per key as they say", run: ratesPerKey},
		{name: "admit as many requests per phone number as they say", run: ratesPerNumber},
		{name: "count the forms of one number as one", run: ratesPerLine},
		{name: "admit as many requests per prefix as they say", run: ratesPerPrefix},
		{name: "leave a key the prefixes that another has used up", run: ratesPrefixOfKeys},
		{name: "admit as many requests per subject as they say", run: ratesPerSubject},
		{name: "neither limit nor count an id that exists", run: ratesExisting},
		{name: "do not count what they refused", run: ratesRefused},
		{name: "count nothing by prefix or subject that another refused", run: ratesGroupsRefused},
		{name: "count deleted requests", run: ratesDeleted},
		{name: "are not exceeded by creators that race", run: ratesRaced},
		{name: "follow a limit that is changed", run: ratesChanged},
		{name: "tell what is left", run: ratesQuota},
	}
}

func perKey(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerKey: verification.Rate{Requests: n, Period: period}}
}

func perNumber(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerPhoneNumber: verification.Rate{Requests: n, Period: period}}
}

func ratesPerKey(ctx context.Context, t *trial) {
	a, b, foreign := t.open(), t.open(), t.harness.Open(newProject().Name())
	limits := perKey(3, time.Hour)
	for i := range 3 {
		t.admitted(ctx, []verification.Store{a, b}[i%2], t.with("one", claimed), limits)
	}
	for _, s := range []verification.Store{a, b} {
		wait := t.refused(ctx, s, t.with("one", claimed), limits, verification.CodeRateLimited)
		t.Expect(wait).To(BeNumerically("<=", time.Hour))
	}
	t.admitted(ctx, a, t.with("two", claimed), limits)
	t.admitted(ctx, foreign, t.with("one", claimed), limits)
	t.admitted(ctx, a, t.with("one", claimed), verification.Limits{})
}

func ratesPerNumber(ctx context.Context, t *trial) {
	a, b, foreign := t.open(), t.open(), t.harness.Open(newProject().Name())
	limits := perNumber(2, time.Hour)
	t.admitted(ctx, a, t.with("one", claimed), limits)
	t.admitted(ctx, b, t.with("two", claimed), limits)
	t.harness.Settle()
	_, err := a.Create(ctx, t.with("three", claimed), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect(refusal.Field).To(Equal("phoneNumber"), "it names the limit that refuses")
	t.refused(ctx, b, t.with("one", claimed), limits, verification.CodeRateLimited)
	t.admitted(ctx, a, t.with("one", "+4915112345679"), limits)
	t.admitted(ctx, foreign, t.with("one", claimed), limits)
}

func ratesPerLine(ctx context.Context, t *trial) {
	s := t.open()
	limits := perNumber(2, time.Hour)
	for _, forms := range [][2]string{
		{"+5511987654321", "+551187654321"}, {"+525512345678", "+5215512345678"}, {"+541123456789", "+5491123456789"},
	} {
		t.admitted(ctx, s, t.with("key", forms[0]), limits)
		t.admitted(ctx, s, t.with("key", forms[1]), limits)
		t.refused(ctx, s, t.with("key", forms[0]), limits, verification.CodeRateLimited)
		t.refused(ctx, s, t.with("key", forms[1]), limits, verification.CodeRateLimited)
	}
	t.admitted(ctx, s, t.with("key", "+551123456789"), limits)
	t.admitted(ctx, s, t.with("key", "+551123456789"), limits)
	t.admitted(ctx, s, t.with("key", "+5511923456789"), limits) // a landline has no ninth digit: this is another line
}

func perPrefix(digits, n int, period time.Duration) verification.Limits {
	return verification.Limits{PerPrefix: verification.PrefixRate{Rate: verification.Rate{Requests: n, Period: period}, Digits: digits}}
}

func perSubject(n int, period time.Duration) verification.Limits {
	return verification.Limits{PerSubject: verification.Rate{Requests: n, Period: period}}
}

// of returns a creation for that subject.
func (t *trial) of(subject string) verification.New {
	n := t.new()
	n.Subject = subject
	return n
}

func ratesPerPrefix(ctx context.Context, t *trial) {
	a, b, foreign := t.open(), t.open(), t.harness.Open(newProject().Name())
	limits := perPrefix(6, 3, time.Hour)
	for i, number := range []string{"+4915112345670", "+4915112345671", "+4915119999999"} {
		t.admitted(ctx, []verification.Store{a, b}[i%2], t.with("one", number), limits)
	}
	t.harness.Settle()
	_, err := a.Create(ctx, t.with("one", "+4915110000000"), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect([]string{refusal.Limit, refusal.Field}).To(Equal([]string{verification.LimitPerPrefix, "phoneNumber"}))
	t.refused(ctx, b, t.with("one", "+4915118888888"), limits, verification.CodeRateLimited)
	t.admitted(ctx, a, t.with("one", "+4915212345678"), limits)
	t.admitted(ctx, foreign, t.with("one", "+4915112345678"), limits)
	t.admitted(ctx, a, t.with("one", "+4915112345678"), verification.Limits{})

	for _, number := range []string{"+525512345678", "+5215512345679", "+525512345670"} { // 52155 and 5255 are one range
		t.admitted(ctx, b, t.with("mexico", number), limits)
	}
	t.refused(ctx, b, t.with("mexico", "+5215512345671"), limits, verification.CodeRateLimited)
	whole := perPrefix(9, 1, time.Hour)
	t.admitted(ctx, a, t.with("short", "+49151000"), whole)
	t.refused(ctx, a, t.with("short", "+49151000"), whole, verification.CodeRateLimited)
	t.admitted(ctx, a, t.with("short", "+491510001"), whole)
}

// ratesPrefixOfKeys floods a range through one key, and through none, as what is made with kubectl.
func ratesPrefixOfKeys(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	limits := perPrefix(6, 2, time.Hour)
	for _, flooded := range []string{"signup", ""} {
		for _, s := range []verification.Store{a, b} {
			t.admitted(ctx, s, t.with(flooded, "+4915112345670"), limits)
			t.harness.Settle()
		}
		t.refused(ctx, b, t.with(flooded, "+4915112345671"), limits, verification.CodeRateLimited)
	}
	for _, s := range []verification.Store{a, b} {
		t.admitted(ctx, s, t.with("checkout", "+4915112345672"), limits)
	}
}

func ratesPerSubject(ctx context.Context, t *trial) {
	a, b, foreign := t.open(), t.open(), t.harness.Open(newProject().Name())
	limits := perSubject(2, time.Hour)
	t.admitted(ctx, a, t.of("ada"), limits)
	t.admitted(ctx, b, t.of("ada"), limits)
	t.harness.Settle()
	_, err := a.Create(ctx, t.of("ada"), limits)
	var refusal *verification.Error
	t.Expect(errors.As(err, &refusal)).To(BeTrue())
	t.Expect([]string{refusal.Limit, refusal.Field}).To(Equal([]string{verification.LimitPerSubject, "subject"}))
	t.refused(ctx, b, t.of("ada"), limits, verification.CodeRateLimited)
	t.admitted(ctx, b, t.of("bob"), limits)
	t.admitted(ctx, foreign, t.of("ada"), limits)
	for range 4 { // requests without a subject are not of one subject
		t.admitted(ctx, a, t.of(""), limits)
	}
	t.admitted(ctx, a, t.of("ada"), verification.Limits{})
}

func ratesExisting(ctx context.Context, t *trial) {
	s := t.open()
	limits := perKey(2, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = limits.PerKey, limits.PerKey
	limits.PerPrefix = verification.PrefixRate{Rate: limits.PerKey, Digits: 6}
	n := t.of("ada")
	t.admitted(ctx, s, n, limits)
	replay := func() {
		for range 5 {
			t.harness.Settle()
			created, err := s.Create(ctx, n, limits)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(created.Existing).To(BeTrue())
		}
	}
	replay() // must not count
	t.admitted(ctx, s, t.new(), limits)
	t.refused(ctx, s, t.new(), limits, verification.CodeRateLimited)
	replay() // must not be limited
}

// ratesRefused has each limit refuse, many times, and asks the others whether they counted it.
func ratesRefused(ctx context.Context, t *trial) {
	s := t.open()
	both := perKey(2, time.Hour)
	both.PerPhoneNumber = verification.Rate{Requests: 1, Period: time.Hour}
	both.MaxStored = 2

	t.admitted(ctx, s, t.with("one", claimed), both)
	for range 4 { // refused for the number, not to be counted for the key
		t.refused(ctx, s, t.with("one", claimed), both, verification.CodeRateLimited)
	}
	t.admitted(ctx, s, t.with("one", "+4915112345679"), both)
	for range 4 { // refused for the key, not to be counted for the number
		t.refused(ctx, s, t.with("one", "+4915112345670"), both, verification.CodeRateLimited)
	}
	for range 4 { // refused for the room, not to be counted at all
		if !t.harness.Uncapped {
			t.refused(ctx, s, t.with("two", "+4915112345670"), both, verification.CodeTooManyStored)
		}
	}
	both.MaxStored = 0
	t.admitted(ctx, s, t.with("two", "+4915112345670"), both)
	t.admitted(ctx, s, t.with("two", "+4915112345671"), both)
	t.refused(ctx, s, t.with("two", "+4915112345672"), both, verification.CodeRateLimited)
}

// ratesGroupsRefused has the number, the prefix and the subject refuse, many times, and asks prefix and subject whether
// they counted it.
func ratesGroupsRefused(ctx context.Context, t *trial) {
	s := t.open()
	limits := perPrefix(6, 2, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = verification.Rate{Requests: 1, Period: time.Hour}, limits.PerPrefix.Rate
	from := func(key, subject, number string) verification.New {
		n := t.with(key, number)
		n.Subject = subject
		return n
	}
	t.admitted(ctx, s, from("one", "ada", "+4915112345670"), limits)
	for range 4 { // refused for the number
		t.refused(ctx, s, from("one", "ada", "+4915112345670"), limits, verification.CodeRateLimited)
	}
	t.admitted(ctx, s, from("one", "ada", "+4915112345672"), limits)
	for range 4 { // refused for the prefix
		t.refused(ctx, s, from("one", "bob", "+4915112345673"), limits, verification.CodeRateLimited)
	}
	for range 4 { // refused for the subject
		t.refused(ctx, s, from("two", "ada", "+4915212345674"), limits, verification.CodeRateLimited)
	}
	t.admitted(ctx, s, from("two", "bob", "+4915212345675"), limits)
	t.admitted(ctx, s, from("two", "bob", "+4915212345676"), limits)
	t.refused(ctx, s, from("two", "eve", "+4915212345677"), limits, verification.CodeRateLimited)
	t.refused(ctx, s, from("two", "bob", "+4915312345677"), limits, verification.CodeRateLimited)
}

func ratesDeleted(ctx context.Context, t *trial) {
	a, b := t.open(), t.open()
	limits := perKey(3, time.Hour)
	limits.PerPhoneNumber, limits.PerSubject = limits.PerKey, limits.PerKey
	limits.PerPrefix = verification.PrefixRate{Rate: limits.PerKey, Digits: 6}
	for range 3 {
		r := t.admitted(ctx, a, t.of("ada"), limits).Request
		t.harness.Settle()
		t.Expect(b.Delete(ctx, r.ID, r.Version)).To(Succeed())
	}
	t.refused(ctx, a, t.with("backend", "+4915212345679"), limits, verification.CodeRateLimited)
	t.refused(ctx, b, t.with("other", claimed), limits, verification.CodeRateLimited)
	byPrefix := verification.Limits{PerPrefix: limits.PerPrefix}
	t.refused(ctx, b, t.with("backend", "+4915112345679"), byPrefix, verification.CodeRateLimited)
	again := t.with("other", "+4915212345679")
	again.Subject = "ada"
	t.refused(ctx, b, again, limits, verification.CodeRateLimited)
	t.admitted(ctx, b, t.with("other", "+4915212345679"), limits)
}

func ratesRaced(ctx context.Context, t *trial) {
	const limit = 10
	for number, limits := range map[string]verification.Limits{
		"+4915112345671": perKey(limit, time.Hour), "+4915112345672": perNumber(limit, time.Hour),
		"+4915212345673": perPrefix(6, limit, time.Hour), "+4915112345674": perSubject(limit, time.Hour),
	} {
		creation := func(key string) verification.New {
			n := t.with(key, number)
			if limits.PerSubject.Limited() {
				n.Subject = "raced"
			}
			return n
		}
		stores := t.replicas(4)
		raced := "raced-" + number[len(number)-1:] // or the limits of two cases would count the same requests
		_, errs := race(racers, func(i int) (verification.Created, error) {
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
		if t.harness.BoundedOvershoot {
			t.Expect(admitted).To(And(BeNumerically(">=", limit), BeNumerically("<=", limit*len(stores))))
		} else {
			t.Expect(admitted).To(Equal(limit))
		}
		for _, s := range stores {
			t.refused(ctx, s, creation(raced), limits, verification.CodeRateLimited)
		}
	}
}

func ratesChanged(ctx context.Context, t *trial) {
	s := t.open()
	for range 4 {
		t.admitted(ctx, s, t.new(), perKey(4, time.Hour))
	}
	t.refused(ctx, s, t.new(), perKey(4, time.Hour), verification.CodeRateLimited)
	t.refused(ctx, s, t.new(), perKey(2, time.Hour), verification.CodeRateLimited)
	t.admitted(ctx, s, t.new(), perKey(5, time.Hour))
	t.refused(ctx, s, t.new(), perKey(5, time.Hour), verification.CodeRateLimited)
}

func ratesQuota(ctx context.Context, t *trial) {
	s := t.open()
	limits := perKey(3, time.Hour)
	first := t.admitted(ctx, s, t.new(), limits)
	for left := range 3 {
		created := first
		if left > 0 {
			t.pass(ctx, t.harness.Tick/10)
			created = t.admitted(ctx, s, t.new(), limits)
		}
		t.Expect(created.Key.Remaining).To(Equal(2 - left))
		elapsed := created.Request.CreatedAt.Sub(first.Request.CreatedAt)
		t.Expect(created.Key.Reset).To(BeNumerically("~", time.Hour-elapsed, 10*time.Millisecond), "until the oldest leaves")
	}
	t.Expect(t.admitted(ctx, s, t.new(), perNumber(9, time.Hour)).Key).To(BeZero(), "only a limit per key leaves something")
}
