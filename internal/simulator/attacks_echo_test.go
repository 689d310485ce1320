package simulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// flattenValues adds every value in v by its path.
func flattenValues(values map[string]any, at string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			flattenValues(values, at+"."+name, value)
		}
	case []any:
		for i, value := range v {
			flattenValues(values, fmt.Sprintf("%s[%d]", at, i), value)
		}
	default:
		values[at] = v
	}
}

// findChanges returns what is said otherwise in a webhook than in the genuine one: by its path in the value, nil for what is not
// there. Each message has its own id and time.
func findChanges(t *testing.T, genuine, forged []byte) map[string]any {
	t.Helper()
	values := [2]map[string]any{{}, {}}
	for i, body := range [][]byte{genuine, forged} {
		var v any
		NewWithT(t).Expect(json.Unmarshal(body, &v)).To(Succeed())
		flattenValues(values[i], "", v)
	}
	all := map[string]any{}
	for path := range values[0] {
		if _, ok := values[1][path]; !ok {
			all[path] = nil
		}
	}
	for path, v := range values[1] {
		if values[0][path] != v {
			all[path] = v
		}
	}
	short := map[string]any{}
	for path, v := range all {
		if path = strings.TrimPrefix(path, ".entry[0].changes[0].value."); path != "messages[0].id" && path != "messages[0].timestamp" {
			short[path] = v
		}
	}
	return short
}

// echoScene is an account that sent echoes: one to Ada, and two to Noa, who hides the number, and sent the code.
type echoScene struct {
	*runningSimulator

	c *callback
	// the ids of the questions
	toAda, older, newest string
}

func startEchoScene(t *testing.T) *echoScene {
	t.Helper()
	w, c := registered(t)
	s := &echoScene{runningSimulator: w, c: c}
	ask := func(to, name string) string {
		return idOf(w.sendMessage(http.StatusOK, newQuestion(to, "echo:"+name, "notme:"+name)))
	}
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`", "text": "My own code"}`)
	s.toAda = ask(adaNumber, "OF-ADA")
	w.writeAs("4")
	s.older = ask(noaNumber, "OLDER1")
	s.newest = ask(noaNumber, "ABCDEF")
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(8), "two messages, and two statuses of each question")
	return s
}

// genuineTap returns the tap of the sender of the code.
func (s *echoScene) genuineTap(sender string) []byte {
	s.t.Helper()
	s.sim.mu.Lock()
	defer s.sim.mu.Unlock()
	u, f := s.sim.phones.findUser(sender)
	s.Expect(f).NotTo(HaveOccurred())
	v := u.newTapValue(s.sim.whatsApp.businesses[0], replyButton{"echo:ABCDEF", "Confirm"}, s.newest, s.sim.clock.Now())
	return encodeEscaped(newEnvelope(v))
}

// runAttack attacks by Mallory, and returns what was posted.
func (s *echoScene) runAttack(name string) []posted {
	s.t.Helper()
	before := len(s.c.all())
	answer := s.call(http.StatusOK, http.MethodPost, "/sim/users/5/attack/"+name, `{"link": "`+waLink+`", "phone": "+`+noaNumber+`"}`)
	after := s.c.all()[before:]
	s.Expect(answer["deliveries"]).To(HaveLen(len(after)))
	return after
}

