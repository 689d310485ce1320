//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	ada     = "+4915112345678"
	luis    = "+525512345678"
	mallory = "+4915198765432"

	patience = 30 * time.Second // of one wait; a busy machine takes its time
)

// player plays the backend of a client and the users. After its first failure it does nothing more.
type player struct {
	ctx            context.Context //nolint:containedctx // the run's, which ends with the server or a signal
	out            io.Writer
	pasted         *bufio.Scanner // the answers to calls that are not made here; nil to make them
	secrets        map[string]string
	api, simulator string
	receiver       *receiver

	step  int
	title string
	err   error
}

// answer is what the demo reads of an answer.
type answer struct {
	RequestID string `json:"requestId"`
	WALink    string `json:"waLink"`
	TGLink    string `json:"tgLink"`
	Status    string `json:"status"`
	Hint      string `json:"hint"`
	Assurance string `json:"assurance"`
	Via       string `json:"via"`
	Error     struct {
		Code string `json:"code"`
	} `json:"error"`
	Chats []struct {
		Messages []struct {
			From string `json:"from"`
			Text string `json:"text"`
		} `json:"messages"`
	} `json:"chats"`
}

func (p *player) playAll() error {
	for _, s := range []struct {
		title string
		play  func()
	}{
		{"A number is verified on WhatsApp", p.playWhatsApp},
		{"A number is verified on Telegram", p.playTelegram},
		{"Another person's phone sends the text: nothing is verified", p.playOtherPhone},
		{"A code is sent to a number: for a desktop, a counter or a call centre", p.playCode},
		{"A link is passed on to the owner of the number, at the level Session", p.playRelay},
	} {
		if p.err != nil {
			break
		}
		p.printStep(s.title)
		s.play()
	}
	if cause := context.Cause(p.ctx); p.err != nil && cause != nil {
		return fmt.Errorf("%d. %s: %w", p.step, p.title, cause)
	}
	return p.err
}

func (p *player) playWhatsApp() {
	p.sayf("The backend of the bookshop asks for a link for Ada's number, %s:", ada)
	begun := p.beginVerification(`{"phoneNumber": "` + ada + `", "method": "WHATSAPP", "subject": "user-1"}`)
	p.sayf("Ada taps it. WhatsApp opens with the text, and Ada sends it:")
	p.playUser(ada, "send", `{"link": "`+begun.WALink+`"}`)
	p.sayf("The backend asks what came of it, and waits:")
	p.expectValue("status", p.readStatus(begun, "&wait=20s").Status, "VERIFIED")
	p.awaitEvent(begun, "verification.success")
}

func (p *player) playTelegram() {
	p.sayf("The same on Telegram, where the link opens the bot of the bookshop:")
	begun := p.beginVerification(`{"phoneNumber": "` + ada + `", "method": "TELEGRAM", "subject": "user-1"}`)
	p.playUser(ada, "send", `{"link": "`+begun.TGLink+`"}`)
	p.awaitEvent(begun, "verification.attention")
	p.sayf("Telegram shows no bot a number, so the bot asks for the contact. Ada presses its button:")
	p.playUser(ada, "share-contact", `{"wait": "20s"}`)
	p.expectValue("status", p.readStatus(begun, "&wait=20s").Status, "VERIFIED")
	p.awaitEvent(begun, "verification.success")
}

func (p *player) playOtherPhone() {
	p.sayf("The text for Ada's number is sent from Mallory's phone, %s:", mallory)
	begun := p.beginVerification(`{"phoneNumber": "` + ada + `", "method": "WHATSAPP", "subject": "user-2"}`)
	p.playUser(mallory, "send", `{"link": "`+begun.WALink+`"}`)
	p.awaitEvent(begun, "verification.attention")
	p.expectPending(begun, "OTHER_NUMBER")
}

