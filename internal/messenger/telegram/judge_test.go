package telegram

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
)

// One rule at a time: each row is a message that counts but for one thing, so that no rule hides the lack of another.
func TestRead_eachRuleByItself(t *testing.T) {
	const (
		text    = `{"update_id":7,"message":{"from":{"id":42,"is_bot":false},"chat":{"id":42,"type":"private"},"date":1800000000,"text":"/start a"}}`
		contact = `{"update_id":7,"message":{"from":{"id":42,"is_bot":false},"chat":{"id":42,"type":"private"},"date":1800000000,` +
			`"contact":{"phone_number":"4915112345678","user_id":42}}}`
	)
	for name, test := range map[string]struct {
		update, old, new string
		want             messenger.Outcome
	}{
		"a text that counts":                {update: text},
		"a contact that counts":             {update: contact},
		"in a group":                        {text, `"private"`, `"group"`, messenger.OutcomeNotPrivate},
		"in a supergroup":                   {contact, `"private"`, `"supergroup"`, messenger.OutcomeNotPrivate},
		"in a channel":                      {text, `"private"`, `"channel"`, messenger.OutcomeNotPrivate},
		"in the chat of another":            {contact, `"chat":{"id":42`, `"chat":{"id":43`, messenger.OutcomeNotPrivate},
		"of no user":                        {text, `"from":`, `"no_user":`, messenger.OutcomeNotPrivate},
		"of no user, spelled in capitals":   {text, `"from":`, `"FROM":`, messenger.OutcomeNotPrivate},
		"of a bot":                          {text, `"is_bot":false`, `"is_bot":true`, messenger.OutcomeBot},
		"edited":                            {text, `"date":`, `"edit_date":1,"date":`, messenger.OutcomeIndirect},
		"by way of a bot":                   {text, `"date":`, `"via_bot":{},"date":`, messenger.OutcomeIndirect},
		"in the name of a chat":             {text, `"date":`, `"sender_chat":{},"date":`, messenger.OutcomeIndirect},
		"by a business's bot":               {text, `"date":`, `"sender_business_bot":{},"date":`, messenger.OutcomeIndirect},
		"over a business connection":        {text, `"date":`, `"business_connection_id":"a","date":`, messenger.OutcomeIndirect},
		"of a guest's query":                {text, `"date":`, `"guest_query_id":"a","date":`, messenger.OutcomeIndirect},
		"forwarded":                         {contact, `"date":`, `"forward_origin":{},"date":`, messenger.OutcomeForwarded},
		"forwarded, by an older server":     {contact, `"date":`, `"forward_date":1,"date":`, messenger.OutcomeForwarded},
		"a contact of no user":              {contact, `"user_id":42`, `"vcard":""`, messenger.OutcomeContactWithoutUser},
		"a contact of no user, in capitals": {contact, `"user_id":42`, `"User_ID":42`, messenger.OutcomeContactWithoutUser},
		"a contact of another":              {contact, `"user_id":42`, `"user_id":43`, messenger.OutcomeContactOfAnother},
		"a contact spelled in capitals":     {contact, `"contact":`, `"CONTACT":`, messenger.OutcomeOtherType},
		"a message spelled in capitals":     {text, `"message":`, `"Message":`, messenger.OutcomeOtherUpdate},
		"an edited message":                 {text, `"message":`, `"edited_message":`, messenger.OutcomeOtherUpdate},
		"without an id":                     {text, `"update_id":7,`, ``, messenger.OutcomeMalformed},
		"with an id spelled in capitals":    {text, `"update_id"`, `"UPDATE_ID"`, messenger.OutcomeMalformed},
		"a command for another bot":         {text, `/start a`, `/start@otherbot a`, messenger.OutcomeOtherCommand},
		"a command for this bot":            {text, `/start a`, `/start@ShopBot a`, ""},
		"another command":                   {text, `/start a`, `/stop a`, messenger.OutcomeOtherCommand},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			update := test.update
			if test.old != "" {
				g.Expect(strings.Count(update, test.old)).To(Equal(1))
				update = strings.Replace(update, test.old, test.new, 1)
			}
			_, why := readInbound([]byte(update), "shopbot")
			g.Expect(why).To(Equal(test.want))
		})
	}
}
