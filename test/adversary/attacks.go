package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"

	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/adversary/shop"
)

// attack is a way to have a victim verify the attacker's session.
type attack struct {
	name string
	// row is that of the table of attacks in the design.
	row string
	// prepare begins the attackers' requests, and returns what the victim gets to open.
	prepare func(context.Context, *scene) ([]offer, error)
	// proven is called when the victim has proved the request of an attacker and read the message. It is nil for most.
	proven func(context.Context, *scene, *person, message) error
	// exploit is what the attackers do after the victim. It is nil for some.
	exploit func(context.Context, *scene) error
}

// attacks returns all of them.
func attacks() []*attack {
	return []*attack{
		{name: "relayed link", row: "B2", prepare: relayLink},
		{name: "unopened page", row: "B2", prepare: relayUnopenedPage},
		{name: "opened page", row: "B2", prepare: relayOpenedPage},
		{name: "QR on a wall", row: "B2", prepare: showQR},
		{name: "race", row: "B2", prepare: race},
		{name: "stolen link", row: "B3", prepare: stealLink, exploit: useStolen},
		{name: "replay", row: "B3", prepare: keepOldCodes, exploit: useStolen},
		{name: "fetch", row: "B3", prepare: relayOpenedPage, exploit: fetchAll},
		{name: "guess", row: "B4", prepare: relayOpenedPage, proven: guess},
		{name: "bombing", row: "B11", prepare: bombNumber, exploit: bombAfterDecline},
	}
}

func relayLink(ctx context.Context, s *scene) ([]offer, error) {
	a := s.newAttacker(ledger.Attacker)
	err := a.mustBegin(ctx, s.phone.number)
	return []offer{{a.messenger, a}}, err
}

func relayUnopenedPage(ctx context.Context, s *scene) ([]offer, error) {
	a := s.newAttacker(ledger.Attacker)
	err := a.mustBegin(ctx, s.phone.number)
	return []offer{{a.page, a}}, err
}

// relayOpenedPage holds the page open to the end of the scene: with its cookie, and with its stream of events.
func relayOpenedPage(ctx context.Context, s *scene) ([]offer, error) {
	offers, err := relayUnopenedPage(ctx, s)
	if err != nil {
		return nil, err
	}
	a := offers[0].from
	if _, _, err := a.openPage(ctx, a.page); err != nil {
		return nil, err
	}
	s.hold(ctx, a)
	return offers, nil
}

// hold follows the page of an attacker until the scene ends.
func (s *scene) hold(ctx context.Context, a *person) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			if stream, err := a.Open(ctx, a.page+"/events"); err != nil || stream.Status != http.StatusOK {
				return // it was cut off, or refused
			}
			if page, err := a.Open(ctx, a.page); err != nil || isOver(page) {
				return
			}
		}
	})
	s.release = func() {
		cancel()
		following.Wait()
	}
}

// isOver reports whether a page never changes again.
func isOver(page *browser.Page) bool {
	_, final := page.Data["final"]
	return final || page.Status != http.StatusOK
}

// showQR shows the picture of the attacker's page to the victim, and to a bystander, whose number no one claimed.
func showQR(ctx context.Context, s *scene) ([]offer, error) {
	a := s.newAttacker(ledger.Attacker)
	if err := a.mustBegin(ctx, s.phone.number); err != nil {
		return nil, err
	}
	content, err := a.readQR(ctx)
	if err != nil {
		return nil, err
	}
	bystander, err := s.newPhone(ctx)
	if err != nil {
		return nil, err
	}
	link := content
	if !isMessengerLink(link) {
		if _, link, err = s.newPerson(ledger.Bystander).openPage(ctx, content); err != nil {
			return nil, err
		}
	}
	if _, err := bystander.act(ctx, "send", map[string]string{"link": link}); err != nil {
		return nil, err
	}
	return []offer{{content, a}}, nil
}

