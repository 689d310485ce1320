package simulator

import (
	"crypto/hmac"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// shape adds the path and the type of every value in v: what a format is, apart from what it says.
func shape(paths map[string]bool, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			shape(paths, at+"."+name, value)
		}
	case []any:
		for _, value := range v {
			shape(paths, at+"[]", value)
		}
	case string:
		paths[at+" string"] = true
	case float64:
		paths[at+" number"] = true
	case bool:
		paths[at+" bool"] = true
	default:
		paths[at+" null"] = true
	}
}

func shapeOf(t *testing.T, content []byte) map[string]bool {
	t.Helper()
	var v any
	NewWithT(t).Expect(json.Unmarshal(content, &v)).To(Succeed())
	paths := map[string]bool{}
	shape(paths, "", v)
	return paths
}

// known returns the shapes of the channels' own golden payloads, each of which was read from a public source.
func known(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../messenger/" + pattern)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(files).NotTo(BeEmpty())
	return shapesOf(t, files)
}

func shapesOf(t *testing.T, files []string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		maps.Copy(all, shapeOf(t, content))
	}
	return all
}

// knownOfMeta returns the shapes of all that Meta is known to post.
func knownOfMeta(t *testing.T) map[string]bool {
	t.Helper()
	own, err := filepath.Glob("testdata/in/*.json")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	all := known(t, "whatsapp/testdata/in/*.json")
	maps.Copy(all, shapesOf(t, own))
	return all
}

func unknownIn(paths, known map[string]bool) []string {
	var all []string
	for path := range paths {
		if !known[path] {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	return readGolden(t, "../messenger/"+name)
}

// ownGolden returns a payload of testdata, whose README names its source.
func ownGolden(t *testing.T, name string) []byte {
	t.Helper()
	return readGolden(t, "testdata/"+name+".json")
}

func readGolden(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

// sheena is the user of the goldens, and shop the business that they write to.
var (
	sheena = &user{Person: Person{
		Name: "Sheena Nelson", Phone: "+16505551234", Username: "realsheenanelson", WhatsAppID: "16505551234", TelegramPhone: "16505551234",
	}, ID: "1", TelegramID: 7304118825}
	shop = &business{ID: "106540352242922", WABA: "102290129340398", Number: "15550783881"}
	noon = time.Unix(1795168830, 0)
)

func TestWhatsApp_webhooksHaveMetasShape(t *testing.T) {
	hidden := *sheena
	hidden.HidesNumber = true
	yes := replyButton{ID: "cancel-button", Title: "Cancel"}
	for name, test := range map[string]struct {
		value  waValue
		golden []byte
	}{
		"with a username":  {sheena.newTextValue(shop, "Hi", noon), golden(t, "whatsapp/testdata/in/text_username.json")},
		"without a number": {hidden.newTextValue(shop, "Hi", noon), golden(t, "whatsapp/testdata/in/text_user_id_only.json")},
		"a tap":            {sheena.newTapValue(shop, yes, "wamid.1", noon), ownGolden(t, "in/button_reply")},
		"a hidden tap":     {hidden.newTapValue(shop, yes, "wamid.1", noon), ownGolden(t, "in/button_reply_user_id")},
		"the contact":      {hidden.newCardValue(shop, noon), golden(t, "whatsapp/testdata/in/contacts_answer_in_contact.json")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := shapeOf(t, test.golden)
			for path := range want { // portfolios of portfolios are not simulated
				if strings.Contains(path, "parent_user_id") {
					delete(want, path)
				}
			}
			g.Expect(shapeOf(t, encodeEscaped(newEnvelope(test.value)))).To(Equal(want))
		})
	}
	t.Run("says what the golden says", func(t *testing.T) {
		var want, got map[string]any
		g := NewWithT(t)
		g.Expect(json.Unmarshal(golden(t, "whatsapp/testdata/in/text.json"), &want)).To(Succeed())
		entry := want["entry"].([]any)[0].(map[string]any)
		message := entry["changes"].([]any)[0].(map[string]any)["value"].(map[string]any)["messages"].([]any)[0].(map[string]any)
		v := sheena.newTextValue(shop, message["text"].(map[string]any)["body"].(string), noon)
		v.Contacts[0].UserID, v.Contacts[0].Profile.Username, v.Messages[0].FromUserID = "", "", ""
		v.Messages[0].ID = message["id"].(string)
		g.Expect(json.Unmarshal(encodeEscaped(newEnvelope(v)), &got)).To(Succeed())
		g.Expect(got).To(Equal(want))
	})
}

func TestEncodeEscaped_isHowMetaWritesIt(t *testing.T) {
	g := NewWithT(t)
	raw := golden(t, "whatsapp/testdata/in/text_escaped.json")
	g.Expect(string(raw)).To(ContainSubstring(`J\u00fcrgen Wei\u00df \ud83d\ude00 \/ \u7530\u4e2d`))
	g.Expect(string(encodeEscaped("Jürgen Weiß 😀 / 田中"))).To(Equal(`"J\u00fcrgen Wei\u00df \ud83d\ude00 \/ \u7530\u4e2d"`))
	g.Expect(string(encodeEscaped("<&>\"\\\n"))).To(Equal(`"<&>\"\\\n"`))
}

func TestTelegram_updatesHaveTheReferencesShape(t *testing.T) {
	all := known(t, "telegram/testdata/in/*.json")
	c := &chat{}
	for name, m := range map[string]tgMessage{
		"start":   sheena.telegramText(c, "/start A5Z3-8SS1-NM0V-VGWK", noon),
		"text":    sheena.telegramText(c, "Hi", noon),
		"contact": sheena.telegramContact(c, noon),
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(unknownIn(shapeOf(t, encodePlain(tgUpdate{"update_id": 1, kindMessage: m})), all)).To(BeEmpty())
		})
	}
	NewWithT(t).Expect(shapeOf(t, encodePlain(tgUpdate{"update_id": 1, kindMessage: sheena.telegramText(c, "/start x", noon)}))).
		To(Equal(shapeOf(t, golden(t, "telegram/testdata/in/start.json"))))
	NewWithT(t).Expect(shapeOf(t, encodePlain(tgUpdate{"update_id": 1, kindMessage: sheena.telegramContact(c, noon)}))).
		To(Equal(shapeOf(t, golden(t, "telegram/testdata/in/contact.json"))))
}

func TestWebhooks_areSignedOverTheirBytes(t *testing.T) {
	w, c := registered(t)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/2/send", `{"link": "`+waLink+`"}`)
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(1))
	got := c.all()[0]
	w.Expect(string(got.body)).To(ContainSubstring(`Luis Ib\u00e1\u00f1ez`))
	w.Expect(hmac.Equal([]byte(got.header.Get("X-Hub-Signature-256")), []byte(metaMAC([]byte(credential), got.body)))).To(BeTrue())

	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/2/send", `{"link": "`+tgLink+`"}`)
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(2))
	w.Expect(c.all()[1].header.Get("X-Telegram-Bot-Api-Secret-Token")).To(Equal("the-secret"))
}

// shapeOfValue returns the shape of what was decoded.
func shapeOfValue(v any) map[string]bool {
	paths := map[string]bool{}
	shape(paths, "", v)
	return paths
}
