package telegram

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// inboundGoldens says what becomes of each file of testdata/in, which testdata/README.md explains. Contacts come after
// start.json, from the same user.
var inboundGoldens = map[string]outcome{
	"start":                      outcomeNeedContact,
	"start_at_our_bot":           outcomeNeedContact,
	"start_twice_the_code":       outcomeNeedContact,
	"start_payload_of_64":        outcomeNeedContact,
	"code_lower_case":            outcomeNeedContact,
	"code_without_groups":        outcomeNeedContact,
	"code_in_a_sentence":         outcomeNeedContact,
	"code_with_invisible_signs":  outcomeNeedContact,
	"code_with_corrected_dashes": outcomeNeedContact,
	"name_escaped":               outcomeNeedContact,

	"contact":                         outcomeVerified,
	"contact_with_plus":               outcomeVerified,
	"contact_by_the_button":           outcomeVerified,
	"contact_other_number_with_vcard": outcomeWrongNumber,

	"contact_without_user_id":               refusedNoUser,
	"contact_user_id_null":                  refusedNoUser,
	"contact_user_id_string":                refusedMalformed,
	"contact_user_id_zero":                  refusedForeign,
	"contact_of_another":                    refusedForeign,
	"contact_forwarded":                     refusedForwarded,
	"contact_forwarded_own":                 refusedForwarded,
	"contact_forwarded_hidden_user":         refusedForwarded,
	"contact_forwarded_before_7_0":          refusedForwarded,
	"contact_in_a_group":                    refusedChat,
	"contact_anonymous_number":              refusedAnonymous,
	"contact_anonymous_number_without_plus": refusedAnonymous,
	"contact_without_number":                refusedNumber,
	"contact_number_empty":                  refusedNumber,
	"contact_number_with_spaces":            refusedNumber,
	"contact_number_with_zeros":             refusedNumber,
	"contact_number_two_plus":               refusedNumber,
	"contact_number_too_long":               refusedNumber,
	"contact_number_too_short":              refusedNumber,
	"contact_number_other_digits":           refusedNumber,
	"contact_number_with_letters":           refusedNumber,
	"contact_via_bot":                       refusedIndirect,
	"contact_edited":                        refusedIndirect,
	"contact_as_edited_message":             refusedKind,
	"contact_as_business_message":           refusedKind,
	"contact_as_edited_business_message":    refusedKind,
	"contact_as_guest_message":              refusedKind,

	"edited_message":                   refusedKind,
	"business_message":                 refusedKind,
	"edited_business_message":          refusedKind,
	"guest_message":                    refusedKind,
	"channel_post":                     refusedKind,
	"edited_channel_post":              refusedKind,
	"callback_query":                   refusedKind,
	"my_chat_member":                   refusedKind,
	"inline_query":                     refusedKind,
	"message_with_business_connection": refusedIndirect,
	"message_with_guest_query":         refusedIndirect,
	"message_of_a_business_bot":        refusedIndirect,
	"message_via_bot":                  refusedIndirect,
	"message_of_a_sender_chat":         refusedIndirect,
	"message_of_a_bot":                 refusedBot,
	"message_without_from":             refusedChat,
	"message_without_chat":             refusedChat,
	"start_in_a_group":                 refusedChat,
	"start_in_a_supergroup":            refusedChat,
	"start_in_another_private_chat":    refusedChat,
	"message_without_date":             outcomeTooLate,
	"message_of_next_year":             outcomeTooLate,
	"message_of_yesterday":             outcomeTooLate,
	"start_forwarded":                  refusedForwarded,
	"start_forwarded_from_channel":     refusedForwarded,
	"start_without_payload":            outcomeNothing,
	"start_at_another_bot":             refusedCommand,
	"start_payload_of_65":              refusedPayload,
	"another_command":                  refusedCommand,
	"unknown_code":                     outcomeUnknown,
	"typo":                             outcomeNothing,
	"small_talk":                       outcomeNothing,
	"photo":                            refusedEmpty,
	"update_id_absent":                 refusedMalformed,
	"update_id_negative":               refusedMalformed,
	"update_id_zero":                   refusedMalformed,
	"update_id_above_2_53":             refusedMalformed,
	"update_id_above_2_64":             refusedMalformed,
	"update_id_string":                 refusedMalformed,
	"update_id_fraction":               refusedMalformed,
}

// mute are the outcomes after which nobody is written to: there is no private chat with a person to write to.
var mute = map[outcome]bool{
	refusedMalformed: true, refusedKind: true, refusedChat: true, refusedBot: true, refusedIndirect: true,
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
				w.Expect(w.accept(golden(t, "in/start"))).To(Equal(outcomeNeedContact))
				prompts++
			}
			w.Expect(w.accept(golden(t, "in/"+name))).To(Equal(want))
			wantPhase, replies := verification.Pending, 1
			if want == outcomeVerified {
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
