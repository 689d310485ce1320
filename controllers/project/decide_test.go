package project

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

var _ = Describe("A decision", func() {
	// Each entry breaks the rule that it names; the first broken rule decides.
	const (
		invalid   = "invalid"
		forbidden = "forbidden"
		held      = "held"
		granted   = "granted"
		suspend   = "suspended"
	)
	DescribeTable("is made by the first broken rule",
		func(want action, reason string, wrong ...string) {
			project := newProject("shop", "shop")
			project.UID = "own"
			project.Default()
			o := &observed{project: project, accounts: []account{{name: "telegram:x_bot"}}}
			permissions := &Permissions{ServiceTypes: []string{"ClusterIP"}}
			for _, what := range wrong {
				switch what {
				case invalid:
					project.Spec.APIKeys = nil
				case forbidden:
					project.Spec.Server.PriorityClassName = "high"
				case held:
					o.accounts[0].holder = &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{UID: "other"}}
				case granted:
					permissions.AccountGrants = []Grant{{"other", "telegram:x_bot"}}
				case suspend:
					project.Spec.Suspend = new(true)
				}
			}
			d := decideAction(o, permissions)
			Expect(d.action).To(Equal(want))
			if reason == "" {
				Expect(d.blocker).To(BeNil())
				return
			}
			Expect(d.blocker.reason).To(Equal(reason))
		},
		Entry("none", carryOut, ""),
		Entry("suspend", carryOut, verifyv1.ReasonSuspended, suspend),
		Entry("suspend, also of a spec that must not be rendered", stop, verifyv1.ReasonSuspended, suspend, invalid),
		Entry("suspend, also of a spec that is not permitted", stop, verifyv1.ReasonSuspended, suspend, forbidden),
		Entry("suspend, also without the account", carryOut, verifyv1.ReasonSuspended, suspend, held),
		Entry("an invalid spec", keep, verifyv1.ReasonInvalidSpec, invalid, forbidden),
		Entry("a spec that is not permitted", keep, verifyv1.ReasonNotPermitted, forbidden),
		Entry("an older claim of another project: running pods stay", keep, verifyv1.ReasonAccountInUse, held),
		Entry("an older claim, after the problems of the project itself", keep, verifyv1.ReasonInvalidSpec, held, invalid),
		Entry("a grant of the account to another namespace", stop, verifyv1.ReasonNotPermitted, granted, held),
		Entry("the same for an invalid spec, because the pods follow it", stop, verifyv1.ReasonNotPermitted, granted, invalid),
		Entry("suspend, also without a grant", carryOut, verifyv1.ReasonSuspended, suspend, granted),
	)

	It("compares bots without regard to case, and WhatsApp numbers by their ID", func() {
		project := newProject("shop", "shop")
		project.Spec.Telegram.BotUsername = "Ada_Books_BOT"
		project.Spec.WhatsApp = whatsApp("007")
		Expect(listAccounts(&project.Spec)).To(Equal([]string{"whatsapp:007", "telegram:ada_books_bot"}))
	})
})

var _ = Describe("The pace", func() {
	It("allows a few corrections and then one per interval, for each project", func() {
		var p pace
		now := time.Unix(1_800_000_000, 0)
		project := newProject("shop", "shop")
		project.UID = "own"
		for range correctionBurst {
			Expect(p.delay(project, now)).To(BeZero())
			p.recordCorrection(project, now)
		}
		Expect(p.delay(project, now)).To(BeNumerically("~", correctionInterval, time.Second))
		Expect(p.delay(project, now.Add(correctionInterval))).To(BeZero())

		other := newProject("shop", "other")
		other.UID = "other"
		Expect(p.delay(other, now)).To(BeZero())
		project.Generation = 2
		Expect(p.delay(project, now)).To(BeZero(), "its own change is no correction")

		p.recordCorrection(other, now.Add(time.Hour))
		Expect(p.limits).To(HaveLen(1), "full limiters are forgotten")
		p.forget(other.UID)
		Expect(p.limits).To(BeEmpty())
	})

	It("detects that another client has overwritten the status", func() {
		var p pace
		list := []metav1.Condition{{Type: verifyv1.ConditionReady, Reason: verifyv1.ReasonReady}}
		others := []metav1.Condition{{Type: verifyv1.ConditionReady, Reason: verifyv1.ReasonProgressing}}
		Expect(p.recordStatement("own", 1, list)).To(BeFalse())
		Expect(p.recordStatement("other", 1, list)).To(BeFalse())
		Expect(p.recordStatement("own", 1, slices.Clone(list))).To(BeTrue())
		Expect(p.recordStatement("own", 2, list)).To(BeFalse())
		Expect(p.recordStatement("own", 2, others)).To(BeFalse())
		Expect(p.recordStatement("own", 2, list)).To(BeFalse(), "alternating conditions are no repetition")
		p.forget("own")
		Expect(p.recordStatement("own", 2, list)).To(BeFalse())
	})
})
