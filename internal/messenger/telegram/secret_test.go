package telegram

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
)

// A binding is stored and seen in objects, so it must not tell the sender's id.
func TestBindings_areKeyed(t *testing.T) {
	g := NewWithT(t)
	const sender = 4242424242
	of := func(token, project string) string {
		all := senderBindings(&settings.Settings{Project: project, Telegram: &settings.Telegram{
			BotUsername: "example_shop_bot", BotToken: settings.NewSecret([]byte(token)),
		}}, sender, time.Unix(1, 0))
		g.Expect(all).To(HaveLen(1))
		return all[0]
	}
	first := of("123456:first", "shop/checkout")
	g.Expect(first).To(MatchRegexp("^[0-9a-f]{32}$"))
	g.Expect(first).NotTo(ContainSubstring(strconv.Itoa(sender)))
	g.Expect(of("123456:first", "shop/checkout")).To(Equal(first))
	g.Expect(of("123456:second", "shop/checkout")).NotTo(Equal(first), "it takes the token to compute it")
	g.Expect(of("123456:first", "shop/other")).NotTo(Equal(first))
}
