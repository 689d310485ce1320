package simphone

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger/telegram"
	"github.com/phoneproof/phoneproof/internal/messenger/whatsapp"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/internal/texts"
)

const number = "+4915112345678"

// TestLatestCodes sends the message in every language through both messengers.
func TestLatestCodes(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(simulator.New(simulator.Options{}))
	t.Cleanup(server.Close)
	read := func() (Codes, error) { return LatestCodes(t.Context(), server.Client(), server.URL, number) }
	_, err := read()
	g.Expect(err).To(MatchError(ErrNoCodes))
	_, err = LatestCodes(t.Context(), server.Client(), server.URL, "99")
	g.Expect(err).To(MatchError(ContainSubstring("404")))

	graph, err := whatsapp.NewClient(whatsapp.ClientOptions{SimulatorURL: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	botAPI, err := telegram.NewClient(telegram.ClientOptions{SimulatorURL: server.URL})
	g.Expect(err).NotTo(HaveOccurred())
	secret := settings.NewSecret([]byte("sim_4915112345670"))
	business := &settings.WhatsApp{PhoneNumber: "+4915112345670", PhoneNumberID: "1234567890", AccessToken: secret, AppSecret: secret, Simulated: true}
	bot := &settings.Telegram{BotUsername: "shop_bot", BotToken: settings.NewSecret([]byte("sim_shop_bot")), Simulated: true}
	_, err = graph.PhoneNumber(t.Context(), business)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = botAPI.GetMe(t.Context(), bot)
	g.Expect(err).NotTo(HaveOccurred())
	for _, link := range []string{"https://wa.me/4915112345670?text=Hello", "https://t.me/shop_bot?start=ABCD"} {
		response, err := server.Client().Post(server.URL+"/sim/users/"+number+"/send", "application/json", strings.NewReader(`{"link": "`+link+`"}`))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(http.StatusAccepted))
	}
	to, err := phone.FromE164(number)
	g.Expect(err).NotTo(HaveOccurred())
	for i, language := range texts.Languages() {
		own := texts.BuiltIn().In(language)
		m := texts.SessionMessage{Name: "Shop 123456", Digits: "0000" + string(rune('0'+i/10)) + string(rune('0'+i%10))}
		g.Expect(graph.AskWithButtons(t.Context(), business, whatsapp.ToNumber(to), whatsapp.Question{
			Text: own.FillSession(m), Buttons: []whatsapp.Button{{ID: "notme:x", Title: own.ButtonNotMe}},
		})).To(Succeed())
		found, err := read()
		g.Expect(err).NotTo(HaveOccurred(), language)
		g.Expect(found.Digits).To(Equal(m.Digits), language)
		g.Expect(found.ReturnLink).To(BeEmpty())

		m.Digits, m.Link = "9"+m.Digits[1:], "https://verify.example/v/x/return?code=abc"
		g.Expect(botAPI.SendWithoutPreview(t.Context(), bot, 7_300_000_001, own.FillSession(m), telegram.Keyboard{Answer: own.ButtonNotMe})).To(Succeed())
		found, err = read()
		g.Expect(err).NotTo(HaveOccurred(), language)
		g.Expect(found.Digits).To(Equal(m.Digits), language)
		g.Expect(found.ReturnLink).To(Equal(m.Link), language)
	}
	g.Expect(graph.SendText(t.Context(), business, whatsapp.ToNumber(to), "Thank you.")).To(Succeed())
	g.Expect(read()).To(HaveField("Digits", HavePrefix("9")), "other messages are none")
}
