package whatsapp

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// goldens says what each payload in testdata/in comes to, and what the user is told.
var goldens = map[string]struct {
	want  map[outcome]int
	reply string
}{
	"text":                     {map[outcome]int{outcomeVerified: 1}, saidVerified},
	"text_escaped":             {map[outcome]int{outcomeVerified: 1}, saidVerified},
	"text_username":            {map[outcome]int{outcomeVerified: 1}, saidVerified},
	"text_reply":               {map[outcome]int{outcomeVerified: 1}, saidVerified},
	"text_ad":                  {map[outcome]int{outcomeVerified: 1}, saidVerified},
	"button":                   {map[outcome]int{outcomeNeedConfirmation: 1}, saidConfirm},
	"button_text":              {map[outcome]int{outcomeNeedConfirmation: 1}, saidConfirm},
	"interactive_button_reply": {map[outcome]int{outcomeNeedConfirmation: 1}, saidConfirm},
	"interactive_list_reply":   {map[outcome]int{outcomeNeedConfirmation: 1}, saidConfirm},
	"batch":                    {map[outcome]int{outcomeVerified: 1, outcomeNoCode: 1, outcomeOtherNumber: 1, outcomeStatus: 1}, saidVerified},

	"text_user_id_only":           {map[outcome]int{outcomeNumberHidden: 1}, textNumberHidden},
	"text_user_id_in_from":        {map[outcome]int{outcomeNumberHidden: 1}, textNumberHidden},
	"text_forwarded":              {map[outcome]int{outcomeForwarded: 1}, ""},
	"text_frequently_forwarded":   {map[outcome]int{outcomeForwarded: 1}, ""},
	"text_group":                  {map[outcome]int{outcomeGroup: 1}, ""},
	"interactive_nfm_reply":       {map[outcome]int{outcomeOtherType: 1}, ""},
	"contacts_answer_in_contact":  {map[outcome]int{outcomeContactRefused: 1}, ""},
	"contacts_answer_in_message":  {map[outcome]int{outcomeContactRefused: 1}, ""},
	"contacts_answer_with_number": {map[outcome]int{outcomeContactRefused: 1}, ""},
	"contacts_answer_without_ids": {map[outcome]int{outcomeNoSender: 1}, ""},
	"contacts_other":              {map[outcome]int{outcomeContactRefused: 1}, ""},
	"contacts_card":               {map[outcome]int{outcomeContactRefused: 1}, ""},
	"reaction":                    {map[outcome]int{outcomeOtherType: 1}, ""},
	"image":                       {map[outcome]int{outcomeOtherType: 1}, ""},
	"edit":                        {map[outcome]int{outcomeOtherType: 1}, ""},
	"revoke":                      {map[outcome]int{outcomeOtherType: 1}, ""},
	"unsupported":                 {map[outcome]int{outcomeOtherType: 1}, ""},
	"system_number":               {map[outcome]int{outcomeOtherType: 1}, ""},
	"system_user_id":              {map[outcome]int{outcomeOtherType: 1}, ""},
	"status":                      {map[outcome]int{outcomeStatus: 1}, ""},
	"status_user_id":              {map[outcome]int{outcomeStatus: 1}, ""},
	"echo":                        {map[outcome]int{outcomeEcho: 1}, ""},
	"user_id_update":              {map[outcome]int{outcomeOtherField: 1}, ""},
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
			if expected.want[outcomeVerified] > 0 {
				want = verification.Verified
			}
			state := f.state(made.Request.ID)
			f.Expect(state.Phase).To(Equal(want))
			f.Expect(state.Contacts).To(HaveLen(expected.want[outcomeNeedConfirmation]))
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
			f.Expect(f.outcomes()).To(Equal(map[outcome]int{outcomeNeedContact: 1}))
			prompts := f.graph.all()
			f.Expect(prompts).To(HaveLen(1), "the prompt is sent before the answer")
			said := strings.Trim(string(encode(saidShareContact)), `"`)
			f.Expect(strings.ReplaceAll(prompts[0].Body, said, "Please share your number.")).
				To(MatchJSON(golden(t, "out/request_contact_info")))
			state := f.state(made.Request.ID)
			f.Expect(state.Contacts).To(HaveLen(1))
			f.Expect(state.Contacts[0].Binding).To(MatchRegexp(`^[0-9a-f]{64}$`))

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
