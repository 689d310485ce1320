package callback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/settings"
)

// templateInterval is how often the template of a project's codes is read.
const templateInterval = 10 * time.Minute

// Codes keeps the condition CodesReady of a project. One runs for each term of a lease. It changes nothing at Meta.
type Codes struct {
	Options

	graph     *graph
	condition metav1.Condition
	judged    string // the codes that the condition says something of; empty before the first
	failures  int    // questions in a row that were not answered
}

// NewCodes returns the watch of the template at Meta. Of the options it uses Settings, Changes, Set, Withdraw, Clock and Log.
func NewCodes(o Options, client *whatsapp.Client) *Codes {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Codes{Options: o, graph: &graph{client: client}}
}

// Run keeps the condition current until ctx ends.
func (c *Codes) Run(ctx context.Context) error {
	changes, cancel := c.Changes()
	defer cancel()
	return controllers.Run(ctx, controllers.Options{
		Reconcile: func(ctx context.Context) (time.Duration, error) { return c.reconcileOnce(ctx), nil },
		Changes:   []<-chan struct{}{changes}, MinGap: minGap, Clock: c.Clock, Log: c.Log,
	})
}

// reconcileOnce reads the template, and returns when to read it again; zero if only a change can make a difference.
func (c *Codes) reconcileOnce(ctx context.Context) time.Duration {
	s := c.Settings()
	if s.WhatsApp == nil || s.WhatsApp.Codes == nil {
		c.condition, c.judged, c.failures = metav1.Condition{}, "", 0
		c.withdrawCondition(verifyv1.ConditionCodesReady)
		return 0
	}
	says, err := c.graph.examineCodes(ctx, s)
	if ctx.Err() != nil {
		return 0
	}
	codes := s.WhatsApp.Codes
	asked := fmt.Sprint(s.WhatsApp.PhoneNumberID, s.WhatsApp.BusinessAccountID, codes.TemplateName, codes.Languages, s.TTL)
	if err == nil || c.judged != asked { // else what was known stays
		c.judged = asked
		c.setCondition(&c.condition, verifyv1.ConditionCodesReady, s, says)
	}
	if err == nil {
		c.failures = 0
		return controllers.Jitter(templateInterval)
	}
	c.failures++
	c.Log.V(1).Info("template read failed, will retry", "cause", err.Error())
	return max(retryAfter(c.failures), c.graph.requestedWait(err))
}

// ExamineCodes returns the condition that the present state of the template at Meta gives a project. It is empty for a project that sends
// no codes.
func ExamineCodes(ctx context.Context, client *whatsapp.Client, s *settings.Settings) metav1.Condition {
	if s.WhatsApp == nil || s.WhatsApp.Codes == nil {
		return metav1.Condition{}
	}
	says, _ := (&graph{client: client}).examineCodes(ctx, s)
	return says.toCondition(verifyv1.ConditionCodesReady, s)
}

// examineCodes reads the template and judges it. If Meta does not answer, and so may answer later, it also returns the error.
func (m *graph) examineCodes(ctx context.Context, s *settings.Settings) (verdict, error) {
	if !s.WhatsApp.AccessToken.Usable() || !s.WhatsApp.AppSecret.Usable() { // the digits are made with the app secret
		return falseVerdict(verifyv1.ReasonSecretsNotReady, "the secrets of the WhatsApp account cannot be read; see SecretsReady"), nil
	}
	account, err := m.findBusinessAccount(ctx, s.WhatsApp)
	switch {
	case err != nil:
		return m.explainUnreadTemplate(err)
	case account.mismatch != "":
		return falseVerdict(verifyv1.ReasonAccountMismatch, account.mismatch), nil
	case account.id == "":
		return uncheckedTemplate(accountNotFound), nil
	}
	templates, err := m.client.ReadTemplate(ctx, s.WhatsApp, account.id, s.WhatsApp.Codes.TemplateName)
	if err != nil {
		return m.explainUnreadTemplate(err)
	}
	return judgeTemplate(s.WhatsApp.Codes, templates, s.TTL), nil
}

// explainUnreadTemplate describes an error of the calls for a template, and returns it if it may be temporary. A token that may not read
// templates may be able to send them.
func (m *graph) explainUnreadTemplate(err error) (verdict, error) {
	if failure, ok := errors.AsType[*whatsapp.Error](err); ok && failure.Status == http.StatusUnauthorized {
		return m.explainError(err, stepNone).toVerdict(), nil
	}
	unread := m.explainUnchecked(err)
	if !unread.unanswered {
		err = nil
	}
	return uncheckedTemplate(unread.unchecked), err
}

func uncheckedTemplate(why string) verdict {
	return verdict{metav1.ConditionUnknown, verifyv1.ReasonTemplateUnchecked, "the template is not checked: " + why}
}

// judgeTemplate returns the verdict on a template, of which Meta has one in each of its languages. Requests end after ttl.
func judgeTemplate(codes *settings.Codes, templates []whatsapp.Template, ttl time.Duration) verdict {
	if len(templates) == 0 {
		return falseVerdict(verifyv1.ReasonTemplateMissing,
			"the WhatsApp Business account has no template of the name in spec.whatsapp.codes.templateName; create it, or correct the name")
	}
	byLanguage := map[string]whatsapp.Template{}
	for _, t := range templates {
		byLanguage[t.Language] = t
	}
	// lacking names the languages in which the template is not as it must be.
	lacking := func(isGood func(t whatsapp.Template, exists bool) bool) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(codes.Languages), func(language string) bool {
			t, exists := byLanguage[language]
			return isGood(t, exists)
		}), ", ")
	}
	for _, rule := range []struct {
		reason  string
		isGood  func(t whatsapp.Template, exists bool) bool
		message string
	}{
		{verifyv1.ReasonTemplateLanguageMissing, func(_ whatsapp.Template, exists bool) bool { return exists },
			"the template lacks these of spec.whatsapp.codes.languages: %s; add them to the template, or remove them from languages"},
		{verifyv1.ReasonTemplateWrongCategory, func(t whatsapp.Template, _ bool) bool { return t.Category == "AUTHENTICATION" },
			"the template is not of category AUTHENTICATION in: %s; create one that is"},
		{verifyv1.ReasonTemplateNotApproved, func(t whatsapp.Template, _ bool) bool { return t.Status == "APPROVED" },
			"Meta has not approved the template, or has paused or disabled it, in: %s; look at it in the WhatsApp Manager"},
		{verifyv1.ReasonTemplateWithoutButton, func(t whatsapp.Template, _ bool) bool { return t.CopyCode },
			"the first button of the template does not copy the code in: %s; create one with a button of type OTP, otp_type COPY_CODE"},
		{verifyv1.ReasonTemplateTTLTooLong, func(t whatsapp.Template, _ bool) bool { return cmp.Or(t.SendTTL, whatsapp.DefaultSendTTL) <= ttl },
			"Meta may deliver the template after the request has ended in: %s; lower its message_send_ttl_seconds, or raise spec.request.ttl"},
		{verifyv1.ReasonTemplateQualityLow, func(t whatsapp.Template, _ bool) bool { return t.Quality != "RED" },
			"users block or report the template, and Meta may pause it, in: %s; have codes sent only to users who ask for them"},
	} {
		if languages := lacking(rule.isGood); languages != "" {
			return falseVerdict(rule.reason, fmt.Sprintf(rule.message, languages))
		}
	}
	return trueVerdict(verifyv1.ReasonTemplateReady, "the template of spec.whatsapp.codes can be sent in all its languages")
}
