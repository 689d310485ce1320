package whatsapp

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

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
		want outcome
	}{
		"the link's":             {ExpectedText("Ada's Books", verification.NewCodeSpace(project).CodeFor([32]byte{}, "first")), outcomeVerified},
		"bare":                   {firstCode, outcomeVerified},
		"lower case":             {strings.ToLower(firstCode), outcomeVerified},
		"auto-capitalised":       {"Vcgc-srf7-h9yn-hpm8", outcomeVerified},
		"without hyphens":        {dashes(""), outcomeVerified},
		"with spaces":            {dashes(" "), outcomeVerified},
		"on lines":               {"Code:\n" + dashes("\n"), outcomeVerified},
		"en dashes":              {dashes("–"), outcomeVerified},
		"em dashes":              {dashes("—"), outcomeVerified},
		"non-breaking hyphens":   {dashes("\u2011"), outcomeVerified},
		"minus signs":            {dashes("−"), outcomeVerified},
		"zero-width":             {"VC\u200bGC-SR\u200dF7-\ufeffH9YN-HP\u2060M8", outcomeVerified},
		"bidi marks":             {"\u2067" + firstCode + "\u2069", outcomeVerified},
		"soft hyphens":           {"VCGC\u00ad-SRF7-H9\u00adYN-HPM8", outcomeVerified},
		"full width":             {"ＶＣＧＣ－ＳＲＦ７－Ｈ９ＹＮ－ＨＰＭ８", outcomeVerified},
		"German sentence":        {"Ich bestätige hiermit meine Nummer für den Buchladen, Code " + firstCode + ", danke schön!", outcomeVerified},
		"Arabic sentence":        {"أؤكد رقم هاتفي، الرمز: " + firstCode + " شكرا", outcomeVerified},
		"Japanese sentence":      {"電話番号を確認します。コード：" + firstCode + "。", outcomeVerified},
		"emoji around":           {"👍" + firstCode + "👍🏽", outcomeVerified},
		"bold":                   {"*" + firstCode + "*", outcomeVerified},
		"two codes":              {second + " and " + firstCode, outcomeVerified},
		"two codes, other order": {firstCode + " and " + second, outcomeUnknownCode},
		"another project's too":  {foreign + " " + firstCode, outcomeVerified},
		"4,096 characters":       {strings.Repeat("x", 4096-len(firstCode)-1) + " " + firstCode, outcomeVerified},
		"beyond 4,096":           {strings.Repeat("x", 4096) + " " + firstCode, outcomeNoCode},
		"an unknown code":        {second, outcomeUnknownCode},
		"another project's":      {foreign, outcomeNoCode},
		"a typo":                 {"VCGC-SRF7-H9YN-HPM9", outcomeNoCode},
		"cut off":                {firstCode[:18], outcomeNoCode},
		"stuck to a word":        {"Code" + firstCode, outcomeNoCode},
		"nothing":                {"", outcomeNoCode},
		"lone surrogate":         {"\xed\xa0\x80" + firstCode, outcomeVerified},
	} {
		t.Run(name, func(t *testing.T) {
			f, state := receive(t, user, textOf(c.text, nil))
			f.Expect(f.outcomes()).To(Equal(map[outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == outcomeVerified)
		})
	}
}

// TestHook_codesDoNotSpan has the halves of a code in the two texts of a button.
func TestHook_codesDoNotSpan(t *testing.T) {
	f, state := receive(t, user, messageOf("button", object{"payload": firstCode[:9], "text": firstCode[10:]}, nil))
	f.Expect(f.outcomes()).To(Equal(map[outcome]int{outcomeNoCode: 1}))
	f.Expect(state.Phase).To(Equal(verification.Pending))
}

// TestHook_senders: only from is the number, and only the claimed one verifies.
func TestHook_senders(t *testing.T) {
	for name, c := range map[string]struct {
		claimed string
		more    object
		want    outcome
	}{
		"the claimed number":              {user, nil, outcomeVerified},
		"from differs from contacts[0]":   {user, object{"from": user}, outcomeVerified}, // webhookOf names another there
		"contacts[0] is the claimed one":  {"16500000000", nil, outcomeWrongNumber},
		"another number":                  {user, object{"from": "16505550000"}, outcomeWrongNumber},
		"longer by a digit":               {user, object{"from": user + "0"}, outcomeWrongNumber},
		"Mexico, with 1":                  {"525512345678", object{"from": "5215512345678"}, outcomeVerified},
		"Mexico, without 1":               {"5215512345678", object{"from": "525512345678"}, outcomeVerified},
		"Argentina":                       {"541123456789", object{"from": "5491123456789"}, outcomeVerified},
		"Brazil, without the ninth digit": {"5511987654321", object{"from": "551187654321"}, outcomeVerified},
		"Brazil, another number":          {"5511987654321", object{"from": "551187654322"}, outcomeWrongNumber},
		"no from":                         {user, object{"from": nil}, outcomeNoSender},
		"null from":                       {user, object{"from": nil, "from_user_id": nil}, outcomeNoSender},
		"empty from":                      {user, object{"from": ""}, outcomeNoSender},
		"a number as a number":            {user, object{"from": 16505551234}, outcomeMalformed},
		"with plus":                       {user, object{"from": "+" + user}, outcomeNoSender},
		"with a space":                    {user, object{"from": user + " "}, outcomeNoSender},
		"other digits":                    {user, object{"from": "١٦٥٠٥٥٥١٢٣٤"}, outcomeNoSender},
		"sixteen digits":                  {user, object{"from": "1650555123412345"}, outcomeNoSender},
		"leading zero":                    {user, object{"from": "016505551234"}, outcomeNoSender},
		"anonymous +888":                  {user, object{"from": "88812345678"}, outcomeNoSender},
		"user id only":                    {user, object{"from": nil, "from_user_id": hiddenUser}, outcomeNumberHidden},
		"user id in from":                 {user, object{"from": hiddenUser}, outcomeNumberHidden},
		"user id with ENT":                {user, object{"from": nil, "from_user_id": "US.ENT.11815799212886844830"}, outcomeNumberHidden},
		"contradicting user ids":          {user, object{"from": hiddenUser, "from_user_id": "US.1"}, outcomeNoSender},
		"user id that is none":            {user, object{"from": nil, "from_user_id": "us.1/../2"}, outcomeNoSender},
		"number and user id":              {user, object{"from_user_id": hiddenUser}, outcomeVerified},
		"the business itself":             {businessNumber, object{"from": businessNumber}, outcomeEcho},
		"forwarded":                       {user, object{"context": object{"forwarded": true}}, outcomeForwarded},
		"forwarded, oddly said":           {user, object{"context": object{"forwarded": "yes"}}, outcomeForwarded},
		"frequently forwarded":            {user, object{"context": object{"frequently_forwarded": 1}}, outcomeForwarded},
		"not forwarded":                   {user, object{"context": object{"forwarded": false, "frequently_forwarded": nil}}, outcomeVerified},
		"context that is none":            {user, object{"context": "forwarded"}, outcomeMalformed},
		"group":                           {user, object{"group_id": "1"}, outcomeGroup},
		"group, oddly said":               {user, object{"group_id": object{}}, outcomeGroup},
		"group, in the context":           {user, object{"context": object{"group_id": "1"}}, outcomeGroup},
		"no group":                        {user, object{"group_id": nil, "context": nil}, outcomeVerified},
	} {
		t.Run(name, func(t *testing.T) {
			m := textOf(firstCode, c.more)
			f, state := receive(t, c.claimed, m)
			f.Expect(f.outcomes()).To(Equal(map[outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == outcomeVerified)
			if c.want == outcomeVerified {
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
		want      outcome
	}{
		"string":              {at(30 * time.Second), outcomeVerified},
		"number":              {started.Add(30 * time.Second).Unix(), outcomeVerified},
		"in its first second": {at(0), outcomeVerified},
		"a second before":     {at(-time.Second), outcomeTooLate}, // as the fixture's requests have an Idempotency-Key
		"a week before":       {at(-7 * 24 * time.Hour), outcomeTooLate},
		"at the end":          {at(10 * time.Minute), outcomeVerified},
		"after the end":       {at(10*time.Minute + time.Second), outcomeTooLate},
		"in a year":           {at(365 * 24 * time.Hour), outcomeTooLate},
		"absent":              {nil, outcomeNoTime},
		"empty":               {"", outcomeNoTime},
		"zero":                {"0", outcomeNoTime},
		"negative":            {"-1795168830", outcomeNoTime},
		"a fraction":          {1795168830.5, outcomeNoTime},
		"milliseconds":        {at(0) + "000", outcomeNoTime},
		"RFC 3339":            {"2026-11-20T10:00:30Z", outcomeNoTime},
		"a list":              {[]any{at(0)}, outcomeNoTime},
		"hexadecimal":         {"0x6AFEEC3E", outcomeNoTime},
		"more than fits":      {"99999999999999999999", outcomeNoTime},
		"digits and a letter": {"17951688a0", outcomeNoTime},
	} {
		t.Run(name, func(t *testing.T) {
			f, state := receive(t, user, textOf(firstCode, object{"timestamp": c.timestamp}))
			f.Expect(f.outcomes()).To(Equal(map[outcome]int{c.want: 1}))
			f.expectVerified(state, c.want == outcomeVerified)
		})
	}
}

// TestHook_late has a message that was sent in time and delivered too late.
func TestHook_late(t *testing.T) {
	f := newFixture(t)
	made := f.request("first", user, verification.WhatsApp)
	f.clock.SetTime(made.Request.ExpiresAt)
	f.Expect(f.post(golden(t, "in/text")).Code).To(Equal(http.StatusOK))
	f.Expect(f.outcomes()).To(Equal(map[outcome]int{outcomeTooLate: 1}))
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
	f.Expect(f.outcomes()).To(Equal(map[outcome]int{outcomeWrongMethod: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}

// TestHook_structures: what is missing, empty, or of another kind is acknowledged, and spoils nothing beside it.
func TestHook_structures(t *testing.T) {
	good := textOf(firstCode, nil)
	goodChange := changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}})
	for name, c := range map[string]struct {
		body any
		want map[outcome]int
	}{
		"null":                      {nil, map[outcome]int{outcomeOtherObject: 1}},
		"a list":                    {[]any{}, map[outcome]int{outcomeMalformed: 1}},
		"a string":                  {"x", map[outcome]int{outcomeMalformed: 1}},
		"no object":                 {object{"entry": []any{}}, map[outcome]int{outcomeOtherObject: 1}},
		"a page's":                  {object{"object": "page", "entry": []any{object{"changes": []any{goodChange}}}}, map[outcome]int{outcomeOtherObject: 1}},
		"no entry":                  {object{"object": "whatsapp_business_account"}, map[outcome]int{}},
		"empty entry":               {object{"object": "whatsapp_business_account", "entry": []any{}}, map[outcome]int{}},
		"entry is an object":        {object{"object": "whatsapp_business_account", "entry": object{}}, map[outcome]int{outcomeMalformed: 1}},
		"entry holds null":          {object{"object": "whatsapp_business_account", "entry": []any{nil, object{}}}, map[outcome]int{}},
		"no changes":                {envelopeOf(), map[outcome]int{}},
		"changes hold odd things":   {envelopeOf("x", 1, nil, goodChange), map[outcome]int{outcomeMalformed: 2, outcomeOtherField: 1, outcomeVerified: 1}},
		"value is a list":           {envelopeOf(changeOf([]any{}), goodChange), map[outcome]int{outcomeMalformed: 1, outcomeVerified: 1}},
		"no value":                  {envelopeOf(object{"field": "messages"}, goodChange), map[outcome]int{outcomeMalformed: 1, outcomeVerified: 1}},
		"no metadata":               {envelopeOf(changeOf(object{"messages": []any{good}})), map[outcome]int{outcomeOtherNumber: 1}},
		"no messages":               {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}})), map[outcome]int{}},
		"empty messages":            {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{}})), map[outcome]int{}},
		"messages is an object":     {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": good})), map[outcome]int{outcomeMalformed: 1}},
		"odd messages before":       {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{1, "x", []any{}, nil, object{}, good}})), map[outcome]int{outcomeMalformed: 3, outcomeOtherType: 2, outcomeVerified: 1}},
		"text is a string":          {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{messageOf("text", firstCode, nil)}})), map[outcome]int{outcomeMalformed: 1}},
		"text is missing":           {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": numberID}, "messages": []any{textOf("", object{"text": nil})}})), map[outcome]int{outcomeMalformed: 1}},
		"another account's numbers": {envelopeOf(changeOf(object{"metadata": object{"phone_number_id": "1"}, "messages": []any{good, good}}), goodChange), map[outcome]int{outcomeOtherNumber: 2, outcomeVerified: 1}},
		"another field":             {envelopeOf(object{"field": "history", "value": object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}}}), map[outcome]int{outcomeOtherField: 1}},
		"echoes as messages":        {envelopeOf(object{"field": "message_echoes", "value": object{"metadata": object{"phone_number_id": numberID}, "messages": []any{good}}}), map[outcome]int{outcomeEcho: 1}},
		"unknown fields everywhere": {object{"object": "whatsapp_business_account", "x": 1, "entry": []any{object{"y": 2, "changes": []any{goodChange, object{"field": "new"}}}}}, map[outcome]int{outcomeOtherField: 1, outcomeVerified: 1}},
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
	f.Expect(f.outcomes()).To(Equal(map[outcome]int{outcomeEcho: 1}))
	f.Expect(f.state(made.Request.ID).Phase).To(Equal(verification.Pending))
}
