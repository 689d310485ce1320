package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestInit_badTerms(t *testing.T) {
	ok := func(field, name, value string) badRequest {
		return badRequest{field + ": " + name, bodyWith(field, value), 200, "", ""}
	}
	refused := func(field, name, value string, code verification.ErrorCode) badRequest {
		return badRequest{field + ": " + name, bodyWith(field, value), 400, code, field}
	}
	var rows []badRequest
	for field, c := range map[string]struct {
		code      verification.ErrorCode
		good, bad []string
	}{
		"assurance": {
			verification.CodeInvalidAssurance, []string{"SESSION", "POSSESSION"},
			[]string{"Session", "session", "SESSION ", " SESSION", "SESSION\u0000", "", "null", "ECHO", "POSSESSION,SESSION", "\uff33ESSION"},
		},
		"purpose": {
			verification.CodeInvalidPurpose, []string{"sign-in", "a", strings.Repeat("p", 32)},
			[]string{"Sign-in", "sign-in ", "", "sign", "sign-in-", "sign\u2010in", "sign-in\u0000", "*", "sign-in\nfrom us", strings.Repeat("p", 33)},
		},
		"browser": {
			verification.CodeInvalidBrowser, verification.Browsers(),
			[]string{
				"chrome/windows", "CHROME", "CHROME/", "/WINDOWS", "/", "", "CHROME/WINDOWS/", "CHROME /WINDOWS", "CHROME//WINDOWS", "WINDOWS/CHROME",
				"CHROME/WINDOWS 11", "Chrome, Windows", "CHROME\\WINDOWS", "<b>CHROME/WINDOWS", "CHROME/WINDOWS\nI am your bank",
			},
		},
	} {
		for _, value := range c.good {
			rows = append(rows, ok(field, value, `"`+value+`"`))
		}
		for _, value := range c.bad {
			quoted, err := json.Marshal(value)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			rows = append(rows, refused(field, string(quoted), string(quoted), c.code))
		}
		rows = append(
			rows, ok(field, "null", `null`), ok("X"+field, "another field", `1`), ok(strings.ToUpper(field), "in another case", `[1]`),
			ok(field, "by escapes", `"\u00`+strconv.FormatUint(uint64(c.good[0][0]), 16)+c.good[0][1:]+`"`),
			refused(field, "number", `1`, codeInvalidType), refused(field, "boolean", `true`, codeInvalidType),
			refused(field, "array", `["`+c.good[0]+`"]`, codeInvalidType), refused(field, "object", `{"value":"`+c.good[0]+`"}`, codeInvalidType),
			refused(field, "half a pair", `"\ud83d"`, codeInvalidJSON), refused(field, "twice", fmt.Sprintf(`%q,%q:%q`, c.good[0], field, c.good[0]), codeInvalidJSON),
			refused(field, "twice, null first", fmt.Sprintf(`null,"%s":%q`, field, c.good[0]), codeInvalidJSON),
			refused(field, "twice by escape", fmt.Sprintf(`%q,"\u00%x%s":null`, c.good[0], field[0], field[1:]), codeInvalidJSON),
			badRequest{field + ": cut", bodyWith(field, `"`+c.good[0]), 400, codeInvalidJSON, ""},
		)
	}
	expectEach(t, rows)
}

func TestInit_namesThePurposes(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	for names, want := range map[string]string{
		"":                        "This project has no spec.purposes. Leave purpose out.",
		"sign-in":                 "purpose must be one of spec.purposes of the project: sign-in.",
		"j i h g f e d c b a":     "purpose must be one of spec.purposes of the project: a, b, c, d, e, f, g, h, i, j.",
		"l k j i h g f e d c b a": "purpose must be one of spec.purposes of the project: a, b, c, d, e, f, g, h, i, j and 2 more.",
	} {
		h.changeSettings(func(s *settings.Settings) {
			s.Purposes = map[string]settings.Purpose{}
			for name := range strings.FieldsSeq(names) {
				s.Purposes[name] = settings.Purpose{}
			}
		})
		a := h.do(bodyWith("purpose", `"sell"`))
		expectRefusal(g, a, 400, verification.CodeInvalidPurpose, "purpose")
		g.Expect(a.errorField("message")).To(Equal(want))
	}
}