// TestEchoAttacks_differFromTheTapAsTheySay: what a forgery is refused for must be the one thing in it that is wrong.
func TestEchoAttacks_differFromTheTapAsTheySay(t *testing.T) {
	s := startEchoScene(t)
	noa, mallory := s.userID("4"), s.userID("5")
	tap := func(id any) map[string]any { return map[string]any{"messages[0].interactive.button_reply.id": id} }
	noTap := map[string]any{
		"messages[0].interactive.type": nil, "messages[0].interactive.button_reply.id": nil, "messages[0].interactive.button_reply.title": nil,
	}
	with := func(changed, more map[string]any) map[string]any {
		all := maps.Clone(changed)
		maps.Copy(all, more)
		return all
	}
	want := map[string][]map[string]any{
		"echo-tap-by-another-user": {{
			"messages[0].from": malloryNumber, "messages[0].from_user_id": mallory,
			"contacts[0].wa_id": malloryNumber, "contacts[0].user_id": mallory,
			"contacts[0].profile.name": "Mallory", "contacts[0].profile.username": "@mallory",
		}},
		"echo-tap-without-user-id": {{"messages[0].from_user_id": nil}},
		"echo-tap-by-number-only": {{
			"messages[0].from_user_id": nil, "contacts[0].user_id": nil, "messages[0].from": noaNumber, "contacts[0].wa_id": noaNumber,
		}},
		"echo-tap-with-other-number":  {{"messages[0].from": malloryNumber, "contacts[0].wa_id": malloryNumber}},
		"echo-tap-of-another-request": {with(tap("echo:OF-ADA"), map[string]any{"messages[0].context.id": s.toAda}), tap("echo:OF-ADA")},
		"echo-tap-of-older-echo":      {with(tap("echo:OLDER1"), map[string]any{"messages[0].context.id": s.older})},
		"echo-tap-changed-token":      {tap("echo:BBCDEF"), tap("echo:ABC"), tap("echo:ABCDEF0")},
		"echo-tap-as-text":            {with(noTap, map[string]any{"messages[0].type": "text", "messages[0].text.body": "echo:ABCDEF"})},
		"echo-tap-as-template-button": {with(noTap, map[string]any{
			"messages[0].type": "button", "messages[0].button.payload": "echo:ABCDEF", "messages[0].button.text": "Confirm",
		})},
		"echo-tap-as-list-reply": {with(noTap, map[string]any{
			"messages[0].interactive.type": "list_reply", "messages[0].interactive.list_reply.id": "echo:ABCDEF",
			"messages[0].interactive.list_reply.title": "Confirm",
		})},
		"echo-tap-forwarded":        {{"messages[0].context.forwarded": true}},
		"echo-tap-in-group":         {{"messages[0].group_id": "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"}},
		"echo-tap-at-other-account": {{"metadata.phone_number_id": "12345678909"}},
		"echo-tap-unsigned":         {{}},
	}
	shapes, genuine := knownOfMeta(t), s.genuineTap("4")
	s.Expect(string(genuine)).To(And(ContainSubstring(noa), Not(ContainSubstring(noaNumber))))
	for name, jobs := range want {
		t.Run(name, func(t *testing.T) {
			g, after := NewWithT(t), s.runAttack(name)
			g.Expect(after).To(HaveLen(len(jobs)))
			for i, p := range after {
				g.Expect(findChanges(t, genuine, p.body)).To(Equal(jobs[i]))
				g.Expect(unknownIn(shapeOf(t, p.body), shapes)).To(BeEmpty())
				if name == "echo-tap-unsigned" {
					g.Expect(p.header).NotTo(HaveKey(metaSignature))
				} else {
					g.Expect(p.header.Get(metaSignature)).To(Equal(metaMAC([]byte(credential), p.body)))
				}
			}
		})
	}
	var names []string
	for _, a := range Attacks() {
		if strings.HasPrefix(a.Name, "echo-tap-") {
			names = append(names, a.Name)
			s.Expect(a.Needs).NotTo(BeEmpty(), a.Name)
			s.Expect(a.Expect).To(Equal(map[bool]int{true: http.StatusForbidden, false: http.StatusOK}[a.Name == "echo-tap-unsigned"]), a.Name)
		}
	}
	others := []string{"echo-tap-as-status", "echo-tap-replayed"}
	s.Expect(names).To(ConsistOf(slices.Concat(slices.Collect(maps.Keys(want)), others)), "each has a test")
}

func TestEchoAttacks_byStatus(t *testing.T) {
	s := startEchoScene(t)
	after, shapes := s.runAttack("echo-tap-as-status"), knownOfMeta(t)
	s.Expect(after).To(HaveLen(2))
	for _, p := range after {
		s.Expect(unknownIn(shapeOf(t, p.body), shapes)).To(BeEmpty())
	}
	values := s.c.postedValues()
	for i, id := range []string{s.newest, "echo:ABCDEF"} {
		v := values[len(values)-2+i]
		s.Expect(v.Messages).To(BeEmpty())
		s.Expect(v.Statuses).To(ConsistOf(And(HaveField("ID", id), HaveField("Opaque", "echo:ABCDEF"),
			HaveField("RecipientID", noaNumber), HaveField("RecipientUserID", s.userID("4")))))
	}
}

