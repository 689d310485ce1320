package projectstatus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

var (
	earlier = metav1.NewTime(time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(earlier.Add(time.Hour))
)

// simpleSettings returns the settings of a project with a messenger and no problems.
func simpleSettings() *settings.Settings {
	return &settings.Settings{Project: "books/shop", Generation: 7, WhatsApp: &settings.WhatsApp{}}
}

// condition returns one that was judged by generation 3, and has not changed since earlier.
func condition(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: "as it was", ObservedGeneration: 3, LastTransitionTime: earlier,
	}
}

func conditionsByType(conditions ...metav1.Condition) map[string]*metav1.Condition {
	all := map[string]*metav1.Condition{}
	for _, c := range conditions {
		all[c.Type] = &c
	}
	return all
}

func typesOf(conditions []metav1.Condition) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Type)
	}
	return all
}

func TestJudge_unjudgedConditionsStay(t *testing.T) {
	g := NewWithT(t)
	present := []metav1.Condition{
		condition(verifyv1.ConditionSecretsReady, metav1.ConditionTrue, verifyv1.ReasonSecretsRead),
		condition(verifyv1.ConditionStorageReady, metav1.ConditionFalse, verifyv1.ReasonStorageFull),
		condition(verifyv1.ConditionWhatsAppReady, metav1.ConditionTrue, verifyv1.ReasonRegistered),
	}
	wanted := judgeConditions(observation{settings: simpleSettings(), learned: learned{conditions: conditionsByType()}, present: present}, now)
	g.Expect(wanted).To(HaveLen(3))
	g.Expect(wanted[0]).To(Equal(metav1.Condition{
		Type: verifyv1.ConditionSecretsReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonSecretsRead,
		Message: "every referenced Secret and key can be used", ObservedGeneration: 7, LastTransitionTime: earlier,
	}), "judged by the present generation, since the old time")
	g.Expect(wanted[1:]).To(Equal(present[1:]), "including the generation they were judged by")
}

func TestJudge_timeOfTheLastTransition(t *testing.T) {
	for name, tc := range map[string]struct {
		present []metav1.Condition
		want    metav1.Time
	}{
		"new":            {nil, now},
		"another status": {[]metav1.Condition{condition(verifyv1.ConditionWhatsAppReady, metav1.ConditionFalse, "Any")}, now},
		"another reason": {[]metav1.Condition{condition(verifyv1.ConditionWhatsAppReady, metav1.ConditionTrue, "Any")}, earlier},
		"it was unknown": {[]metav1.Condition{condition(verifyv1.ConditionWhatsAppReady, metav1.ConditionUnknown, "Any")}, now},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			board := NewBoard()
			board.Set(metav1.Condition{
				Type: verifyv1.ConditionWhatsAppReady, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonRegistered,
				ObservedGeneration: 5, LastTransitionTime: metav1.NewTime(now.Add(time.Hour)),
			})
			wanted := judgeConditions(observation{settings: simpleSettings(), learned: board.snapshot(), present: tc.present}, now)
			g.Expect(typesOf(wanted)).To(Equal([]string{verifyv1.ConditionSecretsReady, verifyv1.ConditionWhatsAppReady}))
			g.Expect(wanted[1].LastTransitionTime).To(Equal(tc.want))
			g.Expect(wanted[1].ObservedGeneration).To(BeEquivalentTo(5), "the generation that it was judged by")
		})
	}
}

func TestJudge_removesWhatDoesNotApply(t *testing.T) {
	g := NewWithT(t)
	var present []metav1.Condition
	for _, conditionType := range served {
		present = append(present, condition(conditionType, metav1.ConditionTrue, "Any"))
	}
	of := func(s *settings.Settings, l learned) []string {
		return typesOf(judgeConditions(observation{settings: s, learned: l, present: present}, now))
	}
	everything := &settings.Settings{
		WhatsApp: &settings.WhatsApp{Codes: &settings.Codes{}}, Telegram: &settings.Telegram{Codes: &settings.GatewayCodes{}}, Webhook: &settings.Webhook{}, Simulated: true,
		LimitsContradiction: "the keys can fill the store",
	}
	everything.Webhook.TestUnsigned = true
	g.Expect(of(everything, learned{conditions: conditionsByType()})).To(Equal(served))
	withWhatsApp := []string{
		verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady, verifyv1.ConditionWhatsAppReady, verifyv1.ConditionSilent,
	}
	g.Expect(of(simpleSettings(), learned{conditions: conditionsByType()})).To(Equal(withWhatsApp))
	withdrawn := NewBoard()
	withdrawn.Withdraw(verifyv1.ConditionWhatsAppReady)
	withdrawn.Withdraw(verifyv1.ConditionSilent)
	g.Expect(of(simpleSettings(), withdrawn.snapshot())).To(Equal(served[:2]))
	late := conditionsByType(condition(verifyv1.ConditionTelegramReady, metav1.ConditionTrue, "Any"))
	g.Expect(of(simpleSettings(), learned{conditions: late})).To(Equal(withWhatsApp), "set before the account was removed")
}

