package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

// The kinds of victims.
const (
	// careful victims do nothing, or read the message in the chat and answer Not me.
	careful = "careful"
	// obedient victims do everything that a link, a page and the chat offer, and tell no one anything.
	obedient = "obedient"
	// scanned victims are obedient, and something opens all of their links before and after them.
	scanned = "scanned"
	// talkers are obedient, and read the digits out to the attacker.
	talker = "talker"
)

// victimKinds are all of them.
func victimKinds() []string { return []string{careful, obedient, scanned, talker} }

// offer is what an attacker brings a victim to open: a messenger link or a page.
type offer struct {
	url  string
	from *person
}

// playVictim plays what the victim does with what the attackers offer.
func (s *scene) playVictim(ctx context.Context, offers []offer) error {
	var last message
	for _, o := range offers {
		if s.victim == careful && s.variant%4 == 3 {
			continue // did not begin it, and taps nothing
		}
		if s.victim == scanned {
			s.scan(ctx, o.url)
		}
		m, err := s.followOffer(ctx, o)
		if err != nil {
			return err
		}
		if s.level != levelSession {
			continue
		}
		s.mu.Lock()
		s.messages[o.from.request] = m
		s.mu.Unlock()
		if s.attack.proven != nil {
			if err := s.attack.proven(ctx, s, o.from, m); err != nil {
				return err
			}
		}
		if err := s.react(ctx, o, m); err != nil {
			return err
		}
		last = m
	}
	if last.chat == "" || s.victim == talker || s.victim == careful {
		return nil
	}
	return s.finishObediently(ctx, offers[len(offers)-1], last)
}

// followOffer opens an offer, sends the text that it has prepared, and reads the answer.
func (s *scene) followOffer(ctx context.Context, o offer) (message, error) {
	link := o.url
	if !isMessengerLink(link) {
		var err error
		if _, link, err = s.own.openPage(ctx, o.url); err != nil {
			return message{}, err
		}
	}
	if !isMessengerLink(link) {
		return message{}, fmt.Errorf("the page at %s has no messenger link", o.url)
	}
	return s.prove(ctx, s.phone, o.from.request, link)
}

func isMessengerLink(link string) bool {
	return strings.HasPrefix(link, "https://wa.me/") || strings.HasPrefix(link, "https://t.me/")
}

// prove sends the text of a link, and reads the digits, if the level has any.
func (s *scene) prove(ctx context.Context, p *phone, request, link string) (message, error) {
	c, err := p.sendPrepared(ctx, link)
	if err != nil || s.level != levelSession {
		return message{}, err
	}
	m, err := p.readMessage(ctx, c.ID)
	if errors.Is(err, errNoMessage) {
		s.record(ledger.Record{Kind: ledger.Unanswered, Request: request, Number: p.number})
	}
	if err != nil {
		return m, err
	}
	s.record(ledger.Record{Kind: ledger.Messaged, Request: request, Number: p.number, Offered: m.offered})
	return m, nil
}

// react does what the kind of victim does with a message.
func (s *scene) react(ctx context.Context, o offer, m message) error {
	switch s.victim {
	case careful:
		return s.decline(ctx, s.phone, o.from.request, m)
	case talker:
		if err := o.from.hear(ctx, m, s.variant); err != nil {
			return err
		}
	case scanned:
		s.scan(ctx, m.link)
	}
	return s.obey(ctx, o, m)
}

// obey opens the link of the chat and the page in the victim's browser, and types the digits wherever they are asked for.
func (s *scene) obey(ctx context.Context, o offer, m message) error {
	addresses := []string{m.link}
	if !isMessengerLink(o.url) {
		addresses = append(addresses, o.url)
	}
	for _, address := range addresses {
		page, err := s.own.awaitForm(ctx, address)
		for n := 0; n < 3 && err == nil && page != nil; n++ { // the page leads to the shop
			page, err = s.own.enterDigits(ctx, page, m.digits)
		}
		if err != nil {
			return err
		}
		if s.victim == scanned {
			s.scan(ctx, address)
		}
	}
	return nil
}

