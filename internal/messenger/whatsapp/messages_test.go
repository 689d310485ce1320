package whatsapp

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// receive posts a message that was sent half a minute after the request for the user's number was made.
func receive(t *testing.T, claimed string, m any) (*fixture, verification.Request) {
	t.Helper()
	f := newFixture(t)
	made := f.request("first", claimed, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(m)).Code).To(Equal(http.StatusOK))
	return f, f.state(made.Request.ID)
}

// TestHook_texts: what keyboards, messengers and people do to the text.
func TestHook_texts(t *testing.T) {
	f := newFixture(t)
	second := verification.NewCodeSpace(project).CodeFor([32]byte{}, "second").Grouped()
	foreign := verification.NewCodeSpace("books/other").CodeFor([32]byte{}, "first").Grouped()
	f.Expect(second).NotTo(Equal(firstCode))
	dashes := func(dash string) string { return strings.ReplaceAll(firstCode, "-", dash) }
	for name, c := range map[string]struct {
		text string
		want messenger.Outcome
	}{
		"the link's":             {expectedText("Ada's Books", verification.NewCodeSpace(project).CodeFor([32]byte{}, "first")), messenger.OutcomeVerified},
		"bare":                   {firstCode, messenger.OutcomeVerified},
		"lower case":             {strings.ToLower(firstCode), messenger.OutcomeVerified},
		"auto-capitalised":       {"Vcgc-srf7-h9yn-hpm8", messenger.OutcomeVerified},
		"without hyphens":        {dashes(""), messenger.OutcomeVerified},
		"with spaces":            {dashes(" "), messenger.OutcomeVerified},
		"on lines":               {"Code:\n" + dashes("\n"), messenger.OutcomeVerified},
		"en dashes":              {dashes("–"), messenger.OutcomeVerified},
		"em dashes":              {dashes("—"), messenger.OutcomeVerified},
		"non-breaking hyphens":   {dashes("\u2011"), messenger.OutcomeVerified},
		"minus signs":            {dashes("−"), messenger.OutcomeVerified},
		"zero-width":             {"VC\u200bGC-SR\u200dF7-\ufeffH9YN-HP\u2060M8", messenger.OutcomeVerified},
		"bidi marks":             {"\u2067" + firstCode + "\u2069", messenger.OutcomeVerified},
		"soft hyphens":           {"VCGC\u00ad-SRF7-H9\u00adYN-HPM8", messenger.OutcomeVerified},
		"full width":             {"ＶＣＧＣ－ＳＲＦ７－Ｈ９ＹＮ－ＨＰＭ８", messenger.OutcomeVerified},
		"German sentence":        {"Ich bestätige hiermit meine Nummer für den Buchladen, Code " + firstCode + ", danke schön!", messenger.OutcomeVerified},
		"Arabic sentence":        {"أؤكد رقم هاتفي، الرمز: " + firstCode + " شكرا", messenger.OutcomeVerified},
		"Japanese sentence":      {"電話番号を確認します。コード：" + firstCode + "。", messenger.OutcomeVerified},
		"emoji around":           {"👍" + firstCode + "👍🏽", messenger.OutcomeVerified},
		"bold":                   {"*" + firstCode + "*", messenger.OutcomeVerified},
		"two codes":              {second + " and " + firstCode, messenger.OutcomeVerified},
		"two codes, other order": {firstCode + " and " + second, messenger.OutcomeUnknownCode},
		"another project's too":  {foreign + " " + firstCode, messenger.OutcomeVerified},
		"4,096 characters":       {strings.Repeat("x", 4096-len(firstCode)-1) + " " + firstCode, messenger.OutcomeVerified},
		"beyond 4,096":           {strings.Repeat("x", 4096) + " " + firstCode, messenger.OutcomeNoCode},
		"an unknown code":        {second, messenger.OutcomeUnknownCode},
		"another project's":      {foreign, messenger.OutcomeNoCode},
		"a typo":                 {"VCGC-SRF7-H9YN-HPM9", messenger.OutcomeNoCode},
		"cut off":                {firstCode[:18], messenger.OutcomeNoCode},
		"stuck to a word":        {"Code" + firstCode, messenger.OutcomeNoCode},
		"nothing":                {"", messenger.OutcomeNoCode},
		"lone surrogate":         {"\xed\xa0\x80" + firstCode, messenger.OutcomeVerified},
	} {
		t.Run(name, func(t *testing.T) {
			f, state := receive(t, user, textOf(c.text, nil))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == messenger.OutcomeVerified)
		})
	}
}

