package callback

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

func TestJudgeTemplate(t *testing.T) {
	codes := &settings.Codes{TemplateName: "phoneproof_code", Languages: []string{"en", "pt_BR"}}
	good := whatsapp.Template{Category: "AUTHENTICATION", Status: "APPROVED", Quality: "GREEN", SendTTL: 5 * time.Minute, CopyCode: true}
	for name, row := range map[string]struct {
		change func(*whatsapp.Template) // of the one in pt_BR
		ttl    time.Duration
		reason string
	}{
		"as it must be":             {func(*whatsapp.Template) {}, 5 * time.Minute, verifyv1.ReasonTemplateReady},
		"another language":          {func(t *whatsapp.Template) { t.Language = "pt_PT" }, time.Hour, verifyv1.ReasonTemplateLanguageMissing},
		"another category":          {func(t *whatsapp.Template) { t.Category = "UTILITY" }, time.Hour, verifyv1.ReasonTemplateWrongCategory},
		"paused":                    {func(t *whatsapp.Template) { t.Status = "PAUSED" }, time.Hour, verifyv1.ReasonTemplateNotApproved},
		"no button":                 {func(t *whatsapp.Template) { t.CopyCode = false }, time.Hour, verifyv1.ReasonTemplateWithoutButton},
		"late":                      {func(*whatsapp.Template) {}, 5*time.Minute - time.Second, verifyv1.ReasonTemplateTTLTooLong},
		"late by default":           {func(t *whatsapp.Template) { t.SendTTL = 0 }, 9 * time.Minute, verifyv1.ReasonTemplateTTLTooLong},
		"in time by default":        {func(t *whatsapp.Template) { t.SendTTL = 0 }, 10 * time.Minute, verifyv1.ReasonTemplateReady},
		"of low quality":            {func(t *whatsapp.Template) { t.Quality = "RED" }, time.Hour, verifyv1.ReasonTemplateQualityLow},
		"of medium quality":         {func(t *whatsapp.Template) { t.Quality = "YELLOW" }, time.Hour, verifyv1.ReasonTemplateReady},
		"too new to have a quality": {func(t *whatsapp.Template) { t.Quality = "" }, time.Hour, verifyv1.ReasonTemplateReady},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			english, portuguese, unused := good, good, whatsapp.Template{Language: "de", Status: "REJECTED"}
			english.Language, portuguese.Language = "en", "pt_BR"
			row.change(&portuguese)
			says := judgeTemplate(codes, []whatsapp.Template{unused, portuguese, english}, row.ttl)
			g.Expect(says.reason).To(Equal(row.reason), says.message)
			g.Expect(says.status).To(Equal(map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[row.reason == verifyv1.ReasonTemplateReady]))
			if row.reason != verifyv1.ReasonTemplateReady && row.reason != verifyv1.ReasonTemplateTTLTooLong {
				g.Expect(says.message).To(ContainSubstring(": pt_BR; "), "only the language that is wrong")
			}
		})
	}
	NewWithT(t).Expect(judgeTemplate(codes, nil, time.Hour).reason).To(Equal(verifyv1.ReasonTemplateMissing))
}

const templateAnswer = `{"data": [{"name": "phoneproof_code", "language": "en", "category": "AUTHENTICATION", "status": "APPROVED",
	"components": [{"type": "BUTTONS", "buttons": [{"type": "URL", "url": "https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}"}]}]}]}`

// newCodesWatch returns a watch of the template at a played Meta, which has it as it must be, and the conditions that it sets; the type
// alone for one that it withdraws.
func newCodesWatch(t *testing.T) (*fakeMeta, *Codes, *settings.Settings, *[]metav1.Condition) {
	t.Helper()
	f, m, s := newMeta(t)
	f.templates = templateAnswer
	s.TTL, s.WhatsApp.Codes = 10*time.Minute, &settings.Codes{TemplateName: "phoneproof_code", Languages: []string{"en"}}
	var set []metav1.Condition
	c := NewCodes(Options{
		Settings: func() *settings.Settings { return s },
		Set:      func(condition metav1.Condition) { set = append(set, condition) },
		Withdraw: func(conditionType string) { set = append(set, metav1.Condition{Type: conditionType}) },
	}, m.client)
	return f, c, s, &set
}