// finishObediently taps the last things that are there to tap: Not me, or the button that cancels.
func (s *scene) finishObediently(ctx context.Context, o offer, m message) error {
	switch s.variant % 3 {
	case 0:
		return s.decline(ctx, s.phone, o.from.request, m)
	case 1:
		page, err := s.own.Open(ctx, o.from.page)
		if err != nil {
			return err
		}
		for _, form := range page.Forms {
			if len(form.Fields) == 0 {
				_, err = s.own.Submit(ctx, page, form, "", "")
			}
		}
		return err
	}
	return nil
}

// declineWait is how long a request may be pending after Not me was taken, on a busy machine.
const declineWait = 5 * time.Second

// decline answers Not me, and records what came of it.
func (s *scene) decline(ctx context.Context, p *phone, request string, m message) error {
	if err := p.answerNotMe(ctx, m.chat); err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(declineWait); ; {
		answer, err := s.shop.Status(ctx, request)
		if err != nil {
			return fmt.Errorf("ask for status: %w", err)
		}
		// The attacker may have ended the request before; the answer counts all the same.
		if answer.Status == "VERIFIED" || answer.Hint == string(verification.HintDeclined) || time.Now().After(deadline) {
			s.record(ledger.Record{
				Kind: ledger.Declined, Request: request, Number: p.number, Result: answer.Status, Hint: answer.Hint,
			})
			return nil
		}
		<-tick.C
	}
}

// scan opens an address, and what it leads to, as link previews and scanners of mail do: with GET and HEAD, and without cookies. What
// is answered counts only for the judge.
func (s *scene) scan(ctx context.Context, address string) {
	for range 2 {
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			page, err := s.scanner.Send(ctx, method, address, nil)
			if err != nil {
				continue // that of a messenger is none of ours
			}
			for _, l := range page.Links {
				s.scanner.Send(ctx, method, l.URL, nil) //nolint:errcheck // as above
			}
		}
	}
}

// hear has an attacker hear the digits of the attacker's own request, and use them.
func (p *person) hear(ctx context.Context, m message, variant int) error {
	p.scene.record(ledger.Record{Kind: ledger.Talked, Party: p.party, Session: p.session, Request: p.request})
	page := p.shop
	if variant%2 == 1 {
		var err error
		if page, err = p.awaitForm(ctx, p.page); err != nil {
			return err
		}
	}
	_, err := p.enterDigits(ctx, page, m.digits)
	return err
}

// searchResponses records each response to a party that shows a session code which that party did not send, or that leads on with one.
func (s *scene) searchResponses(party, session string, b *browser.Browser) {
	seen := b.Seen()
	s.record(ledger.Record{Kind: ledger.Fetched, Party: party, Session: session, Count: len(seen)})
	for request, m := range s.messages {
		for _, response := range seen {
			if m.isShownIn(response) {
				s.record(ledger.Record{Kind: ledger.Shown, Party: party, Session: session, Request: request, Where: withoutQuery(response.Sent)})
			}
		}
	}
}

func withoutQuery(sent string) string {
	address, _, _ := strings.Cut(sent, "?")
	address, _, _ = strings.Cut(address, "\n")
	return address
}

// isShownIn reports whether a response shows a code of the message, or leads on with one.
func (m message) isShownIn(r browser.Seen) bool {
	if _, code, found := strings.Cut(m.link, "code="); found &&
		(strings.Contains(r.Header, code) || strings.Contains(r.Body, code) && !strings.Contains(r.Sent, code)) {
		return true
	}
	shown := strings.FieldsFunc(notTextPattern.ReplaceAllString(r.Body, " "), isNoDigit)
	return slices.Contains(shown, m.digits) && !strings.Contains(r.Sent, m.digits)
}

// notTextPattern is what a page does not show.
var notTextPattern = regexp.MustCompile(`(?s)<style.*?</style>|<script.*?</script>|<[^>]*>`)

func isNoDigit(r rune) bool { return r < '0' || r > '9' }