// readQR opens the page of a person, and returns what the QR code there holds.
func (p *person) readQR(ctx context.Context) (string, error) {
	page, _, err := p.openPage(ctx, p.page)
	if err != nil {
		return "", err
	}
	for _, picture := range page.Pictures {
		encoded, found := strings.CutPrefix(picture, "data:image/png;base64,")
		if !found {
			continue
		}
		decoded, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded)))
		if err != nil {
			return "", fmt.Errorf("decode picture: %w", err)
		}
		bitmap, err := gozxing.NewBinaryBitmapFromImage(decoded)
		if err != nil {
			return "", fmt.Errorf("read QR code: %w", err)
		}
		result, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
		if err != nil {
			return "", fmt.Errorf("read QR code: %w", err)
		}
		return result.GetText(), nil
	}
	return "", errors.New("the page has no QR code")
}

// race begins two requests for one number. Some victims prove one of them, and some both.
func race(ctx context.Context, s *scene) ([]offer, error) {
	first, second := s.newAttacker(ledger.Attacker), s.newAttacker(ledger.Second)
	errs := make([]error, 2)
	var running sync.WaitGroup
	for n, a := range []*person{first, second} {
		running.Go(func() { errs[n] = a.mustBegin(ctx, s.phone.number) })
	}
	running.Wait()
	offers := []offer{{first.messenger, first}, {second.page, second}}
	return offers[:1+s.n%2], errors.Join(errs...)
}

// keepOldCodes has the victim verify the number for themselves. The attacker gets to know the codes after that, and passes on a link.
func keepOldCodes(ctx context.Context, s *scene) ([]offer, error) {
	if err := s.verifyOwn(ctx, nil); err != nil {
		return nil, err
	}
	return relayOpenedPage(ctx, s)
}

// stealLink has the victim verify the number for themselves. The attacker gets the return link before the victim opens it, as from a
// preview, and has a page of their own open for that number.
func stealLink(ctx context.Context, s *scene) ([]offer, error) {
	offers, err := relayOpenedPage(ctx, s)
	if err != nil {
		return nil, err
	}
	return offers, s.verifyOwn(ctx, func(m message) error { return s.useCodes(ctx, offers[0].from, m) })
}

// useStolen uses the codes that the victim's own request had.
func useStolen(ctx context.Context, s *scene) error {
	if s.level != levelSession {
		return nil
	}
	return s.useCodes(ctx, s.attackers[0], s.messages[s.own.request])
}

// useCodes uses the codes of another request in all ways: with the attacker's cookies, for the attacker's request and for the other.
func (s *scene) useCodes(ctx context.Context, a *person, m message) error {
	if s.level != levelSession {
		return nil
	}
	_, code, _ := strings.Cut(m.link, "code=")
	addresses := []string{m.link, a.page + "/return?code=" + code}
	for _, request := range []string{s.own.request, a.request} {
		addresses = append(addresses, shop.ReturnURL+"?requestId="+request+"&status=PENDING&code="+code)
	}
	for _, address := range addresses {
		if _, err := a.Open(ctx, address); err != nil {
			return err
		}
	}
	_, err := a.enterDigits(ctx, a.shop, m.digits)
	return err
}

// fetchAll fetches all addresses that the attacker knows, in all ways. The guesses of codes are fewer than the tries that there are.
func fetchAll(ctx context.Context, s *scene) error {
	a := s.attackers[0]
	const guessed = "AAAAAAAAAAAAAAAAAAAAAA"
	for _, path := range []string{"", "/return", "/return?code=" + guessed, "/return?code=000000", "/state", "/confirm"} {
		for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if _, err := a.Send(ctx, method, a.page+path, nil); err != nil {
				return err
			}
		}
	}
	for _, address := range []string{a.page, a.page + "/return?code=" + guessed, a.page + "/opened"} {
		if _, err := a.Send(ctx, http.MethodPost, address, url.Values{"code": {guessed}}); err != nil {
			return err
		}
	}
	page, err := a.Send(ctx, http.MethodPost, a.page+"/confirm", url.Values{"code": {guessed}})
	if err != nil {
		return err
	}
	s.record(ledger.Record{Kind: ledger.Tried, Party: a.party, Request: a.request, Result: resultOf(page), Where: "page"})
	_, err = a.Open(ctx, shop.ReturnURL+"?requestId="+a.request+"&status=PENDING&code="+guessed)
	return errors.Join(err, s.callWithoutKey(ctx, a))
}