func TestJudge_storage(t *testing.T) {
	g := NewWithT(t)
	for _, v := range []verdict{
		verdictOf(nil, false), verdictOf(errors.New("broken"), false), verdictOf(verification.TooManyStored(time.Second), false),
	} {
		wanted := judgeConditions(observation{settings: simpleSettings(), learned: learned{conditions: conditionsByType(), storage: &v}}, now)
		g.Expect(typesOf(wanted)).To(Equal([]string{verifyv1.ConditionSecretsReady, verifyv1.ConditionStorageReady}))
		g.Expect(wanted[1].Reason).To(Equal(v.reason))
		g.Expect(wanted[1].Message).To(Equal(v.message))
		g.Expect(wanted[1].Status).To(Equal(map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[v.isGood()]))
		g.Expect(wanted[1].ObservedGeneration).To(BeEquivalentTo(7))
	}
}

func TestJudge_theSameAgainIsTheSame(t *testing.T) {
	g := NewWithT(t)
	v := verdictOf(nil, false)
	o := observation{
		settings: &settings.Settings{Generation: 7, WhatsApp: &settings.WhatsApp{}, Webhook: &settings.Webhook{}, Simulated: true},
		learned: learned{
			storage: &v, receiver: evidence{state: receiverFailing, failures: 9, cause: "timeout"},
			conditions: conditionsByType(condition(verifyv1.ConditionWhatsAppReady, metav1.ConditionTrue, verifyv1.ReasonRegistered)),
		},
	}
	first := judgeConditions(o, now)
	g.Expect(first).To(HaveLen(5))
	o.present, o.learned.receiver.cause = first, "http_500"
	second := judgeConditions(o, metav1.NewTime(now.Add(time.Hour)))
	g.Expect(equalConditions(first, second)).To(BeTrue(), "%v", second)
	for i := range first {
		other := append([]metav1.Condition(nil), first...)
		other[i].LastTransitionTime = earlier
		g.Expect(equalConditions(first, other)).To(BeFalse())
		other[i] = first[i]
		other[i].ObservedGeneration++
		g.Expect(equalConditions(first, other)).To(BeFalse())
	}
	g.Expect(equalConditions(first, first[1:])).To(BeFalse())
}

func TestJudge_limitsThatContradict(t *testing.T) {
	g := NewWithT(t)
	s := simpleSettings()
	s.LimitsContradiction, s.LimitsCommand = "the keys can fill the store", "kubectl patch"
	wanted := judgeConditions(observation{settings: s, learned: learned{conditions: conditionsByType()}}, now)
	g.Expect(wanted).To(ContainElement(metav1.Condition{
		Type: verifyv1.ConditionLimitsContradict, Status: metav1.ConditionTrue, Reason: verifyv1.ReasonKeysFillStore,
		Message: "the keys can fill the store. To remove it, run: kubectl patch", ObservedGeneration: 7, LastTransitionTime: now,
	}))
	g.Expect(findTransitions(nil, wanted)).To(ContainElement(HaveField("Type", verifyv1.ConditionLimitsContradict)), "an Event reports it")
	g.Expect(typesOf(judgeConditions(observation{settings: simpleSettings(), learned: learned{conditions: conditionsByType()}, present: wanted}, now))).
		NotTo(ContainElement(verifyv1.ConditionLimitsContradict), "it is removed with its cause")
}