// TestHook_codesDoNotSpan has the halves of a code in the two texts of a button.
func TestHook_codesDoNotSpan(t *testing.T) {
	f, state := receive(t, user, messageOf("button", object{"payload": firstCode[:9], "text": firstCode[10:]}, nil))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeNoCode: 1}))
	f.Expect(state.Phase).To(Equal(verification.Pending))
}

// TestHook_senders: only from is the number, and only the claimed one verifies.
func TestHook_senders(t *testing.T) {
	for name, c := range map[string]struct {
		claimed string
		more    object
		want    messenger.Outcome
	}{
		"the claimed number":              {user, nil, messenger.OutcomeVerified},
		"from differs from contacts[0]":   {user, object{"from": user}, messenger.OutcomeVerified}, // webhookOf names another there
		"contacts[0] is the claimed one":  {"16500000000", nil, messenger.OutcomeWrongNumber},
		"another number":                  {user, object{"from": "16505550000"}, messenger.OutcomeWrongNumber},
		"longer by a digit":               {user, object{"from": user + "0"}, messenger.OutcomeWrongNumber},
		"Mexico, with 1":                  {"525512345678", object{"from": "5215512345678"}, messenger.OutcomeVerified},
		"Mexico, without 1":               {"5215512345678", object{"from": "525512345678"}, messenger.OutcomeVerified},
		"Argentina":                       {"541123456789", object{"from": "5491123456789"}, messenger.OutcomeVerified},
		"Brazil, without the ninth digit": {"5511987654321", object{"from": "551187654321"}, messenger.OutcomeVerified},
		"Brazil, another number":          {"5511987654321", object{"from": "551187654322"}, messenger.OutcomeWrongNumber},
		"no from":                         {user, object{"from": nil}, messenger.OutcomeNoSender},
		"null from":                       {user, object{"from": nil, "from_user_id": nil}, messenger.OutcomeNoSender},
		"empty from":                      {user, object{"from": ""}, messenger.OutcomeNoSender},
		"a number as a number":            {user, object{"from": 16505551234}, messenger.OutcomeMalformed},
		"with plus":                       {user, object{"from": "+" + user}, messenger.OutcomeNoSender},
		"with a space":                    {user, object{"from": user + " "}, messenger.OutcomeNoSender},
		"other digits":                    {user, object{"from": "١٦٥٠٥٥٥١٢٣٤"}, messenger.OutcomeNoSender},
		"sixteen digits":                  {user, object{"from": "1650555123412345"}, messenger.OutcomeNoSender},
		"leading zero":                    {user, object{"from": "016505551234"}, messenger.OutcomeNoSender},
		"anonymous +888":                  {user, object{"from": "88812345678"}, messenger.OutcomeNoSender},
		"user id only":                    {user, object{"from": nil, "from_user_id": hiddenUser}, messenger.OutcomeNumberHidden},
		"user id in from":                 {user, object{"from": hiddenUser}, messenger.OutcomeNumberHidden},
		"user id with ENT":                {user, object{"from": nil, "from_user_id": "US.ENT.11815799212886844830"}, messenger.OutcomeNumberHidden},
		"contradicting user ids":          {user, object{"from": hiddenUser, "from_user_id": "US.1"}, messenger.OutcomeNoSender},
		"user id that is none":            {user, object{"from": nil, "from_user_id": "us.1/../2"}, messenger.OutcomeNoSender},
		"number and user id":              {user, object{"from_user_id": hiddenUser}, messenger.OutcomeVerified},
		"the business itself":             {businessNumber, object{"from": businessNumber}, messenger.OutcomeEcho},
		"forwarded":                       {user, object{"context": object{"forwarded": true}}, messenger.OutcomeForwarded},
		"forwarded, oddly said":           {user, object{"context": object{"forwarded": "yes"}}, messenger.OutcomeForwarded},
		"frequently forwarded":            {user, object{"context": object{"frequently_forwarded": 1}}, messenger.OutcomeForwarded},
		"not forwarded":                   {user, object{"context": object{"forwarded": false, "frequently_forwarded": nil}}, messenger.OutcomeVerified},
		"context that is none":            {user, object{"context": "forwarded"}, messenger.OutcomeMalformed},
		"group":                           {user, object{"group_id": "1"}, messenger.OutcomeNotPrivate},
		"group, oddly said":               {user, object{"group_id": object{}}, messenger.OutcomeNotPrivate},
		"group, in the context":           {user, object{"context": object{"group_id": "1"}}, messenger.OutcomeNotPrivate},
		"no group":                        {user, object{"group_id": nil, "context": nil}, messenger.OutcomeVerified},
	} {
		t.Run(name, func(t *testing.T) {
			m := textOf(firstCode, c.more)
			f, state := receive(t, c.claimed, m)
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == messenger.OutcomeVerified)
			if c.want == messenger.OutcomeVerified {
				from, err := phone.ParseWhatsApp(m["from"].(string))
				f.Expect(err).NotTo(HaveOccurred())
				f.Expect(state.Actual).To(Equal(from), "as the messenger reported it")
			}
		})
	}
}