// callWithoutKey calls the API as the shop does, but for the key.
func (s *scene) callWithoutKey(ctx context.Context, a *person) error {
	for _, key := range []string{"", "Bearer wrong"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.shop.API()+"/api/verify/confirm",
			strings.NewReader(`{"requestId":"`+a.request+`","code":"000000"}`))
		if err != nil {
			return fmt.Errorf("create request: %w", err)
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {key}}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("call confirm without a key: %w", err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if response.StatusCode != http.StatusUnauthorized {
			return fmt.Errorf("confirm without a key was answered %d", response.StatusCode)
		}
	}
	return nil
}

// guesses is how many wrong digits are entered, half of them on the page and half in the shop. Each call goes to another replica.
const guesses = 12

// guess enters wrong digits at all places at once, and then the right ones, as a guesser with luck would.
func guess(ctx context.Context, s *scene, a *person, m message) error {
	page, err := a.awaitForm(ctx, a.page)
	if err != nil {
		return err
	}
	var (
		right   int
		running sync.WaitGroup
	)
	if _, err := fmt.Sscanf(m.digits, "%d", &right); err != nil {
		return fmt.Errorf("read digits: %w", err)
	}
	errs := make([]error, guesses)
	for n := range guesses {
		running.Go(func() {
			_, errs[n] = a.enterDigits(ctx, []*browser.Page{page, a.shop}[n%2], fmt.Sprintf("%06d", (right+1+n)%1_000_000))
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, form := range []*browser.Page{page, a.shop} {
		if _, err := a.enterDigits(ctx, form, m.digits); err != nil {
			return err
		}
	}
	return nil
}

// bombs is how many inits are sent at once.
const bombs = 12

// errNothingBegun ends a scene whose attacker learned of no request that was begun: each was refused, or its answer was lost and the limit
// of the number refused it when it was sent again.
var errNothingBegun = errors.New("every init was refused")

// bombNumber begins as many requests for the victim's number as are let, and passes one on.
func bombNumber(ctx context.Context, s *scene) ([]offer, error) {
	begun, err := s.bomb(ctx, s.phone.number)
	if err != nil {
		return nil, err
	}
	if len(begun) == 0 {
		return nil, errNothingBegun
	}
	return []offer{{begun[0].messenger, begun[0]}}, nil
}

// bomb begins requests for a number at once, and returns those who were let.
func (s *scene) bomb(ctx context.Context, number string) (begun []*person, err error) {
	all, let, errs := make([]*person, bombs), make([]bool, bombs), make([]error, bombs)
	var running sync.WaitGroup
	for n := range bombs {
		all[n] = s.newPerson(ledger.Attacker)
		running.Go(func() { let[n], errs[n] = all[n].begin(ctx, number) })
	}
	running.Wait()
	for n, a := range all {
		if let[n] {
			begun = append(begun, a)
		}
	}
	s.attackers = append(s.attackers, begun...)
	return begun, errors.Join(errs...)
}

// bombAfterDecline begins one request for another number, whose owner answers Not me, and then as many as are let.
func bombAfterDecline(ctx context.Context, s *scene) error {
	if s.level != levelSession {
		return nil
	}
	other, err := s.newPhone(ctx)
	if err != nil {
		return err
	}
	a := s.newAttacker(ledger.Attacker)
	if err := a.mustBegin(ctx, other.number); err != nil {
		return err
	}
	m, err := s.prove(ctx, other, a.request, a.messenger)
	if err != nil {
		return err
	}
	if err := s.decline(ctx, other, a.request, m); err != nil {
		return err
	}
	if _, err := s.bomb(ctx, other.number); err != nil || s.spread == 0 {
		return err
	}
	if err := pause(ctx, s.spread); err != nil {
		return err
	}
	_, err = s.bomb(ctx, other.number)
	return err
}

// pause returns after a time, or when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
