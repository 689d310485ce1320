package whatsapp

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// codeStatusOf returns a webhook with a status of the code of a request.
func codeStatusOf(r verification.Request, state string, more object) []byte {
	s := statusOf("wamid.code", state, more)
	s["biz_opaque_callback_data"] = newCodeReference(&r)
	return statusesOf(s)
}

// TestStatuses_ofCodes has what each status makes of a code. verification.TestRecordCodeResult has what it makes of one with a result.
func TestStatuses_ofCodes(t *testing.T) {
	for _, c := range []struct {
		status string
		more   object
		want   verification.CodeResult
	}{
		{"sent", nil, verification.CodeResult{State: verification.CodeSent}},
		{"delivered", nil, verification.CodeResult{State: verification.CodeSent}},
		{"read", nil, verification.CodeResult{State: verification.CodeSent}},
		{"deleted", nil, verification.CodeResult{}},
		{"sent", object{"recipient_id": ""}, verification.CodeResult{State: verification.CodeSent}},
		{"sent", object{"recipient_id": "16505551235"}, verification.CodeResult{State: verification.CodeSent, Reason: "other_number"}},
		{"failed", failedWith(131026), verification.CodeResult{State: verification.CodeSent, Reason: "undeliverable"}},
		{"failed", failedWith(131042), verification.CodeResult{State: verification.CodeSent, Reason: "payment"}},
		{"failed", object{"errors": "canary"}, verification.CodeResult{State: verification.CodeSent, Reason: "other"}},
	} {
		t.Run(c.status, func(t *testing.T) {
			f := newOfflineFixture(t)
			f.allowCodes("US")
			r := f.createCode("first", user, "")
			for range 3 {
				f.Expect(f.post(codeStatusOf(r, c.status, c.more)).Code).To(Equal(http.StatusOK))
			}
			f.Expect(f.state(r.ID).Code).To(Equal(c.want))
			if c.want.Reason == "other_number" {
				f.Expect(f.countsOf(f.codeMetrics, "phoneproof_code_failures_total", "reason")).To(Equal(map[string]int{"other_number": 1}))
			}
		})
	}
}

// TestStatuses_codeTouchesNoOtherCounts: neither the slot of an echo's question nor the counts of replies, and they not those of codes.
func TestStatuses_codeTouchesNoOtherCounts(t *testing.T) {
	f := newOfflineFixture(t)
	f.allowCodes("US")
	r := f.createCode("first", user, "")
	f.Expect(f.hook.echoed.TryStart(f.clock.Now(), echoSlot(r.Phone))).To(BeTrue())
	for _, state := range []string{"sent", "delivered", "read", "failed"} {
		more := failedWith(131026)
		more["pricing"] = object{"billable": true, "category": "authentication"}
		f.Expect(f.post(codeStatusOf(r, state, more)).Code).To(Equal(http.StatusOK))
		f.Expect(f.post(codeStatusOf(r, state, more)).Code).To(Equal(http.StatusOK))
	}
	f.Expect(f.billedMessages()).To(BeEmpty())
	f.Expect(f.notDelivered()).To(BeEmpty())
	f.Expect(f.hook.echoed.TryStart(f.clock.Now(), echoSlot(r.Phone))).To(BeFalse(), "the number was asked today")
	f.Expect(f.state(r.ID).Hints).To(BeEmpty())
	f.Expect(f.countsOf(f.codeMetrics, "phoneproof_code_failures_total", "reason")).To(Equal(map[string]int{"undeliverable": 1}), "copies count once")

	f.Expect(f.post(statusesOf(statusOf("wamid.2", "failed", failedWith(131026)))).Code).To(Equal(http.StatusOK))
	f.Expect(f.countsOf(f.codeMetrics, "phoneproof_code_failures_total", "reason")).To(Equal(map[string]int{"undeliverable": 1}), "a reply is no code")
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeStatus: 9}))
}

// TestStatuses_codeOfAnEarlierRequestWithTheSameID changes nothing, and neither does what is no reference of ours.
func TestStatuses_codeOfAnEarlierRequestWithTheSameID(t *testing.T) {
	f := newOfflineFixture(t)
	f.allowCodes("US")
	earlier := f.createCode("first", user, "")
	later := earlier
	later.CreatedAt = earlier.CreatedAt.Add(-time.Microsecond)
	f.Expect(f.post(codeStatusOf(later, "failed", failedWith(131042))).Code).To(Equal(http.StatusOK))
	link := f.request("second", "16505551299", verification.WhatsApp).Request
	f.Expect(f.post(codeStatusOf(link, "failed", failedWith(131042))).Code).To(Equal(http.StatusOK))
	micros := strconv.FormatInt(earlier.CreatedAt.UnixMicro(), 10)
	for _, reference := range []string{
		"code:", "code::", "code:" + earlier.ID, "code:" + earlier.ID + ":", "code:" + earlier.ID + ":x", "code:x:" + micros,
		"CODE:" + earlier.ID + ":" + micros, "code:" + secondID() + ":" + micros,
	} {
		s := statusOf("wamid.1", "failed", failedWith(131042))
		s["biz_opaque_callback_data"] = reference
		f.Expect(f.post(statusesOf(s)).Code).To(Equal(http.StatusOK), reference)
	}
	for _, id := range []string{earlier.ID, link.ID} {
		f.Expect(f.state(id).Code).To(BeZero())
		f.Expect(f.state(id).Hints).To(BeEmpty())
	}
}

// TestStatuses_codeComesAgain if the store is away, and one that cannot be stored is dropped.
func TestStatuses_codeComesAgain(t *testing.T) {
	f := newOfflineFixture(t)
	f.allowCodes("US")
	r := f.createCode("first", user, "")
	body := codeStatusOf(r, "sent", nil)
	for failure, want := range map[error]int{
		errors.New("down"): http.StatusServiceUnavailable, verification.ErrContent: http.StatusOK,
	} {
		hook := f.failing(func(int64, string) error { return failure })
		f.Expect(f.postTo(hook, body, sign(body, appSecret)).Code).To(Equal(want))
	}
	f.backend.Fail(errors.New("down"))
	f.Expect(f.post(body).Code).To(Equal(http.StatusServiceUnavailable))
	f.backend.Fail(nil)
	f.Expect(f.post(body).Code).To(Equal(http.StatusOK))
	f.Expect(f.state(r.ID).Code.State).To(Equal(verification.CodeSent))
}
