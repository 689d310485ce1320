package telegram

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
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
		want             outcome
	}{
		"a text that counts":                   {update: text},
		"a contact that counts":                {update: contact},
		"in a group":                           {text, `"private"`, `"group"`, refusedChat},
		"in a supergroup":                      {contact, `"private"`, `"supergroup"`, refusedChat},
		"in a channel":                         {text, `"private"`, `"channel"`, refusedChat},
		"in the chat of another":               {contact, `"chat":{"id":42`, `"chat":{"id":43`, refusedChat},
		"of nobody":                            {text, `"from":`, `"nobody":`, refusedChat},
		"of nobody, spelled in capitals":       {text, `"from":`, `"FROM":`, refusedChat},
		"of a bot":                             {text, `"is_bot":false`, `"is_bot":true`, refusedBot},
		"edited":                               {text, `"date":`, `"edit_date":1,"date":`, refusedIndirect},
		"by way of a bot":                      {text, `"date":`, `"via_bot":{},"date":`, refusedIndirect},
		"in the name of a chat":                {text, `"date":`, `"sender_chat":{},"date":`, refusedIndirect},
		"by a business's bot":                  {text, `"date":`, `"sender_business_bot":{},"date":`, refusedIndirect},
		"over a business connection":           {text, `"date":`, `"business_connection_id":"a","date":`, refusedIndirect},
		"of a guest's query":                   {text, `"date":`, `"guest_query_id":"a","date":`, refusedIndirect},
		"forwarded":                            {contact, `"date":`, `"forward_origin":{},"date":`, refusedForwarded},
		"forwarded, by an older server":        {contact, `"date":`, `"forward_date":1,"date":`, refusedForwarded},
		"a contact of nobody":                  {contact, `"user_id":42`, `"vcard":""`, refusedNoUser},
		"a contact of nobody, then in capital": {contact, `"user_id":42`, `"User_ID":42`, refusedNoUser},
		"a contact of another":                 {contact, `"user_id":42`, `"user_id":43`, refusedForeign},
		"a contact spelled in capitals":        {contact, `"contact":`, `"CONTACT":`, refusedEmpty},
		"a message spelled in capitals":        {text, `"message":`, `"Message":`, refusedKind},
		"an edited message":                    {text, `"message":`, `"edited_message":`, refusedKind},
		"without an id":                        {text, `"update_id":7,`, ``, refusedMalformed},
		"with an id spelled in capitals":       {text, `"update_id"`, `"UPDATE_ID"`, refusedMalformed},
		"a command for another bot":            {text, `/start a`, `/start@otherbot a`, refusedCommand},
		"a command for this bot":               {text, `/start a`, `/start@ShopBot a`, ""},
		"another command":                      {text, `/start a`, `/stop a`, refusedCommand},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			update := test.update
			if test.old != "" {
				g.Expect(strings.Count(update, test.old)).To(Equal(1))
				update = strings.Replace(update, test.old, test.new, 1)
			}
			_, why := read([]byte(update), "shopbot")
			g.Expect(why).To(Equal(test.want))
		})
	}
}