func TestEchoAttacks_replayWhatWasTapped(t *testing.T) {
	s := startEchoScene(t)
	attack := `{"link": "` + waLink + `", "phone": "+` + noaNumber + `"}`
	s.call(http.StatusConflict, http.MethodPost, "/sim/users/5/attack/echo-tap-replayed", attack)
	s.call(http.StatusAccepted, http.MethodPost, "/sim/users/4/tap", `{"title": "Confirm"}`)
	s.Eventually(func() any { return s.line("4")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
	var tapped []posted
	for _, p := range s.c.all() {
		if strings.Contains(string(p.body), "button_reply") {
			tapped = append(tapped, p)
		}
	}
	s.Expect(tapped).To(HaveLen(1))
	s.writeAs("4") // what came after the tap is not what is replayed
	s.Eventually(func() any { return s.line("4")["state"] }).WithTimeout(patience).Should(Equal("delivered"))
	for range 2 {
		after := s.runAttack("echo-tap-replayed")
		s.Expect(after).To(HaveLen(2))
		for _, p := range after {
			s.Expect(p.body).To(Equal(tapped[0].body), "byte for byte")
			s.Expect(p.header.Get(metaSignature)).To(Equal(tapped[0].header.Get(metaSignature)))
		}
	}
	s.call(http.StatusNoContent, http.MethodPost, "/sim/reset", "")
	s.call(http.StatusConflict, http.MethodPost, "/sim/users/5/attack/echo-tap-replayed", attack)
}

// TestEchoAttacks_knowWhoSentTheCode: a stranger who claims the number is the one whose user id the server waits for.
func TestEchoAttacks_knowWhoSentTheCode(t *testing.T) {
	w, c := registered(t)
	w.call(http.StatusCreated, http.MethodPost, "/sim/users",
		`{"name": "Eve", "phone": "+4915155500001", "username": "eve_", "hidesNumber": true}`)
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/send", `{"link": "`+waLink+`", "text": "When do you open?"}`)
	w.writeAs("6") // Eve sends the code, and claims the number of Ada
	w.sendMessage(http.StatusOK, newQuestion(adaNumber, "echo:ABCDEF", "notme:ABCDEF"))
	w.Eventually(c.all).WithTimeout(patience).Should(HaveLen(4))
	attack := `{"link": "` + waLink + `", "phone": "+` + adaNumber + `"}`
	for _, user := range []string{"1", "6"} {
		w.Expect(w.call(http.StatusConflict, http.MethodPost, "/sim/users/"+user+"/attack/echo-tap-by-another-user", attack)["error"]).
			To(HaveKeyWithValue("code", "not_another"))
	}
	w.call(http.StatusOK, http.MethodPost, "/sim/users/5/attack/echo-tap-with-other-number", attack)
	values := c.postedValues()
	w.Expect(values[len(values)-1].Messages[0]).To(And(HaveField("FromUserID", w.userID("6")), HaveField("From", malloryNumber)))

	for name, code := range map[string]string{"echo-tap-of-older-echo": "not_asked", "echo-tap-of-another-request": "not_asked"} {
		w.Expect(w.call(http.StatusConflict, http.MethodPost, "/sim/users/5/attack/"+name, attack)["error"]).To(HaveKeyWithValue("code", code))
	}
	w.call(http.StatusAccepted, http.MethodPost, "/sim/users/1/tap", `{"title": "Not me"}`)
	w.Eventually(c.text).WithTimeout(patience).Should(ContainSubstring(`"button_reply":{"id":"notme:ABCDEF","title":"Not me"}`))
}

func TestQuestion_withOneButtonIsNoEcho(t *testing.T) {
	w, c := registered(t)
	w.asked(c)
	attack := `{"link": "` + waLink + `", "phone": "+` + adaNumber + `"}`
	w.Expect(w.call(http.StatusConflict, http.MethodPost, "/sim/users/5/attack/echo-tap-as-text", attack)["error"]).
		To(HaveKeyWithValue("code", "not_asked"))
}

func TestOtherCharacter_isAnother(t *testing.T) {
	for c := range byte(128) {
		NewWithT(t).Expect(otherCharacter(c)).NotTo(Equal(c))
	}
}
