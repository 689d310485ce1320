package telegram

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// inboundGoldens says what becomes of each file of testdata/in, which testdata/README.md explains. Contacts come after
// start.json, from the same user.
var inboundGoldens = map[string]messenger.Outcome{
	"start":                      messenger.OutcomeNeedContact,
	"start_at_our_bot":           messenger.OutcomeNeedContact,
	"start_twice_the_code":       messenger.OutcomeNeedContact,
	"start_payload_of_64":        messenger.OutcomeNeedContact,
	"code_lower_case":            messenger.OutcomeNeedContact,
	"code_without_groups":        messenger.OutcomeNeedContact,
	"code_in_a_sentence":         messenger.OutcomeNeedContact,
	"code_with_invisible_signs":  messenger.OutcomeNeedContact,
	"code_with_corrected_dashes": messenger.OutcomeNeedContact,
	"name_escaped":               messenger.OutcomeNeedContact,

	"contact":                         messenger.OutcomeVerified,
	"contact_with_plus":               messenger.OutcomeVerified,
	"contact_by_the_button":           messenger.OutcomeVerified,
	"contact_other_number_with_vcard": messenger.OutcomeWrongNumber,

	"contact_without_user_id":               messenger.OutcomeContactWithoutUser,
	"contact_user_id_null":                  messenger.OutcomeContactWithoutUser,
	"contact_user_id_string":                messenger.OutcomeMalformed,
	"contact_user_id_zero":                  messenger.OutcomeContactOfAnother,
	"contact_of_another":                    messenger.OutcomeContactOfAnother,
	"contact_forwarded":                     messenger.OutcomeForwarded,
	"contact_forwarded_own":                 messenger.OutcomeForwarded,
	"contact_forwarded_hidden_user":         messenger.OutcomeForwarded,
	"contact_forwarded_before_7_0":          messenger.OutcomeForwarded,
	"contact_in_a_group":                    messenger.OutcomeNotPrivate,
	"contact_anonymous_number":              messenger.OutcomeAnonymousNumber,
	"contact_anonymous_number_without_plus": messenger.OutcomeAnonymousNumber,
	"contact_without_number":                messenger.OutcomeBadNumber,
	"contact_number_empty":                  messenger.OutcomeBadNumber,
	"contact_number_with_spaces":            messenger.OutcomeBadNumber,
	"contact_number_with_zeros":             messenger.OutcomeBadNumber,
	"contact_number_two_plus":               messenger.OutcomeBadNumber,
	"contact_number_too_long":               messenger.OutcomeBadNumber,
	"contact_number_too_short":              messenger.OutcomeBadNumber,
	"contact_number_other_digits":           messenger.OutcomeBadNumber,
	"contact_number_with_letters":           messenger.OutcomeBadNumber,
	"contact_via_bot":                       messenger.OutcomeIndirect,
	"contact_edited":                        messenger.OutcomeIndirect,
	"contact_as_edited_message":             messenger.OutcomeOtherUpdate,
	"contact_as_business_message":           messenger.OutcomeOtherUpdate,
	"contact_as_edited_business_message":    messenger.OutcomeOtherUpdate,
	"contact_as_guest_message":              messenger.OutcomeOtherUpdate,

	"edited_message":                   messenger.OutcomeOtherUpdate,
	"business_message":                 messenger.OutcomeOtherUpdate,
	"edited_business_message":          messenger.OutcomeOtherUpdate,
	"guest_message":                    messenger.OutcomeOtherUpdate,
	"channel_post":                     messenger.OutcomeOtherUpdate,
	"edited_channel_post":              messenger.OutcomeOtherUpdate,
	"callback_query":                   messenger.OutcomeOtherUpdate,
	"my_chat_member":                   messenger.OutcomeOtherUpdate,
	"inline_query":                     messenger.OutcomeOtherUpdate,
	"message_with_business_connection": messenger.OutcomeIndirect,
	"message_with_guest_query":         messenger.OutcomeIndirect,
	"message_of_a_business_bot":        messenger.OutcomeIndirect,
	"message_via_bot":                  messenger.OutcomeIndirect,
	"message_of_a_sender_chat":         messenger.OutcomeIndirect,
	"message_of_a_bot":                 messenger.OutcomeBot,
	"message_without_from":             messenger.OutcomeNotPrivate,
	"message_without_chat":             messenger.OutcomeNotPrivate,
	"start_in_a_group":                 messenger.OutcomeNotPrivate,
	"start_in_a_supergroup":            messenger.OutcomeNotPrivate,
	"start_in_another_private_chat":    messenger.OutcomeNotPrivate,
	"message_without_date":             messenger.OutcomeTooLate,
	"message_of_next_year":             messenger.OutcomeTooLate,
	"message_of_yesterday":             messenger.OutcomeTooLate,
	"start_forwarded":                  messenger.OutcomeForwarded,
	"start_forwarded_from_channel":     messenger.OutcomeForwarded,
	"start_without_payload":            messenger.OutcomeNoCode,
	"start_at_another_bot":             messenger.OutcomeOtherCommand,
	"start_payload_of_65":              messenger.OutcomePayloadTooLong,
	"another_command":                  messenger.OutcomeOtherCommand,
	"unknown_code":                     messenger.OutcomeUnknownCode,
	"typo":                             messenger.OutcomeNoCode,
	"small_talk":                       messenger.OutcomeNoCode,
	"photo":                            messenger.OutcomeOtherType,
	"update_id_absent":                 messenger.OutcomeMalformed,
	"update_id_negative":               messenger.OutcomeMalformed,
	"update_id_zero":                   messenger.OutcomeMalformed,
	"update_id_above_2_53":             messenger.OutcomeMalformed,
	"update_id_above_2_64":             messenger.OutcomeMalformed,
	"update_id_string":                 messenger.OutcomeMalformed,
	"update_id_fraction":               messenger.OutcomeMalformed,
}