func (p *player) playCode() {
	p.sayf("A key with the scope Deliver asks for it. Meta charges for each, so projects say to which countries, and how many a day:")
	begun := p.beginVerification(`{"phoneNumber": "` + ada + `", "deliver": "CODE", "subject": "user-1"}`)
	p.sayf("WhatsApp shows Ada a message with a template of the bookshop. Ada reads the code to the bookshop's backend:")
	confirmed := p.confirmRequest(begun, p.readCode(ada, deliveredLine), "")
	p.expectValue("status", confirmed.Status, "VERIFIED")
	p.expectValue("via", confirmed.Via, "CODE")
	p.awaitEvent(begun, "verification.success")
}

func (p *player) playRelay() {
	const request = `{"phoneNumber": "` + luis + `", "assurance": "SESSION", "purpose": "sign-in", "subject": "user-2", ` +
		`"browser": "CHROME/WINDOWS", "locale": "en"}`
	p.sayf("Mallory signs in at the bookshop with the number of Luis, %s:", luis)
	begun := p.beginVerification(request)
	p.sayf("Mallory sends the link to Luis: \"Tap and send, to get your parcel.\" Luis does. That proves the number, and verifies nothing:")
	p.playUser(luis, "send", `{"link": "`+begun.WALink+`"}`)
	p.awaitEvent(begun, "verification.attention")
	p.expectPending(begun, "AWAITING_CONFIRMATION")
	p.sayf("The digits go to the phone of Luis alone, below who asks, for what, and in which browser:")
	digits := p.readCode(luis, digitsLine)
	p.sayf("Mallory does not have them, and guesses. Five wrong ones end the request:")
	p.confirmRequest(begun, nextDigits(digits), "wrong_code")
	p.expectPending(begun, "AWAITING_CONFIRMATION")
	p.sayf("Luis types them at the real bookshop, which is another session with a request of its own. There they are worth nothing:")
	p.confirmRequest(p.beginVerification(request), digits, "not_proven")
	p.sayf("Only the session that began the request, and only with the digits from the phone of Luis, verifies the number. Had Luis begun it:")
	confirmed := p.confirmRequest(begun, digits, "")
	p.expectValue("status", confirmed.Status, "VERIFIED")
	p.expectValue("assurance", confirmed.Assurance, "session")
	p.awaitEvent(begun, "verification.success")
}

// beginVerification starts a verification.
func (p *player) beginVerification(body string) answer {
	begun := p.makeCall(p.api+"/api/verify/init", body, "")
	if begun.RequestID == "" {
		p.failf("expected a requestId, got none")
	}
	return begun
}

// playUser has a user do something.
func (p *player) playUser(user, what, body string) {
	p.makeCall(p.simulator+"/sim/users/"+user+"/"+what, body, "")
}

func (p *player) readStatus(begun answer, more string) answer {
	return p.makeCall(p.api+"/api/verify/status?id="+begun.RequestID+more, "", "")
}

func (p *player) expectPending(begun answer, hint string) {
	status := p.readStatus(begun, "")
	p.expectValue("status", status.Status, "PENDING")
	p.expectValue("hint", status.Hint, hint)
}

func (p *player) confirmRequest(begun answer, digits, wantError string) answer {
	return p.makeCall(p.api+"/api/verify/confirm", `{"requestId": "`+begun.RequestID+`", "code": "`+digits+`"}`, wantError)
}

// makeCall prints a call as a line of curl, makes it, and prints and returns its answer, which has the error code wantError.
func (p *player) makeCall(url, body, wantError string) (a answer) {
	if p.err != nil {
		return a
	}
	line := "curl -sS " + quote(url)
	if strings.HasPrefix(url, p.api+"/") {
		line += ` -H "Authorization: Bearer $API_KEY"`
	}
	if body != "" {
		line += " -H 'Content-Type: application/json' -d " + quote(body)
	}
	p.printf("  $ %s", line)
	var (
		text []byte
		err  error
	)
	if p.pasted == nil {
		text, err = p.sendRequest(url, body)
	} else if p.pasted.Scan() {
		text = p.pasted.Bytes()
	}
	if err == nil {
		p.printf("%s", indent(string(text)))
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		waitFor(p.ctx, time.Second) // for the reason, if the server has just ended
		p.failf("expected an answer in JSON from %s: %w", url, err)
	}
	p.expectValue("error code", a.Error.Code, wantError)
	return a
}

