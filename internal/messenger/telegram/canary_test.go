package telegram

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// TestCanary runs through everything that logs, counts, answers or fails, and looks for what must not be in it: the token
// and what derives from it, numbers, codes, names, ids and texts.
func TestCanary(t *testing.T) {
	w := newWorld(t)
	id := w.initiate("golden").Request.ID
	w.Expect(id).NotTo(BeEmpty())
	secret := WebhookSecret([]byte(botToken), projectName)
	var shown strings.Builder
	post := func(update []byte) {
		answer := w.post(update)
		fmt.Fprintf(&shown, "%d %v %s\n", answer.Code, answer.Header(), answer.Body)
	}
	named := func(update []byte) []byte {
		return bytes.ReplaceAll(update, []byte(`"first_name":"A"`), []byte(`"first_name":"Grace","vcard":"BEGIN:VCARD"`))
	}
	updates := [][]byte{
		named(w.update(88140001, stranger+4200000, "/start "+goldenCode)), named(w.contactUpdate(88140002, stranger+4200000, strangerPhone)),
		named(w.update(88140003, user, "a text with "+goldenCode)), named(w.contactUpdate(88140004, user, claimed)),
		[]byte(`{"update_id":88140005,"message":{"text":"a text with","from":"Grace"}}`), []byte("a text with Grace"),
	}
	for name := range inboundGoldens {
		updates = append(updates, golden(t, "in/"+name))
	}
	for _, broken := range []func(){
		func() { w.backend.Fail(errors.New("away")) },
		func() { w.backend.Fail(nil); w.api.failing(always("sendMessage", "error_500")) },
		func() { w.api.failing(always("sendMessage", "error_403")) },
		func() { w.api.failing(nil) },
	} {
		broken()
		w.channel.senders = messenger.NewSenderLimiter()
		for _, update := range updates {
			post(update)
		}
		w.flush()
	}
	w.postTo(w.channel, updates[0], "wrong secret of 88140001")
	families, err := w.registry.Gather()
	w.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&shown, f)
		w.Expect(err).NotTo(HaveOccurred())
	}
	shown.Write(w.logs.Contents())
	w.Expect(shown.String()).To(And(ContainSubstring("verified"), ContainSubstring("not acknowledged"), ContainSubstring("reply not sent")))
	for _, canary := range []string{
		"canary", secret, "4915", "1511", "9999999", goldenCode, "A5Z3", "a5z3", "K9E2", "7304118825", "4200042", "881400", "Grace", "Ada", "VCARD",
		"a text with", "small talk", senderBindings(w.settings, user, w.now())[0], "api.telegram.org", id,
	} {
		w.Expect(strings.Contains(shown.String(), canary)).To(BeFalse(), canary)
	}
	w.Expect(strings.Count(shown.String(), "phoneproof_messages_total{")).To(BeNumerically("<=", 29), "a closed set")
}