// TestHook_times dates messages in and out of the window, and not at all.
func TestHook_times(t *testing.T) {
	at := func(d time.Duration) string { return strconv.FormatInt(started.Add(d).Unix(), 10) }
	for name, c := range map[string]struct {
		timestamp any
		want      messenger.Outcome
	}{
		"string":              {at(30 * time.Second), messenger.OutcomeVerified},
		"number":              {started.Add(30 * time.Second).Unix(), messenger.OutcomeVerified},
		"in its first second": {at(0), messenger.OutcomeVerified},
		"a second before":     {at(-time.Second), messenger.OutcomeTooLate}, // as the fixture's requests have an Idempotency-Key
		"a week before":       {at(-7 * 24 * time.Hour), messenger.OutcomeTooLate},
		"at the end":          {at(10 * time.Minute), messenger.OutcomeVerified},
		"after the end":       {at(10*time.Minute + time.Second), messenger.OutcomeTooLate},
		"in a year":           {at(365 * 24 * time.Hour), messenger.OutcomeTooLate},
		"absent":              {nil, messenger.OutcomeNoTime},
		"empty":               {"", messenger.OutcomeNoTime},
		"zero":                {"0", messenger.OutcomeNoTime},
		"negative":            {"-1795168830", messenger.OutcomeNoTime},
		"a fraction":          {1795168830.5, messenger.OutcomeNoTime},
		"milliseconds":        {at(0) + "000", messenger.OutcomeNoTime},
		"RFC 3339":            {"2026-11-20T10:00:30Z", messenger.OutcomeNoTime},
		"a list":              {[]any{at(0)}, messenger.OutcomeNoTime},
		"hexadecimal":         {"0x6AFEEC3E", messenger.OutcomeNoTime},
		"more than fits":      {"99999999999999999999", messenger.OutcomeNoTime},
		"digits and a letter": {"17951688a0", messenger.OutcomeNoTime},
	} {
		t.Run(name, func(t *testing.T) {
			f, state := receive(t, user, textOf(firstCode, object{"timestamp": c.timestamp}))
			f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == messenger.OutcomeVerified)
		})
	}
}

// TestHook_late has a message that was sent in time and delivered too late.
func TestHook_late(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(made.Request.ExpiresAt)
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeTooLate: 1}))
	f.Expect(f.state(made.Request.ID).Phase).NotTo(Equal(verification.Verified))
	calls := f.sendReplies()
	f.Expect(calls).To(HaveLen(1))
	f.Expect(calls[0].text()).To(Equal(textExpired))
}