// sendRequest sends a request, a POST if it has a body, past every proxy.
func (p *player) sendRequest(url, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+p.secrets["api-key"])
	request.Header.Set("Content-Type", "application/json")
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// awaitEvent prints the webhooks that arrive, up to one event of a request.
func (p *player) awaitEvent(begun answer, name string) {
	for found := false; !found && p.err == nil; {
		select {
		case e := <-p.receiver.events:
			p.printEvent(e)
			var body struct {
				Event     string `json:"event"`
				RequestID string `json:"requestId"`
			}
			if err := errors.Join(e.err, json.Unmarshal([]byte(e.body), &body)); err != nil {
				p.failf("expected a webhook that is signed: %w", err)
			}
			found = body.Event == name && body.RequestID == begun.RequestID
		case <-p.ctx.Done():
			p.failf("expected a webhook: %w", context.Cause(p.ctx))
		case <-time.After(patience):
			p.failf("expected a webhook %s of %s, got none in %s", name, begun.RequestID, patience)
		}
	}
}

func (p *player) printEvent(e event) {
	p.sayf("A webhook has reached the bookshop's backend:")
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "x-webhook-signature"} {
		p.printf("    %s: %s", name, e.header.Get(name))
	}
	p.printf("%s", indent(e.body))
	if e.err == nil {
		p.printf("    checked: both signatures are right")
	}
}

var (
	digitsLine    = regexp.MustCompile(`(?m)^.*: (\d{6})$`)
	deliveredLine = regexp.MustCompile(`^(\d{8}) is your verification code`)
)

// readCode returns the code in the message to a user in which a line is found, after it has come.
func (p *player) readCode(user string, line *regexp.Regexp) string {
	var (
		url      = p.simulator + "/sim/users/" + user + "/chats"
		deadline = time.Now().Add(patience)
	)
	for p.err == nil {
		var shown answer
		text, err := p.sendRequest(url, "")
		if err == nil {
			err = json.Unmarshal(text, &shown)
		}
		if code, _ := shown.findCode(line); code != "" {
			break
		}
		if err != nil || time.Now().After(deadline) {
			p.failf("expected a message with a code, got %s (%v)", text, err)
		}
		waitFor(p.ctx, 50*time.Millisecond)
	}
	shown := p.makeCall(url, "", "")
	code, message := shown.findCode(line)
	if code == "" {
		p.failf("expected a message with a code, got none")
		return ""
	}
	p.sayf("The message:")
	p.printf("%s", indent(message))
	return code
}

// findCode returns the code of a line, and the message from the business that has it; empty without one.
func (a *answer) findCode(line *regexp.Regexp) (code, text string) {
	for _, chat := range a.Chats {
		for _, message := range chat.Messages {
			if found := line.FindStringSubmatch(message.Text); message.From == "business" && found != nil {
				return found[1], message.Text
			}
		}
	}
	return "", ""
}

// waitFor waits for a time, or for the end of the context.
func waitFor(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// nextDigits returns six other digits.
func nextDigits(digits string) string {
	number, _ := strconv.Atoi(digits) // they are digits
	return fmt.Sprintf("%06d", (number+1)%1_000_000)
}

func (p *player) expectValue(what, got, want string) {
	if got != want {
		p.failf("expected the %s %q, got %q", what, want, got)
	}
}

// failf notes the first failure, with its step.
func (p *player) failf(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%d. %s: %w", p.step, p.title, fmt.Errorf(format, args...))
	}
}

func (p *player) printStep(title string) {
	p.step++
	p.title = title
	p.printf("\n== %d. %s", p.step, title)
}

// sayf prints a sentence about what follows.
func (p *player) sayf(format string, args ...any) {
	if p.err == nil {
		p.printf("  "+format, args...)
	}
}

func (p *player) printf(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// indent returns a text with each of its lines indented.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// quote returns a word as a shell takes it.
func quote(word string) string {
	if strings.ContainsAny(word, " '\"\\&?$`") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