func TestSecretsReady(t *testing.T) {
	problem := func(key string, reason settings.Reason) settings.Problem {
		return settings.Problem{Field: "spec." + key, Secret: "shop", Key: key, Reason: reason}
	}
	for name, tc := range map[string]struct {
		problems []settings.Problem
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		"all is well": {nil, metav1.ConditionTrue, verifyv1.ReasonSecretsRead, "every referenced Secret and key can be used"},
		"missing": {
			[]settings.Problem{problem("app", settings.ReasonMissing)}, metav1.ConditionFalse, verifyv1.ReasonSecretMissing,
			"spec.app: Secret shop, key app is missing",
		},
		"not mounted yet": {
			[]settings.Problem{problem("app", settings.ReasonNotMounted)}, metav1.ConditionUnknown, verifyv1.ReasonAwaitingRollout,
			"spec.app: Secret shop, key app is not mounted into this pod yet",
		},
		"missing and not mounted": {
			[]settings.Problem{problem("app", settings.ReasonNotMounted), problem("bot", settings.ReasonMissing)},
			metav1.ConditionFalse, verifyv1.ReasonSecretMissing,
			"spec.app: Secret shop, key app is not mounted into this pod yet; spec.bot: Secret shop, key bot is missing",
		},
		"empty and missing": {
			[]settings.Problem{problem("app", settings.ReasonEmpty), problem("bot", settings.ReasonMissing)},
			metav1.ConditionFalse, verifyv1.ReasonSecretMissing,
			"spec.app: Secret shop, key app is empty; spec.bot: Secret shop, key bot is missing",
		},
		"no certificate": {
			[]settings.Problem{problem("ca", settings.ReasonNoCertificate)}, metav1.ConditionFalse, verifyv1.ReasonSecretInvalid,
			"spec.ca: Secret shop, key ca holds no certificate in PEM form",
		},
		"a short webhook secret": {
			[]settings.Problem{problem("webhook", settings.ReasonWebhookSecretTooShort)}, metav1.ConditionFalse, verifyv1.ReasonSecretInvalid,
			"spec.webhook: Secret shop, key webhook is too short, a webhook secret has 24 bytes or more (after whsec_ as base64): " +
				"phoneproof keygen --webhook makes one",
		},
		"a webhook secret that is not base64": {
			[]settings.Problem{problem("webhook", settings.ReasonNotBase64)}, metav1.ConditionFalse, verifyv1.ReasonSecretInvalid,
			"spec.webhook: Secret shop, key webhook is not base64 after whsec_: phoneproof keygen --webhook makes one that is",
		},
		"invalid and not mounted": {
			[]settings.Problem{problem("app", settings.ReasonInvalid), problem("bot", settings.ReasonNotMounted)},
			metav1.ConditionFalse, verifyv1.ReasonSecretInvalid,
			"spec.app: Secret shop, key app is not in the form of such a secret, perhaps for a space or line break inside; " +
				"spec.bot: Secret shop, key bot is not mounted into this pod yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(secretsReady(tc.problems)).To(Equal(metav1.Condition{
				Type: verifyv1.ConditionSecretsReady, Status: tc.status, Reason: tc.reason, Message: tc.message,
			}))
		})
	}
}

func TestSecretsReady_namesSomeOfMany(t *testing.T) {
	g := NewWithT(t)
	var problems []settings.Problem
	for i := range maxNamed + 3 {
		problems = append(problems, settings.Problem{Field: fmt.Sprint("spec.", i), Secret: "shop", Key: "k", Reason: settings.ReasonEmpty})
	}
	g.Expect(secretsReady(problems).Message).To(HaveSuffix("spec.9: Secret shop, key k is empty; and 3 more"))
	g.Expect(secretsReady(problems[:maxNamed]).Message).To(HaveSuffix("spec.9: Secret shop, key k is empty"))
}

func TestProblemTexts_coverEveryReason(t *testing.T) {
	g := NewWithT(t)
	for _, reason := range []settings.Reason{
		settings.ReasonMissing, settings.ReasonNotMounted, settings.ReasonUnreadable, settings.ReasonEmpty, settings.ReasonTooShort,
		settings.ReasonTooLong, settings.ReasonInvalid, settings.ReasonRepeated, settings.ReasonNoCertificate,
		settings.ReasonMixedSimulator, settings.ReasonNotBase64, settings.ReasonWebhookSecretTooShort, settings.ReasonNotAppSecret,
		settings.ReasonKnownToOthers, settings.ReasonSignsLive,
	} {
		g.Expect(problemTexts).To(HaveKeyWithValue(reason, Not(BeEmpty())))
	}
}