func TestHook_otherMessengersCode(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.Telegram)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeWrongMethod: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestHook_structures: what is missing, empty, or of another kind is acknowledged, and spoils nothing beside it.
func TestHook_structures(t *testing.T) {
	good := textOf(firstCode, nil)
	goodChange := changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}})
	for name, c := range map[string]struct {
		body any
		want map[messenger.Outcome]int
	}{
		"null":                      {nil, map[messenger.Outcome]int{messenger.OutcomeOtherObject: 1}},
		"a list":                    {[]any{}, map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"a string":                  {"x", map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"no object":                 {object{"entry": []any{}}, map[messenger.Outcome]int{messenger.OutcomeOtherObject: 1}},
		"a page's":                  {object{"object": "page", "entry": []any{object{"changes": []any{goodChange}}}}, map[messenger.Outcome]int{messenger.OutcomeOtherObject: 1}},
		"no entry":                  {object{"object": "whatsapp_business_account"}, map[messenger.Outcome]int{}},
		"empty entry":               {object{"object": "whatsapp_business_account", "entry": []any{}}, map[messenger.Outcome]int{}},
		"entry is an object":        {object{"object": "whatsapp_business_account", "entry": object{}}, map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"entry holds null":          {object{"object": "whatsapp_business_account", "entry": []any{nil, object{}}}, map[messenger.Outcome]int{}},
		"no changes":                {envelopeOf(), map[messenger.Outcome]int{}},
		"changes hold odd things":   {envelopeOf("x", 1, nil, goodChange), map[messenger.Outcome]int{messenger.OutcomeMalformed: 2, messenger.OutcomeOtherUpdate: 1, messenger.OutcomeVerified: 1}},
		"value is a list":           {envelopeOf(changeOf([]any{}), goodChange), map[messenger.Outcome]int{messenger.OutcomeMalformed: 1, messenger.OutcomeVerified: 1}},
		"no value":                  {envelopeOf(object{"field": "messages"}, goodChange), map[messenger.Outcome]int{messenger.OutcomeMalformed: 1, messenger.OutcomeVerified: 1}},
		"no metadata":               {envelopeOf(changeOf(object{"messages": []any{good}})), map[messenger.Outcome]int{messenger.OutcomeOtherNumber: 1}},
		"no messages":               {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}})), map[messenger.Outcome]int{}},
		"empty messages":            {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{}})), map[messenger.Outcome]int{}},
		"messages is an object":     {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": good})), map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"odd messages before":       {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{1, "x", []any{}, nil, object{}, good}})), map[messenger.Outcome]int{messenger.OutcomeMalformed: 3, messenger.OutcomeOtherType: 2, messenger.OutcomeVerified: 1}},
		"text is a string":          {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{messageOf("text", firstCode, nil)}})), map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"text is missing":           {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{textOf("", object{"text": nil})}})), map[messenger.Outcome]int{messenger.OutcomeMalformed: 1}},
		"another account's numbers": {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": "1"}, "messages": []any{good, good}}), goodChange), map[messenger.Outcome]int{messenger.OutcomeOtherNumber: 2, messenger.OutcomeVerified: 1}},
		"another field":             {envelopeOf(object{"field": "history", "value": object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}}}), map[messenger.Outcome]int{messenger.OutcomeOtherUpdate: 1}},
		"echoes as messages":        {envelopeOf(object{"field": "message_echoes", "value": object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}}}), map[messenger.Outcome]int{messenger.OutcomeEcho: 1}},
		"unknown fields everywhere": {object{"object": "whatsapp_business_account", "x": 1, "entry": []any{object{"y": 2, "changes": []any{goodChange, object{"field": "new"}}}}}, map[messenger.Outcome]int{messenger.OutcomeOtherUpdate: 1, messenger.OutcomeVerified: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.request("first", user, verification.WhatsApp)
			f.clock.SetTime(started.Add(time.Minute))
			f.Expect(f.post(encode(c.body)).Code).To(Equal(http.StatusOK))
			f.Expect(f.outcomes()).To(Equal(c.want))
		})
	}
	for _, body := range []string{"", "{", "{}{}", "\ufeff{}", "\x00", strings.Repeat("[", 100_000)} {
		f := newFixture(t)
		f.Expect(f.post([]byte(body)).Code).To(Equal(http.StatusOK), "signed, so Meta would only send it again")
	}
}

// TestHook_echoOfDisplayedNumber has the business write from the number that Meta shows for it, though the project's
// phoneNumber is another.
func TestHook_echoOfDisplayedNumber(t *testing.T) {
	f := newOfflineFixture(t)
	f.settings.WhatsApp.PhoneNumber = "+15550000001"
	made := f.request("first", businessNumber, verification.WhatsApp)
	f.clock.SetTime(started.Add(time.Minute))
	f.Expect(f.post(webhookOf(textOf(firstCode, object{"from": businessNumber}))).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[messenger.Outcome]int{messenger.OutcomeEcho: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}
