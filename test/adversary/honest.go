package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/adversary/shop"
)

// The kinds of honest users.
const (
	// onPhone users have browser and messenger on one phone, and go back by the link in the chat.
	onPhone = "on a phone"
	// onDesktop users scan the QR code, and type the digits into the form of the shop.
	onDesktop = "on a desktop"
	// onPage users scan the QR code, mistype the digits on the page once, and then type them right.
	onPage = "on the page"
)

// honestKinds are all of them.
func honestKinds() []string { return []string{onPhone, onDesktop, onPage} }

// playHonest plays a user who verifies their own number.
func (s *scene) playHonest(ctx context.Context) error {
	if s.victim == ledger.Late {
		return s.playLate(ctx)
	}
	s.own.party = ledger.Honest
	if err := s.own.mustBegin(ctx, s.phone.number); err != nil {
		return err
	}
	content, err := s.own.readQR(ctx)
	if err != nil {
		return err
	}
	if s.victim == onPhone {
		content = s.own.messenger
	}
	m, err := s.followOffer(ctx, offer{content, s.own})
	if err != nil {
		return err
	}
	if s.level == levelSession {
		s.messages[s.own.request] = m
		if err := s.confirm(ctx, m); err != nil {
			return fmt.Errorf("confirm: %w", err)
		}
	}
	return s.own.look(ctx)
}

// confirm brings the codes to the shop, in the way of this user. The link in the chat is opened twice, and by previews.
func (s *scene) confirm(ctx context.Context, m message) error {
	if m.link == "" {
		return errors.New("the message has no return link")
	}
	if s.variant%2 == 0 {
		s.scan(ctx, m.link)
	}
	if s.victim == onDesktop {
		_, err := s.own.enterDigits(ctx, s.own.shop, m.digits)
		return err
	}
	var (
		page *browser.Page
		err  error
	)
	if s.victim == onPhone {
		if page, err = s.own.Open(ctx, m.link); err == nil && resultOf(page) != resultPassed {
			return fmt.Errorf("the return link led to the page in state %q", page.Data["state"])
		}
		if err == nil {
			_, err = s.own.Open(ctx, m.link)
		}
		return err
	}
	if page, err = s.own.awaitForm(ctx, s.own.page); err != nil {
		return err
	}
	for _, digits := range []string{wrongDigits(m.digits), m.digits} {
		next, err := s.own.enterDigits(ctx, page, digits)
		if err != nil {
			return err
		}
		if next == nil {
			return fmt.Errorf("the page has no form in state %q", page.Data["state"])
		}
		page = next
	}
	if resultOf(page) != resultPassed {
		return fmt.Errorf("the right digits led to the page in state %q", page.Data["state"])
	}
	return nil
}

// wrongDigits returns six other digits.
func wrongDigits(digits string) string {
	if digits[0] == '0' {
		return "1" + digits[1:]
	}
	return "0" + digits[1:]
}

// verifyOwn has the victim verify their own number by the link in the chat. stolen is called with the codes before that.
func (s *scene) verifyOwn(ctx context.Context, stolen func(message) error) error {
	s.own.party = ledger.Honest
	if err := s.own.mustBegin(ctx, s.phone.number); err != nil {
		return err
	}
	if _, _, err := s.own.openPage(ctx, s.own.page); err != nil {
		return err
	}
	m, err := s.prove(ctx, s.phone, s.own.request, s.own.messenger)
	if err != nil {
		return err
	}
	if s.level != levelSession {
		return s.own.look(ctx)
	}
	s.messages[s.own.request] = m
	if stolen != nil {
		if err := stolen(m); err != nil {
			return err
		}
	}
	page, err := s.own.awaitForm(ctx, m.link)
	if err == nil && page.URL.Host != shop.Host {
		_, err = s.own.enterDigits(ctx, page, m.digits)
	}
	return errors.Join(err, s.own.look(ctx))
}

// playLate plays a user who uses the codes when the request has expired.
func (s *scene) playLate(ctx context.Context) error {
	s.own.party = ledger.Late
	if err := s.own.mustBegin(ctx, s.phone.number); err != nil {
		return err
	}
	if _, _, err := s.own.openPage(ctx, s.own.page); err != nil {
		return err
	}
	m, err := s.prove(ctx, s.phone, s.own.request, s.own.messenger)
	if err != nil {
		return err
	}
	page, err := s.own.awaitForm(ctx, s.own.page)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for status := ""; status != "EXPIRED"; <-tick.C {
		answer, err := s.askStatus(ctx, s.own.request)
		if err != nil {
			return err
		}
		status = answer.Status
	}
	if _, err := s.own.Open(ctx, m.link); err != nil {
		return err
	}
	for _, form := range []*browser.Page{page, s.own.shop} {
		next, err := s.own.enterDigits(ctx, form, m.digits)
		if err == nil && next == nil {
			err = errors.New("there is no form for the digits")
		}
		if err != nil {
			return err
		}
	}
	return s.own.look(ctx)
}