// TestCodes_reportWhatCannotBeRead, each as far as it says something of the codes.
func TestCodes_reportWhatCannotBeRead(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*fakeMeta, *settings.WhatsApp)
		status metav1.ConditionStatus
		reason string
	}{
		"ready":                      {func(*fakeMeta, *settings.WhatsApp) {}, metav1.ConditionTrue, verifyv1.ReasonTemplateReady},
		"no template":                {func(f *fakeMeta, _ *settings.WhatsApp) { f.templates = `{"data": []}` }, metav1.ConditionFalse, verifyv1.ReasonTemplateMissing},
		"no access token":            {func(_ *fakeMeta, a *settings.WhatsApp) { a.AccessToken = settings.Secret{} }, metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"no app secret":              {func(_ *fakeMeta, a *settings.WhatsApp) { a.AppSecret = settings.Secret{} }, metav1.ConditionFalse, verifyv1.ReasonSecretsNotReady},
		"an expired token":           {func(f *fakeMeta, _ *settings.WhatsApp) { f.refuses = http.StatusUnauthorized }, metav1.ConditionFalse, verifyv1.ReasonCredentialsRejected},
		"no permission":              {func(f *fakeMeta, _ *settings.WhatsApp) { f.refuses = http.StatusForbidden }, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked},
		"no permission for this":     {func(f *fakeMeta, _ *settings.WhatsApp) { f.templates = "" }, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked},
		"an account that is unknown": {func(f *fakeMeta, _ *settings.WhatsApp) { f.token = tokenOf(appID) }, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked},
		"another account":            {func(f *fakeMeta, _ *settings.WhatsApp) { f.numbers[businessID] = []string{"9"} }, metav1.ConditionFalse, verifyv1.ReasonAccountMismatch},
		"no simulator":               {func(_ *fakeMeta, a *settings.WhatsApp) { a.Simulated = true }, metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked},
	} {
		t.Run(name, func(t *testing.T) {
			f, c, s, set := newCodesWatch(t)
			row.change(f, s.WhatsApp)
			wait := c.reconcileOnce(t.Context())
			f.Expect(wait).To(And(BeNumerically(">", templateInterval*3/4), BeNumerically("<=", templateInterval)))
			f.Expect(*set).To(HaveLen(1))
			got := (*set)[0]
			f.Expect([]any{got.Type, got.Status, got.Reason, got.ObservedGeneration}).
				To(Equal([]any{verifyv1.ConditionCodesReady, row.status, row.reason, s.Generation}), got.Message)
			f.Expect(got.Message).NotTo(MatchRegexp(`canary|[0-9]{3}|://`))
			f.Expect(ExamineCodes(t.Context(), c.graph.client, s)).To(Equal(got))
			for _, call := range f.takeCalls() {
				f.Expect(call).To(HavePrefix("GET "), "nothing is changed")
			}
		})
	}
}

// TestCodes_keepWhatIsKnown while Meta does not answer, but not for another template.
func TestCodes_keepWhatIsKnown(t *testing.T) {
	f, c, s, set := newCodesWatch(t)
	last := func() metav1.Condition { return (*set)[len(*set)-1] }
	f.refuses = http.StatusInternalServerError
	f.Expect(c.reconcileOnce(t.Context())).To(BeNumerically("<", time.Minute))
	f.Expect(last().Reason).To(Equal(verifyv1.ReasonTemplateUnchecked))

	f.refuses = 0
	c.reconcileOnce(t.Context())
	f.Expect(last().Reason).To(Equal(verifyv1.ReasonTemplateReady))
	f.refuses = http.StatusInternalServerError
	for range patience + 2 {
		c.reconcileOnce(t.Context())
	}
	f.Expect(last().Reason).To(Equal(verifyv1.ReasonTemplateReady))

	s.WhatsApp.Codes = &settings.Codes{TemplateName: "another", Languages: []string{"en"}}
	c.reconcileOnce(t.Context())
	f.Expect(last().Reason).To(Equal(verifyv1.ReasonTemplateUnchecked))
}

// TestCodes_ofNone makes no call, and a read that the end of the term interrupts says nothing.
func TestCodes_ofNone(t *testing.T) {
	f, c, s, set := newCodesWatch(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Expect(c.reconcileOnce(ctx)).To(BeZero())
	f.Expect(*set).To(BeEmpty())
	f.takeCalls()

	account := s.WhatsApp
	for _, none := range []*settings.WhatsApp{nil, {PhoneNumberID: account.PhoneNumberID, AccessToken: account.AccessToken, AppSecret: account.AppSecret}} {
		s.WhatsApp = none
		f.Expect(c.reconcileOnce(t.Context())).To(BeZero())
		f.Expect((*set)[len(*set)-1]).To(Equal(metav1.Condition{Type: verifyv1.ConditionCodesReady}))
		f.Expect(ExamineCodes(t.Context(), c.graph.client, s)).To(Equal(metav1.Condition{}))
	}
	f.Expect(f.takeCalls()).To(BeEmpty())
}
