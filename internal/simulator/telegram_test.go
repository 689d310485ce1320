package simulator

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	botapi "github.com/phoneproof/phoneproof/internal/messenger/telegram"
)

func TestBotAPI_aBotExistsOnceATokenNamesIt(t *testing.T) {
	w := startSimulator(t, Options{})
	w.call(http.StatusNotFound, http.MethodPost, "/sim/users/1/open", `{"link": "`+tgLink+`"}`)
	bot, err := w.botAPI.GetMe(t.Context(), telegramAccount(token))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(bot).To(Equal(botapi.Bot{ID: firstBotID, IsBot: true, Username: "shop_bot"}))
	w.Expect(w.call(http.StatusOK, http.MethodPost, "/sim/users/1/open", `{"link": "`+tgLink+`"}`)).To(HaveKeyWithValue("draft", "/start ABCD-1234"))
}

func TestBotAPI_answersHaveTheServersShape(t *testing.T) {
	w := startSimulator(t, Options{})
	for path, file := range map[string]string{
		"getMe": "get_me", "getUpdates": "get_updates_none", "getWebhookInfo": "get_webhook_info_none",
	} {
		_, answer := w.raw(http.MethodPost, "/bot"+token+"/"+path, "{}", nil)
		content, err := json.Marshal(answer)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(shapeOf(t, content)).To(Equal(shapeOf(t, golden(t, "telegram/testdata/answers/"+file+".json"))), path)
	}
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	_, answer := w.raw(http.MethodPost, "/bot"+token+"/sendMessage", `{"chat_id": 7300000001, "text": "Hi"}`, nil)
	content, err := json.Marshal(answer)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(unknownIn(shapeOf(t, content), known(t, "telegram/testdata/answers/send_message.json"))).To(BeEmpty())
}

// updates fetches and returns the ids.
func (w *runningSimulator) updates(offset int64) []int64 {
	w.t.Helper()
	raw, err := w.botAPI.GetUpdates(w.t.Context(), telegramAccount(token), offset, 100, 0)
	w.Expect(err).NotTo(HaveOccurred())
	var ids []int64
	for _, one := range raw {
		var update struct {
			ID int64 `json:"update_id"`
		}
		w.Expect(json.Unmarshal(one, &update)).To(Succeed())
		ids = append(ids, update.ID)
	}
	return ids
}

func TestGetUpdates_anUpdateStaysUntilAHigherOffsetConfirmsIt(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(w.updates(0)).To(BeEmpty())
	for range 3 {
		w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	}
	all := w.updates(0)
	w.Expect(all).To(Equal([]int64{firstUpdateID, firstUpdateID + 1, firstUpdateID + 2}))
	w.Expect(w.updates(0)).To(Equal(all), "asking confirms nothing")
	w.Expect(w.updates(all[1])).To(Equal(all[1:]))
	w.Expect(w.updates(0)).To(Equal(all[1:]))
	w.Expect(w.line("1")).To(HaveKeyWithValue("state", "sending"))
	w.Expect(w.updates(-1)).To(Equal(all[2:]))
	w.Expect(w.updates(all[2] + 1)).To(BeEmpty())
	w.Expect(w.line("1")).To(HaveKeyWithValue("state", "delivered"))
}

func TestGetUpdates_isHeldUntilSomethingComes(t *testing.T) {
	w := startSimulator(t, Options{})
	w.Expect(w.updates(0)).To(BeEmpty())
	got := make(chan int, 1)
	go func() {
		updates, err := w.botAPI.GetUpdates(t.Context(), telegramAccount(token), 0, 100, 30*time.Second)
		if err != nil {
			t.Error(err)
		}
		got <- len(updates)
	}()
	w.Eventually(w.polled).WithTimeout(patience).Should(BeTrue())
	w.Expect(got).NotTo(Receive())
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	w.Eventually(got).WithTimeout(patience).Should(Receive(Equal(1)))
}

// polled reports whether a poll is being held.
func (w *runningSimulator) polled() bool {
	w.sim.mu.Lock()
	defer w.sim.mu.Unlock()
	return len(w.sim.telegram.bots) > 0 && w.sim.telegram.bots[0].poll != nil
}

