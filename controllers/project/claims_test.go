package project

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("Claims on an account", func() {
	const account = "telegram:x_bot"
	now := time.Unix(1_800_000_000, 0)
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	// named returns a project of that age that names the account, with the claim in its status.
	named := func(name string, age time.Duration, claimed *time.Time) verifyv1.VerificationProject {
		p := newProject("shop", name)
		p.UID, p.CreationTimestamp = types.UID(name), metav1.NewTime(now.Add(-age))
		p.Spec.Telegram.BotUsername = "X_bot"
		p.Status.ObservedGeneration = -1
		if claimed != nil {
			p.Status.Claims = []verifyv1.AccountClaim{newAccountClaim(account, *claimed)}
		}
		return *p
	}
	moved := func(p verifyv1.VerificationProject) verifyv1.VerificationProject {
		p.Status.Claims = []verifyv1.AccountClaim{newAccountClaim("telegram:former_bot", now.Add(-time.Hour))}
		return p
	}
	at := func(list ...verifyv1.VerificationProject) (out []*verifyv1.VerificationProject) {
		for i := range list {
			out = append(out, &list[i])
		}
		return out
	}
	names := func(list []claim) (out []string) {
		for _, c := range list {
			out = append(out, c.project.Name)
		}
		return out
	}

	DescribeTable("are ordered by the time since the spec has named it",
		func(want string, rivals ...verifyv1.VerificationProject) {
			Expect(names(orderClaims(at(rivals...), account, nil, now))[0]).To(Equal(want))
		},
		Entry("only one project", "a", named("a", time.Hour, nil)),
		Entry("an old project that names it only now comes after a young one", "young",
			named("old", 1000*time.Hour, nil), named("young", time.Hour, ago(time.Minute))),
		Entry("also where its status holds a claim on another account", "young",
			moved(named("old", 1000*time.Hour, nil)), named("young", time.Hour, ago(time.Minute))),
		Entry("the older claim, whatever the age of the projects", "young",
			named("old", 1000*time.Hour, ago(time.Minute)), named("young", time.Hour, ago(2*time.Minute))),
		Entry("no claim is older than its project", "a",
			named("a", 2*time.Hour, ago(2*time.Hour)), named("b", time.Hour, ago(1000*time.Hour))),
		Entry("two new projects, by creation", "b", named("a", 0, nil), named("b", time.Second, nil)),
		Entry("two of the same second, by name", "a", named("b", 0, nil), named("a", 0, nil)),
		Entry("two claims of the same time, by creation", "b",
			named("a", time.Hour, ago(time.Minute)), named("b", 2*time.Hour, ago(time.Minute))),
		Entry("a former clock was ahead: a new claim is still newer", "b",
			named("a", time.Hour, nil), named("b", time.Minute, ago(-time.Minute))),
		Entry("a time in the far future does not block others", "a",
			named("a", time.Hour, nil), named("b", time.Minute, ago(-24*time.Hour))),
	)

	It("are kept until the status shows them, lost when the spec drops the account, and new when it names it again", func() {
		var c claims
		a, b := named("a", time.Minute, nil), named("b", time.Hour, nil)
		first := c.recordClaims(at(a), account, now)
		Expect(first[0].since).To(BeTemporally("==", now))
		later := c.recordClaims(at(b, a), account, now.Add(-time.Second))
		Expect(names(later)).To(Equal([]string{"a", "b"}), "the cache shows neither claim")
		Expect(later[0].since).To(Equal(first[0].since))
		Expect(later[1].since).To(BeTemporally(">", first[0].since), "though the clock went back")

		c.release(&a)
		Expect(c.made).To(HaveKey(a.UID))
		a.Status.Claims = []verifyv1.AccountClaim{newAccountClaim(account, first[0].since)}
		c.release(&a)
		Expect(c.made).NotTo(HaveKey(a.UID))
		Expect(names(c.recordClaims(at(b, a), account, now))).To(Equal([]string{"a", "b"}))

		a.Spec.Telegram.BotUsername = "another_bot"
		a.Status.Claims = nil
		c.release(&a)
		Expect(names(c.recordClaims(at(b), account, now))).To(Equal([]string{"b"}))
		a.Spec.Telegram.BotUsername = "x_bot"
		Expect(names(c.recordClaims(at(a, b), account, now))).To(Equal([]string{"b", "a"}))

		c.forgetClaims(a.UID)
		c.forgetClaims(b.UID)
		Expect(c.made).To(BeEmpty())
	})
})
