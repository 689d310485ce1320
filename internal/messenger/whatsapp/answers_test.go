package whatsapp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/texts"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestHook_declinedOnce has copies of the tap that declined arrive at two replicas: one of them replies, once.
func TestHook_declinedOnce(t *testing.T) {
	f, _ := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	_, decline := f.echoButtons(f.graph.all()[0])
	tap := webhookOf(echoTapOf(decline, nil))
	first := f.hook
	f.restartHook()
	for range 3 {
		f.Expect(f.postTo(first, tap, sign(tap, appSecret)).Code).To(Equal(http.StatusOK))
		f.Expect(f.post(tap).Code).To(Equal(http.StatusOK))
	}
	f.Expect(first.replies.Len()).To(Equal(1))
	f.Expect(f.hook.replies.Len()).To(BeZero())
}

// TestHook_declinedTooLate answers "Not me" after the end, before and after the expiry is stored: nothing was confirmed.
func TestHook_declinedTooLate(t *testing.T) {
	for name, expire := range map[string]bool{"before the expiry is stored": false, "after it is stored": true} {
		t.Run(name, func(t *testing.T) {
			f, made := newEcho(t)
			f.sendHidden(firstCode, hiddenUser)
			_, decline := f.echoButtons(f.graph.all()[0])
			ended := made.Request.ExpiresAt.Add(verification.ExpiryGrace)
			f.clock.SetTime(ended)
			if expire {
				_, err := f.store.Update(t.Context(), made.Request.ID, func(r *verification.Request, now time.Time) error {
					return r.Expire(now, verification.NewEventKinds(verification.EventSuccess))
				})
				f.Expect(err).NotTo(HaveOccurred())
			}
			f.Expect(f.post(webhookOf(echoTapOf(decline, object{"timestamp": unixSeconds(ended)}))).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(HaveKeyWithValue(messenger.OutcomeDeclined, 1))
			calls := f.sendReplies()
			f.Expect(calls).To(HaveLen(2))
			f.Expect(calls[1].text()).To(Equal(textDeclined))
		})
	}
}

// TestHook_declinedAfterSuccess: the number was verified, so the reply must not deny it.
func TestHook_declinedAfterSuccess(t *testing.T) {
	f, made := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	confirm, decline := f.echoButtons(f.graph.all()[0])
	f.Expect(f.post(webhookOf(echoTapOf(confirm, nil))).Code).To(Equal(http.StatusOK))
	for _, tapping := range []object{nil, {"from_user_id": otherHidden}} {
		f.Expect(f.post(webhookOf(echoTapOf(decline, tapping))).Code).To(Equal(http.StatusOK))
	}
	f.expectVerified(f.state(made.Request.ID), true)
	for _, call := range f.sendReplies() {
		f.Expect(call.text()).NotTo(Equal(textDeclined))
	}
}

// TestHook_refusesTapsInTheLanguage of the request that the button names.
func TestHook_refusesTapsInTheLanguage(t *testing.T) {
	spanish := texts.BuiltIn().In("es").TapRefused
	for name, c := range map[string]struct {
		tap  func(codeID string) object
		want string
	}{
		"to confirm":                 {func(id string) object { return tapOf("confirm:"+id+":beef", nil) }, spanish},
		"to confirm, without number": {func(id string) object { return echoTapOf("confirm:"+id+":beef", nil) }, spanish},
		"of an echo":                 {func(id string) object { return echoTapOf("echo:"+id+":beef", nil) }, spanish},
		"of an echo, to decline":     {func(id string) object { return echoTapOf("notme:"+id+":beef", nil) }, spanish},
		"of an unknown request":      {func(string) object { return echoTapOf("echo:"+secondID()+":beef", nil) }, textTapRefused},
		"of none":                    {func(string) object { return echoTapOf("echo:", nil) }, textTapRefused},
	} {
		for _, hidden := range []settings.HiddenNumbers{settings.HiddenEcho, settings.HiddenRefused} {
			t.Run(name, func(t *testing.T) {
				f, made, _ := newStrictIn(t, "es")
				f.change(func(s *settings.Settings) { s.WhatsApp.HiddenNumbers = hidden })
				for range 2 {
					f.Expect(f.post(webhookOf(c.tap(made.Request.ID))).Code).To(Equal(http.StatusOK))
				}
				f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeTapRefused: 2}))
				calls := f.sendReplies()
				f.Expect(calls).To(HaveLen(1))
				f.Expect(calls[0].text()).To(Equal(c.want))
			})
		}
	}
}

// TestHook_logsChangesOfRequests at the default level, and other outcomes as details.
func TestHook_logsChangesOfRequests(t *testing.T) {
	f, _ := newEcho(t)
	f.sendHidden(firstCode, hiddenUser)
	_, decline := f.echoButtons(f.graph.all()[0])
	f.Expect(f.post(webhookOf(echoTapOf(decline, nil))).Code).To(Equal(http.StatusOK))
	f.Expect(f.post(webhookOf(textOf("hello", nil))).Code).To(Equal(http.StatusOK))
	levels := map[string]float64{}
	for line := range strings.Lines(string(f.logs.Contents())) {
		var entry struct {
			Level   float64 `json:"level"`
			Message string  `json:"msg"`
			Outcome string  `json:"outcome"`
		}
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "WhatsApp message handled" {
			levels[entry.Outcome] = entry.Level
		}
	}
	f.Expect(levels).To(Equal(map[string]float64{"need_echo": 0, "declined": 0, "no_code": 1}))
}