func TestGetUpdates_conflicts(t *testing.T) {
	w := startSimulator(t, Options{})
	account := telegramAccount(token)
	first := make(chan error, 1)
	hold := func() {
		_, err := w.botAPI.GetUpdates(t.Context(), account, 0, 100, 30*time.Second)
		first <- err
	}
	go hold()
	w.Eventually(w.polled).WithTimeout(patience).Should(BeTrue())
	w.Expect(w.updates(0)).To(BeEmpty(), "the second goes on")
	w.Eventually(first).WithTimeout(patience).Should(Receive(MatchError(botapi.ErrConflict)), "the first is ended")

	go hold()
	w.Eventually(w.polled).WithTimeout(patience).Should(BeTrue())
	w.Expect(w.botAPI.SetWebhook(t.Context(), account, "https://verify.example.com/hooks/telegram", "secret")).To(Succeed())
	w.Eventually(first).WithTimeout(patience).Should(Receive(MatchError(botapi.ErrConflict)))
	_, err := w.botAPI.GetUpdates(t.Context(), account, 0, 100, 0)
	w.Expect(err).To(MatchError(botapi.ErrConflict), "while a webhook is set")
	w.Expect(w.botAPI.DeleteWebhook(t.Context(), account)).To(Succeed())
	w.Expect(w.updates(0)).To(BeEmpty())
}

func TestSetWebhook_isWhatTheBotIsToldOfIt(t *testing.T) {
	w := startSimulator(t, Options{Redirect: func(string) string { return "" }})
	account := telegramAccount(token)
	w.Expect(w.botAPI.SetWebhook(t.Context(), account, "http://verify.example.com/", "secret")).To(MatchError(botapi.ErrRefused))
	w.Expect(w.botAPI.SetWebhook(t.Context(), account, "https://verify.example.com/", "not allowed!")).To(MatchError(botapi.ErrRefused))
	w.Expect(w.botAPI.SetWebhook(t.Context(), account, "https://verify.example.com/hook", "secret")).To(Succeed())
	info, err := w.botAPI.GetWebhookInfo(t.Context(), account)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(info.OnlyMessages()).To(BeTrue())
	w.Expect(info.URL).To(Equal("https://verify.example.com/hook"))
	w.Expect(info.MaxConnections).To(Equal(40))

	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	w.Eventually(func() int64 {
		info, err := w.botAPI.GetWebhookInfo(t.Context(), account)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(info.PendingUpdateCount).To(BeNumerically("<=", 1))
		return info.LastErrorDate
	}).WithTimeout(patience).ShouldNot(BeZero(), "it cannot be reached")
}

func TestSendMessage_reachesUsersWhoWroteFirst(t *testing.T) {
	w := startSimulator(t, Options{})
	account := telegramAccount(token)
	const chat = firstTelegramID + 1
	w.Expect(w.botAPI.SendMessage(t.Context(), account, chat, "Hi", botapi.Keyboard{})).To(MatchError(botapi.ErrRefused), "the user never wrote")
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	w.Expect(w.botAPI.SendMessage(t.Context(), account, chat, "Your number?", botapi.Keyboard{Contact: "Share my phone number"})).To(Succeed())
	chats := w.call(http.StatusOK, http.MethodGet, "/sim/users/1/chats", "")["chats"]
	w.Expect(chats).To(ConsistOf(And(HaveKeyWithValue("asksForContact", true), HaveKeyWithValue("button", "Share my phone number"))))
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/share-contact", "")
	w.Expect(w.botAPI.SendMessage(t.Context(), account, chat, "Thank you.", botapi.Keyboard{Remove: true})).To(Succeed())
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/1/share-contact", "")
	w.Expect(w.line("1")).To(HaveKeyWithValue("text", "Thank you."))
}