func TestVerdictOf(t *testing.T) {
	refusedBy := &StorageError{Rejected: true, Message: "the password is wrong", Err: errors.New("28P01")}
	silent := &StorageError{Message: "no answer", Err: errors.New("10.1.2.3:5432: connection refused")}
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"ready":         {nil, verifyv1.ReasonStorageReachable},
		"rejected":      {fmt.Errorf("open: %w", refusedBy), verifyv1.ReasonStorageRejected},
		"rejected, too": {verification.Unavailable(refusedBy), verifyv1.ReasonStorageRejected},
		"unreachable":   {verification.Unavailable(silent), verifyv1.ReasonStorageUnreachable},
		"full":          {fmt.Errorf("look: %w", verification.TooManyStored(time.Second)), verifyv1.ReasonStorageFull},
		"unavailable":   {verification.Unavailable(errors.New("x")), verifyv1.ReasonStorageUnreachable},
		"anything else": {errors.New("x"), verifyv1.ReasonStorageUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := verdictOf(tc.err, false)
			g.Expect(v.reason).To(Equal(tc.reason))
			g.Expect(v.message).NotTo(BeEmpty())
			g.Expect(v.isGood()).To(Equal(tc.err == nil))
		})
	}
	g := NewWithT(t)
	g.Expect(verdictOf(refusedBy, false).message).To(Equal("the password is wrong"), "and nothing of the cause")
	g.Expect(refusedBy).To(MatchError("the password is wrong: 28P01"))
	g.Expect(verdictOf(silent, false).message).To(Equal("no answer"), "and nothing of the cause")
	g.Expect(verdictOf(nil, true)).To(Equal(verdict{
		verifyv1.ReasonStorageReachable, "requests can be stored; the connection to the database is unencrypted",
	}))
	g.Expect(verdictOf(refusedBy, true).message).To(Equal("the password is wrong"))
}

func TestSteady(t *testing.T) {
	good, down, full := verdictOf(nil, false), verdictOf(errors.New("x"), false), verdictOf(verification.TooManyStored(0), false)
	late := verdict{down.reason, "it does not answer in time"}
	for name, tc := range map[string]struct {
		looks    []verdict
		believed []bool
	}{
		"good at once":                {[]verdict{good, good}, []bool{true, false}},
		"bad at the third":            {[]verdict{down, down, down, down}, []bool{false, false, true, false}},
		"a short failure":             {[]verdict{good, down, down, good, down, good}, []bool{true, false, false, false, false, false}},
		"recovery at the third":       {[]verdict{full, full, full, good, good, good}, []bool{false, false, true, false, false, true}},
		"two problems do not add up":  {[]verdict{good, down, full, down, full, full, full}, []bool{true, false, false, false, false, false, true}},
		"the words may change":        {[]verdict{good, down, late, down, late, late, late}, []bool{true, false, false, true, false, false, true}},
		"good before it was believed": {[]verdict{down, down, good}, []bool{false, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var s steady
			for i, v := range tc.looks {
				g.Expect(s.addCheck(v)).To(Equal(tc.believed[i]), "look %d", i)
				g.Expect(s.nextDelay(time.Minute)).To(Equal(map[bool]time.Duration{true: time.Minute, false: 6 * time.Second}[v.isGood() && s.believed == v]))
			}
		})
	}
}

func TestTransitions(t *testing.T) {
	is := func(conditionType string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{condition(conditionType, status, "Any")}
	}
	const ready, simulated = verifyv1.ConditionSecretsReady, verifyv1.ConditionSimulated
	for name, tc := range map[string]struct {
		before, now []metav1.Condition
		events      bool
	}{
		"first and good":              {nil, is(ready, metav1.ConditionTrue), false},
		"first and bad":               {nil, is(ready, metav1.ConditionFalse), true},
		"first and unknown":           {nil, is(ready, metav1.ConditionUnknown), false},
		"becomes bad":                 {is(ready, metav1.ConditionTrue), is(ready, metav1.ConditionFalse), true},
		"stays bad":                   {is(ready, metav1.ConditionFalse), is(ready, metav1.ConditionFalse), false},
		"becomes good":                {is(ready, metav1.ConditionFalse), is(ready, metav1.ConditionTrue), true},
		"becomes unknown":             {is(ready, metav1.ConditionTrue), is(ready, metav1.ConditionUnknown), false},
		"is known again":              {is(ready, metav1.ConditionUnknown), is(ready, metav1.ConditionTrue), true},
		"goes":                        {is(ready, metav1.ConditionFalse), nil, false},
		"is simulated from now on":    {nil, is(simulated, metav1.ConditionTrue), true},
		"is simulated as it was":      {is(simulated, metav1.ConditionTrue), is(simulated, metav1.ConditionTrue), false},
		"is not simulated any longer": {is(simulated, metav1.ConditionTrue), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if tc.events {
				g.Expect(findTransitions(tc.before, tc.now)).To(Equal(tc.now))
			} else {
				g.Expect(findTransitions(tc.before, tc.now)).To(BeEmpty())
			}
		})
	}
}