// mute are the outcomes after which no user is written to: there is no private chat with a person to write to.
var mute = map[messenger.Outcome]bool{
	messenger.OutcomeMalformed: true, messenger.OutcomeOtherUpdate: true, messenger.OutcomeNotPrivate: true, messenger.OutcomeBot: true, messenger.OutcomeIndirect: true,
}

// TestInbound_goldens: every kind of update, the honest ones and the forged ones.
func TestInbound_goldens(t *testing.T) {
	for name, want := range inboundGoldens {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			request := w.initiate("golden").Request
			w.Expect(request.ID).NotTo(BeEmpty())
			w.later(30 * time.Second)
			prompts := 0
			if strings.HasPrefix(name, "contact") {
				w.Expect(w.accept(golden(t, "in/start"))).To(Equal(messenger.OutcomeNeedContact))
				prompts++
			}
			w.Expect(w.accept(golden(t, "in/"+name))).To(Equal(want))
			wantPhase, replies := verification.Pending, 1
			if want == messenger.OutcomeVerified {
				wantPhase = verification.Verified
			}
			if mute[want] {
				replies = 0
			}
			w.Expect(w.phase(request.ID)).To(Equal(wantPhase))
			w.flush()
			w.Expect(w.api.got("sendMessage")).To(HaveLen(prompts + replies))
		})
	}
}

func TestInbound_everyGoldenIsTried(t *testing.T) {
	files, err := os.ReadDir("testdata/in")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	readme, err := os.ReadFile("testdata/README.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".json")
		NewWithT(t).Expect(inboundGoldens).To(HaveKey(name))
	}
	NewWithT(t).Expect(files).To(HaveLen(len(inboundGoldens)))
	for _, dir := range []string{"in", "out", "answers"} {
		files, err := os.ReadDir("testdata/" + dir)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, f := range files {
			NewWithT(t).Expect(string(readme)).To(ContainSubstring("`"+dir+"/"+f.Name()+"`"), "its source")
		}
	}
}

// TestOutbound_goldens compares what is sent, byte by byte but for spaces.
func TestOutbound_goldens(t *testing.T) {
	w := newWorld(t)
	w.initiate("golden")
	w.later(30 * time.Second)
	w.accept(golden(t, "in/start"))
	w.accept(golden(t, "in/contact"))
	w.flush()
	w.later(time.Minute)
	w.accept(golden(t, "in/small_talk"))
	w.flush()
	messages := w.api.got("sendMessage")
	w.Expect(messages).To(HaveLen(3))
	w.Expect(messages[0]).To(MatchJSON(golden(t, "out/sendMessage_prompt")))
	w.Expect(messages[1]).To(MatchJSON(golden(t, "out/sendMessage_verified")))
	w.Expect(messages[2]).To(MatchJSON(golden(t, "out/sendMessage_plain")))
}