// TestSendMessage_keyboardOfAnswers: a button of a bot's keyboard sends its title as a text, and goes if it is for one time.
func TestSendMessage_keyboardOfAnswers(t *testing.T) {
	w, c := registered(t)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+tgLink+`"}`)
	w.call(http.StatusOK, http.MethodPost, "/sim/users/1/open", `{"link": "`+tgLink+`"}`)
	account, chat := telegramAccount(token), w.sim.phones.users[0].TelegramID
	replies := func() any { return w.chatOf("1")["replies"] }
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/1/tap", `{"title": "Not me"}`)

	w.Expect(w.botAPI.SendMessage(t.Context(), account, chat, "Your number?", botapi.Keyboard{Contact: "Share"})).To(Succeed())
	w.Expect(w.botAPI.SendWithoutPreview(t.Context(), account, chat, "Code: 123456 https://verify.example/", botapi.Keyboard{Answer: "Not me"})).To(Succeed())
	w.Expect(replies()).To(Equal([]any{map[string]any{"title": "Not me"}}))
	w.call(http.StatusConflict, http.MethodPost, "/sim/users/1/share-contact", "")
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/tap", `{"title": "Not me"}`)
	w.Expect(w.line("1")).To(And(HaveKeyWithValue("text", "Not me"), HaveKeyWithValue("from", "user")))
	w.Expect(replies()).To(BeNil())
	w.Expect(w.chatOf("1")).To(HaveKeyWithValue("draft", "/start ABCD-1234"))
	w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring(`"text":"Not me"`))

	status, _ := w.raw(http.MethodPost, "/bot"+token+"/sendMessage",
		`{"chat_id": 7300000001, "text": "See https://shop.example", "reply_markup": {"keyboard": [[{"text": "A"}, {"text": "B"}]]}}`, nil)
	w.Expect(status).To(Equal(http.StatusOK))
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/tap", `{"title": "B"}`)
	w.Expect(replies()).To(HaveLen(2), "such a keyboard stays")
	w.Expect(w.botAPI.SendMessage(t.Context(), account, chat, "Done.", botapi.Keyboard{Remove: true})).To(Succeed())
	w.Expect(replies()).To(BeNil())
	w.Expect(w.readLedger()).To(HaveExactElements(
		Not(HaveKey("linkPreview")), And(HaveKeyWithValue("buttons", HaveExactElements("Not me")), Not(HaveKey("linkPreview"))),
		HaveKeyWithValue("linkPreview", true), Not(HaveKey("linkPreview")),
	))
	status, _ = w.raw(http.MethodPost, "/bot"+token+"/sendMessage", `{"chat_id": 7300000001, "text": "Hi", "link_preview_options": [1]}`, nil)
	w.Expect(status).To(Equal(http.StatusBadRequest))
}

// chatOf returns the user's newest chat.
func (w *runningSimulator) chatOf(user string) map[string]any {
	w.t.Helper()
	chats := w.call(http.StatusOK, http.MethodGet, "/sim/users/"+user+"/chats", "")["chats"].([]any)
	w.Expect(chats).NotTo(BeEmpty())
	return chats[len(chats)-1].(map[string]any)
}

func TestBotAPI_refusesAsTelegramDoes(t *testing.T) {
	w := startSimulator(t, Options{})
	for name, test := range map[string]struct {
		path   string
		status int
		golden string
	}{
		"a real token":      {"/bot123456:AAE/getMe", http.StatusUnauthorized, "error_401"},
		"no username":       {"/botsim_1/getMe", http.StatusUnauthorized, "error_401"},
		"an unknown method": {"/bot" + token + "/getYou", http.StatusNotFound, "error_404"},
	} {
		t.Run(name, func(t *testing.T) {
			status, answer := w.raw(http.MethodPost, test.path, "{}", nil)
			w.Expect(status).To(Equal(test.status))
			content, err := json.Marshal(answer)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(content).To(MatchJSON(golden(t, "telegram/testdata/answers/"+test.golden+".json")))
		})
	}
	w.call(http.StatusNoContent, http.MethodPost, "/sim/faults", `{"platform": "telegram", "method": "sendMessage", "status": 429, "retryAfter": 7}`)
	w.Expect(w.updates(0)).To(BeEmpty(), "another method works")
	status, answer := w.raw(http.MethodPost, "/bot"+token+"/sendMessage", "{}", nil)
	w.Expect(status).To(Equal(http.StatusTooManyRequests))
	content, err := json.Marshal(answer)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(content).To(MatchJSON(golden(t, "telegram/testdata/answers/error_429.json")))
	w.call(http.StatusNoContent, http.MethodPost, "/sim/revoke", `{"credential": "`+token+`"}`)
	_, err = w.botAPI.GetMe(t.Context(), telegramAccount(token))
	w.Expect(err).To(MatchError(botapi.ErrCredentials))
	_, err = w.botAPI.GetMe(t.Context(), telegramAccount("sim_shop_bot:new"))
	w.Expect(err).NotTo(HaveOccurred(), "the next token of the same bot")
}
