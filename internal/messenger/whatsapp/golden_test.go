package whatsapp

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// goldens has the outcomes of each payload in testdata/in, and the reply to the user.
var goldens = map[string]struct {
	want  map[messenger.Outcome]int
	reply string
}{
	"text":                     {map[messenger.Outcome]int{messenger.OutcomeVerified: 1}, saidVerified},
	"text_escaped":             {map[messenger.Outcome]int{messenger.OutcomeVerified: 1}, saidVerified},
	"text_username":            {map[messenger.Outcome]int{messenger.OutcomeVerified: 1}, saidVerified},
	"text_reply":               {map[messenger.Outcome]int{messenger.OutcomeVerified: 1}, saidVerified},
	"text_ad":                  {map[messenger.Outcome]int{messenger.OutcomeVerified: 1}, saidVerified},
	"button":                   {map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1}, saidConfirm},
	"button_text":              {map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1}, saidConfirm},
	"interactive_button_reply": {map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1}, saidConfirm},
	"interactive_list_reply":   {map[messenger.Outcome]int{messenger.OutcomeNeedConfirmation: 1}, saidConfirm},
	"batch":                    {map[messenger.Outcome]int{messenger.OutcomeVerified: 1, messenger.OutcomeNoCode: 1, messenger.OutcomeOtherNumber: 1, messenger.OutcomeStatus: 1}, saidVerified},

	"text_user_id_only":           {map[messenger.Outcome]int{messenger.OutcomeNumberHidden: 1}, textNumberHidden},
	"text_user_id_in_from":        {map[messenger.Outcome]int{messenger.OutcomeNumberHidden: 1}, textNumberHidden},
	"text_forwarded":              {map[messenger.Outcome]int{messenger.OutcomeForwarded: 1}, saidTextRefused},
	"text_frequently_forwarded":   {map[messenger.Outcome]int{messenger.OutcomeForwarded: 1}, saidTextRefused},
	"text_group":                  {map[messenger.Outcome]int{messenger.OutcomeNotPrivate: 1}, ""},
	"interactive_nfm_reply":       {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"contacts_answer_in_contact":  {map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}, ""},
	"contacts_answer_in_message":  {map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}, ""},
	"contacts_answer_with_number": {map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}, ""},
	"contacts_answer_without_ids": {map[messenger.Outcome]int{messenger.OutcomeNoSender: 1}, ""},
	"contacts_other":              {map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}, ""},
	"contacts_card":               {map[messenger.Outcome]int{messenger.OutcomeContactRefused: 1}, ""},
	"reaction":                    {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"image":                       {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, saidTextRefused},
	"edit":                        {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, saidTextRefused},
	"revoke":                      {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"unsupported":                 {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"system_number":               {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"system_user_id":              {map[messenger.Outcome]int{messenger.OutcomeOtherType: 1}, ""},
	"status":                      {map[messenger.Outcome]int{messenger.OutcomeStatus: 1}, ""},
	"status_user_id":              {map[messenger.Outcome]int{messenger.OutcomeStatus: 1}, ""},
	"status_billed":               {map[messenger.Outcome]int{messenger.OutcomeStatus: 1}, ""},
	"status_failed":               {map[messenger.Outcome]int{messenger.OutcomeStatus: 1}, ""},
	"echo":                        {map[messenger.Outcome]int{messenger.OutcomeEcho: 1}, ""},
	"user_id_update":              {map[messenger.Outcome]int{messenger.OutcomeOtherUpdate: 1}, ""},
}

func TestHook_goldens(t *testing.T) {
	files, err := filepath.Glob("testdata/in/*.json")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	sources, err := os.ReadFile("testdata/README.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).To(HaveLen(len(goldens)))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.strict()
			f.Expect(string(sources)).To(MatchRegexp(`\bin/`+name+`\b`), "its source must be named")
			made := f.request("first", user, verification.WhatsApp)
			f.Expect(made.Code.Grouped()).To(Equal(firstCode))
			f.clock.SetTime(started.Add(time.Minute))

			f.Expect(f.post(golden(t, "in/"+name)).Code).To(Equal(http.StatusOK))
			expected := goldens[name]
			f.Expect(f.outcomes()).To(Equal(expected.want))
			want := verification.Pending
			if expected.want[messenger.OutcomeVerified] > 0 {
				want = verification.Verified
			}
			state := f.state(made.Request.ID)
			f.Expect(state.Phase).To(Equal(want))
			f.Expect(state.Contacts).To(HaveLen(expected.want[messenger.OutcomeNeedConfirmation]))
			if want == verification.Verified {
				f.Expect(state.Actual.Digits()).To(Equal(user))
				f.Expect(state.Assurance).To(Equal(verification.AssuranceUsual))
			}
			var told []string
			for _, c := range f.sendReplies() {
				told = append(told, c.text())
			}
			if expected.reply == "" {
				f.Expect(told).To(BeEmpty())
			} else {
				f.Expect(told).To(ContainElement(expected.reply))
			}
		})
	}
}

// TestHook_goldensOfSharedContacts sends the code without a number, and then each golden as the answer to the prompt.
func TestHook_goldensOfSharedContacts(t *testing.T) {
	for name, verified := range map[string]bool{
		"contacts_answer_in_contact":  true,
		"contacts_answer_in_message":  true,
		"contacts_answer_with_number": true,
		"contacts_answer_without_ids": false,
		"contacts_other":              false,
		"contacts_card":               false,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.acceptContacts()
			made := f.request("first", user, verification.WhatsApp)
			f.clock.SetTime(started.Add(time.Minute))
			f.Expect(f.post(golden(t, "in/text_user_id_only")).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNeedContact: 1}))
			prompts := f.graph.all()
			f.Expect(prompts).To(HaveLen(1), "the prompt is sent before the answer")
			said := strings.Trim(string(encode(saidShareContact)), `"`)
			state := f.state(made.Request.ID)
			f.Expect(state.Contacts).To(HaveLen(1))
			f.Expect(state.Contacts[0].Binding).To(MatchRegexp(`^[0-9a-f]{32}$`))
			reference := fmt.Sprintf("question:%s:%s:%d", made.Request.ID, state.Contacts[0].Binding, state.Contacts[0].BoundAt.UnixMicro())
			f.Expect(strings.NewReplacer(said, "Please share your number.", reference, "question:ID:BINDING:BOUND_AT").Replace(prompts[0].Body)).
				To(MatchJSON(golden(t, "out/request_contact_info")))

			f.Expect(f.post(golden(t, "in/"+name)).Code).To(Equal(http.StatusOK))
			state = f.state(made.Request.ID)
			if !verified {
				f.Expect(state.Phase).To(Equal(verification.Pending))
				return
			}
			f.Expect(state.Phase).To(Equal(verification.Verified))
			f.Expect(state.Actual.Digits()).To(Equal(user))
			f.Expect(state.Assurance).To(Equal(verification.AssuranceSharedContact))
			calls := f.sendReplies()
			f.Expect(calls).To(HaveLen(2))
			f.Expect(calls[1].text()).To(Equal(saidVerified))
		})
	}
}
