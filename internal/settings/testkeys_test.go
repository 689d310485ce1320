package settings

import (
	"encoding/base64"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestLimitsOf_testKeys: a suite of tests that sends an Idempotency-Key with each init may go on at the whole rate.
func TestLimitsOf_testKeys(t *testing.T) {
	g := NewWithT(t)
	s := Settings{Limits: verification.Limits{MaxStored: 7}}
	g.Expect(s.LimitsOf(false).MaxStored).To(Equal(7))
	limits := s.LimitsOf(true)
	g.Expect(limits.PerKey).To(Equal(verification.Rate{Requests: 60, Period: time.Minute}))
	const open = time.Minute
	perMinute := limits.PerKey.Requests / int(limits.PerKey.Period/time.Minute)
	g.Expect(limits.MaxStored).To(BeNumerically(">=", perMinute*int((verification.CodeRest+open)/time.Minute)))
}

const goodTest = canary + "-the-secret-of-test-events"

// testingProject returns a project that sends the events of test keys, and values of its secrets.
func testingProject() (*verifyv1.VerificationProject, map[string]string) {
	p, values := newProject(), newValues()
	p.Spec.Webhook.TestURL, p.Spec.Webhook.TestSecretRef = "https://staging.example.com/hook", new(ref("shop", "webhook-test"))
	values["webhook-test"] = goodTest
	return p, values
}

// TestTestEvents: they are sent if they have a secret of their own, whatever becomes of the one of real events.
func TestTestEvents(t *testing.T) {
	key := []byte("a key of 24 bytes, or so")
	encoded := webhookPrefix + base64.StdEncoding.EncodeToString(key)
	for name, tc := range map[string]struct {
		values       map[string]string
		want         verification.EventPolicy
		wantReason   Reason
		wantProblems int
	}{
		"a secret of its own":            {nil, verification.EventsOn, "", 0},
		"missing":                        {map[string]string{"webhook-test": "-"}, verification.EventsPaused, ReasonMissing, 1},
		"too short":                      {map[string]string{"webhook-test": "x"}, verification.EventsPaused, ReasonWebhookSecretTooShort, 1},
		"the live one":                   {map[string]string{"webhook-test": goodWebhook}, verification.EventsPaused, ReasonSignsLive, 1},
		"the live one and a newline":     {map[string]string{"webhook-test": goodWebhook + "\n"}, verification.EventsPaused, ReasonSignsLive, 1},
		"the live one before":            {map[string]string{"webhook-test": goodPrevious}, verification.EventsPaused, ReasonSignsLive, 1},
		"the live one's key":             {map[string]string{"webhook-test": string(key), "webhook": encoded}, verification.EventsPaused, ReasonSignsLive, 1},
		"the live one, encoded":          {map[string]string{"webhook-test": encoded, "webhook": string(key)}, verification.EventsPaused, ReasonSignsLive, 1},
		"the live one cannot be used":    {map[string]string{"webhook": "-"}, verification.EventsOn, "", 1},
		"an app secret that is the same": {map[string]string{"webhook-test": goodAppSecret}, verification.EventsOn, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p, values := testingProject()
			maps.Copy(values, tc.values)
			s := settingsOf(p, values)
			g.Expect(s.TestEventPolicy()).To(Equal(tc.want))
			g.Expect(s.EventKinds()).To(Equal(verification.NewEventKinds(verification.EventSuccess).WithTests()))
			g.Expect(s.Webhook.TestUnsigned).To(BeFalse())
			g.Expect(s.Problems).To(HaveLen(tc.wantProblems))
			if tc.wantReason != "" {
				g.Expect(s.Problems).To(ConsistOf(problem(fieldWebhookTest, "webhook-test", tc.wantReason)))
			}
		})
	}
}

// TestTestEvents_withoutSecret: none becomes due, so nothing waits for one.
func TestTestEvents_withoutSecret(t *testing.T) {
	g := NewWithT(t)
	p, values := testingProject()
	p.Spec.Webhook.TestSecretRef = nil
	s := settingsOf(p, values)
	g.Expect(s.TestEventPolicy()).To(Equal(verification.EventsOff))
	g.Expect(s.EventPolicy()).To(Equal(verification.EventsOn))
	g.Expect(s.EventKinds()).To(Equal(verification.NewEventKinds(verification.EventSuccess)))
	g.Expect(s.Webhook.TestURL).To(BeEmpty())
	g.Expect(s.Webhook.TestUnsigned).To(BeTrue())
}

// TestTestEvents_rotation: what signs real events signs no test event, in whatever order the two secrets change.
func TestTestEvents_rotation(t *testing.T) {
	const next = canary + "-the-next-webhook-secret"
	p, _ := testingProject()
	all := listUses(&p.Spec)
	for name, tc := range map[string]struct {
		live, test string // the values after a change
		want       string // what signs test events right after
		later      string // and what after the overlap
	}{
		"the live one changes":                     {next, goodTest, goodTest, goodTest},
		"the test one changes":                     {goodWebhook, next, next + " " + goodTest, next},
		"the test one becomes the live one":        {goodWebhook, goodWebhook, goodTest, ""},
		"the live one becomes the test one":        {goodTest, goodTest, "", ""},
		"the test one becomes the live one before": {next, goodWebhook, goodTest, goodWebhook + " " + goodTest},
		"the live one becomes the test one before": {goodTest, next, next, next},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, values := testingProject()
			secrets := Secrets{}.applyReadings(all, readingsOf(values), start)
			values["webhook"], values["webhook-test"] = tc.live, tc.test
			secrets = secrets.applyReadings(all, readingsOf(values), start)
			g.Expect(joinAccepted(secrets.secretAt(fieldWebhookTest), start)).To(Equal(tc.want))
			end := start.Add(Overlap)
			secrets = secrets.applyReadings(all, readingsOf(values), end)
			g.Expect(joinAccepted(secrets.secretAt(fieldWebhookTest), end)).To(Equal(tc.later))
		})
	}
}
