package app

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// TestDev_pageShowsEveryButton: a question with two buttons shows both, each can be tapped by keyboard, and they go together.
func TestDev_pageShowsEveryButton(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	b := openTab(t)
	d.call(http.StatusNoContent, http.MethodPut, d.page+"/sim/accounts/whatsapp/777", map[string]string{"number": "+4915112345699"})
	link := map[string]string{"link": "https://wa.me/4915112345699?text=Hello"}
	d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/send", link)
	button := func(id, title string) map[string]any {
		return map[string]any{"type": "reply", "reply": map[string]string{"id": id, "title": title}}
	}
	d.call(http.StatusOK, http.MethodPost, d.page+"/v25.0/777/messages?access_token=sim_4915112345699", map[string]any{
		"messaging_product": "whatsapp", "to": "4915112345678", "type": "interactive", "interactive": map[string]any{
			"type": "button", "body": map[string]string{"text": "Is it you?"},
			"action": map[string]any{"buttons": []any{button("echo:1", "Confirm"), button("notme:1", "Not me")}},
		},
	})
	b.Resize(320, 800)
	b.openPage(d)
	b.AwaitText("#replies button:first-child", Equal("Confirm"))
	b.AwaitText("#replies button:last-child", Equal("Not me"))
	b.expectAllShown("question")
	b.TabTo("#replies button:last-child")
	b.PressKey("Enter")
	b.AwaitText("#messages .bubble.user:last-child", HavePrefix("Not me"))
	b.AwaitFocus("#text")
	b.Await(`document.getElementById("replies").checkVisibility()`, BeFalse())
	b.Expect(b.TakeProblems()).To(BeEmpty())
}
