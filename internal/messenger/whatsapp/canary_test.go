package whatsapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// TestHook_leaksNothing makes everything happen that is logged, counted or answered, and looks for what may not be seen
// of it: numbers, ids, names, texts, codes, tokens.
func TestHook_leaksNothing(t *testing.T) {
	var all strings.Builder
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
		f := newFixture(t)
		f.acceptContacts()
		f.request("first", user, verification.WhatsApp)
		f.clock.SetTime(started.Add(time.Minute))
		f.graph.answers(status, []byte(`{"error":{"message":"canary `+user+`","code":100}}`))
		post := func(body []byte, secret string) {
			w := f.postTo(f.hook, body, sign(body, secret))
			fmt.Fprintln(&all, w.Code, w.Header(), w.Body.String())
		}
		post(golden(t, "in/text_user_id_only"), appSecret)
		files, err := filepath.Glob("testdata/in/*.json")
		f.Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			body, err := os.ReadFile(file)
			f.Expect(err).NotTo(HaveOccurred())
			post(body, appSecret)
			post(body, "canaryother")
		}
		post(webhookOf(contactOf(nil, nil), hidden(firstCode, "US.1"), textOf("canarytext "+firstCode, object{"type": "canarytype"})), appSecret)
		f.sendReplies()
		f.backend.Fail(errors.New("down"))
		post(golden(t, "in/text"), appSecret)

		families, err := f.registry.Gather()
		f.Expect(err).NotTo(HaveOccurred())
		for _, family := range families {
			all.WriteString(family.String())
		}
		all.Write(f.logs.Contents())
	}
	g := NewWithT(t)
	for _, seen := range []string{"reply not sent", "delivered again", "need_contact", "replies_total"} {
		g.Expect(strings.Contains(all.String(), seen)).To(BeTrue(), seen)
	}
	leak := regexp.MustCompile(`(?i)canary|` + user + `|` + hiddenUser + `|US\.1|wamid|Sheena|J.rgen|VCGC|HPM8|15550783881|EAAB|a1b2c3|127\.0\.0\.1|` + numberID)
	g.Expect(leak.FindAllString(all.String(), -1)).To(BeEmpty())
}

// TestRecipient_printsNothing prints a recipient, and what holds one, in every way.
func TestRecipient_printsNothing(t *testing.T) {
	g := NewWithT(t)
	n, err := phone.ParseWhatsApp(user)
	g.Expect(err).NotTo(HaveOccurred())
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, nil))
	for _, to := range []Recipient{ToNumber(n), ToUserID(hiddenUser), {}} {
		r := struct{ to Recipient }{to}
		log.Info("x", "to", to, "reply", r)
		encoded, err := json.Marshal(to)
		g.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&out, "%v %+v %#v %s %d %x %v %+v %#v %s", to, to, to, to, to, to, r, r, r, encoded)
	}
	g.Expect(out.String()).NotTo(MatchRegexp(user + `|6505551234|` + hiddenUser + `|13491208655302741918`))
}