// The contract lists the browsers by a pattern.
func TestContract_listsTheBrowsers(t *testing.T) {
	g := NewWithT(t)
	browser := contract().Components.Schemas["InitRequest"].Value.Properties["browser"].Value
	groups := regexp.MustCompile(`^\^\(([A-Z|]+)\)/\(([A-Z|]+)\)\$$`).FindStringSubmatch(browser.Pattern)
	g.Expect(groups).To(HaveLen(3))
	var listed []string
	for name := range strings.SplitSeq(groups[1], "|") {
		for system := range strings.SplitSeq(groups[2], "|") {
			listed = append(listed, name+"/"+system)
		}
	}
	slices.Sort(listed)
	g.Expect(listed).To(Equal(verification.Browsers()))
}

// A client may raise the project's level and not lower it. Purpose and browser are stored at both.
func TestInit_storesTheTerms(t *testing.T) {
	const session, possession = verification.LevelSession, verification.LevelPossession
	for _, row := range []struct {
		project verification.Level
		send    settings.SendPolicy
		asked   string
		want    verification.Level
		message string // of the refusal
	}{
		{possession, settings.SendAlways, ``, possession, ""},
		{possession, settings.SendAlways, `,"assurance":null`, possession, ""},
		{possession, settings.SendAlways, `,"assurance":"POSSESSION"`, possession, ""},
		{possession, settings.SendAlways, `,"assurance":"SESSION"`, session, ""},
		{possession, settings.SendOnTrouble, `,"assurance":"SESSION"`, session, ""},
		{possession, settings.SendNever, `,"assurance":"SESSION"`, "", "sends no replies"},
		{possession, settings.SendNever, `,"assurance":"POSSESSION"`, possession, ""},
		{possession, settings.SendNever, ``, possession, ""},
		{session, settings.SendAlways, ``, session, ""},
		{session, settings.SendAlways, `,"assurance":null`, session, ""},
		{session, settings.SendOnTrouble, `,"assurance":"SESSION"`, session, ""},
		{session, settings.SendAlways, `,"assurance":"POSSESSION"`, "", "cannot lower"},
		{session, settings.SendAlways, `,"assurance":"possession"`, "", "in capitals"},
	} {
		t.Run(fmt.Sprintf("%q at %q, replies %d", row.asked, row.project, row.send), func(t *testing.T) {
			g := NewWithT(t)
			h := newHarness(t)
			h.changeSettings(func(s *settings.Settings) { s.Level, s.Replies.Send = row.project, row.send })
			r := initRequest(keyAll, fmt.Sprintf(`{"phoneNumber":%q,"purpose":"sign-in","browser":"APP/IOS"%s}`, h.newNumber(1), row.asked))
			if row.message != "" {
				a := h.do(r.markInvalid())
				expectRefusal(g, a, 400, verification.CodeInvalidAssurance, "assurance")
				g.Expect(a.errorField("message")).To(ContainSubstring(row.message))
				g.Expect(h.store.calls.Load()).To(BeZero())
				return
			}
			a := h.do(r)
			g.Expect(a.fields).To(HaveLen(5), "init answers what it always did")
			stored, err := h.store.Read(t.Context(), a.stringField("requestId"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(stored.Terms).To(Equal(verification.Terms{Level: row.want, Purpose: "sign-in", Browser: "APP/IOS"}))
		})
	}
}

// A retry is recognized by what the client sent, and not by what the project made of it.
func TestInit_idempotencyKeyWithTerms(t *testing.T) {
	g := NewWithT(t)
	h := newHarness(t)
	try := func(key, rest string) answer {
		return h.do(initRequest(keyAll, fmt.Sprintf(`{"phoneNumber":%q%s}`, h.newNumber(1), rest)).withHeader("Idempotency-Key", "of"+key))
	}
	bodies := []string{
		``, `,"assurance":"SESSION"`, `,"purpose":"sign-in"`, `,"purpose":"a"`, `,"browser":"EDGE/LINUX"`, `,"browser":"EDGE/WINDOWS"`,
		`,"assurance":"SESSION","purpose":"a"`, `,"assurance":"SESSION","purpose":"a","browser":"EDGE/LINUX"`, `,"reference":"a","purpose":"a"`,
	}
	first := map[string]answer{}
	for _, body := range bodies {
		first[body] = try(body, body)
		g.Expect(first[body].status).To(Equal(http.StatusOK))
	}
	for _, key := range bodies {
		for _, body := range bodies {
			a := try(key, body)
			if key == body {
				g.Expect(a.stringField("requestId")).To(Equal(first[key].stringField("requestId")))
				continue
			}
			expectRefusal(g, a, 422, verification.CodeIdempotencyKeyReused, "Idempotency-Key")
		}
	}
	g.Expect(try(``, `,"assurance":"POSSESSION","purpose":null,"browser":null`).stringField("requestId")).
		To(Equal(first[``].stringField("requestId")), "which is what none means")
	h.changeSettings(func(s *settings.Settings) { s.Level = verification.LevelSession })
	for _, body := range bodies {
		g.Expect(try(body, body).stringField("requestId")).To(Equal(first[body].stringField("requestId")), "the project asks for more now")
	}
	stored, err := h.store.Read(t.Context(), first[``].stringField("requestId"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(stored.Terms.Level).To(Equal(verification.LevelPossession), "and the request stays as it began")
}

// A number that cools down after "Not me" is refused by a limit of its own, which is no rate.
func TestInit_declinedNumber(t *testing.T) {
	g := NewWithT(t)
	w := newSessionWorld(t)
	w.changeSettings(func(s *settings.Settings) { s.Limits.DeclineCooldown = time.Hour })
	begun := w.beginSession("order-1")
	w.proveNumber(begun)
	w.declineRequest(begun.id)
	for range 2 {
		for _, body := range []string{`{"phoneNumber":%q}`, `{"phoneNumber":%q,"method":"TELEGRAM","assurance":"SESSION"}`} {
			a := w.do(initRequest(keyAll, fmt.Sprintf(body, w.number)))
			expectRefusal(g, a, 429, verification.CodeRateLimited, "phoneNumber")
			g.Expect(a.joinedHeader("Retry-After")).To(Equal("3600"))
			g.Expect(a.joinedHeader("RateLimit")).To(Equal(`"declined";r=0;t=3600`))
			g.Expect(a.header).NotTo(HaveKey("Ratelimit-Policy"), "the project has no rates")
		}
		w.changeSettings(func(s *settings.Settings) { s.Webhook = nil })
	}
	g.Expect(w.gatherMetrics()).To(ContainSubstring(`phoneproof_http_rate_limited_total{limit="declined"} 4` + "\n"))
	g.Expect(w.beginSession("order-1").id).To(Equal(begun.id), "a retry is answered")
	g.Expect(w.do(initFor(keyAll, w.newNumber(2))).status).To(Equal(200), "another number")
	w.changeSettings(func(s *settings.Settings) { s.Limits.PerKey = verification.Rate{Requests: 10, Period: time.Hour} })
	g.Expect(w.do(initFor(keyAll, w.number)).joinedHeader("RateLimit-Policy")).To(Equal(`"key";q=10;w=3600`))
	w.clock.Step(time.Hour)
	g.Expect(w.do(initFor(keyAll, w.number)).status).To(Equal(200))
}

// FuzzDecodeConfirm checks that encoding/json accepts all that decodeConfirm accepts, and that both read the same values.
func FuzzDecodeConfirm(f *testing.F) {
	for _, seed := range []string{
		`{"requestId":"vr","code":"123456"}`, `{"requestId":"a","code":"b","code":"c"}`, `{"requestId":null}`, `{"RequestID":"a","code":"\ud83d\ude00"}`, `{"code":"\ud800"}`,
		`{"code":"1","c\u006fde":"2"}`, `[]`, `null`, ``, `{"code":1}`, `{"requestId":{"requestId":"a"}}`, "\xef\xbb\xbf{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeConfirm(data)
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted %q, which encoding/json refuses: %v", data, err)
		}
		for name, field := range map[string]textField{"requestId": got.ID, "code": got.Code} {
			if value, has := want[name]; has != field.given || has && value != field.value {
				t.Fatalf("%q: read %s as %q, encoding/json as %v", data, name, field.value, value)
			}
		}
	})
}
