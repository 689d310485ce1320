package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/test/adversary/browser"
	"github.com/phoneproof/phoneproof/test/adversary/ledger"
	"github.com/phoneproof/phoneproof/test/adversary/shop"
)

// sceneTime is longer than any scene takes on a busy machine.
const sceneTime = 6 * time.Minute

// formEvery is how often a page is opened again: no page lets itself be opened much more often.
const formEvery = 200 * time.Millisecond

// scene is one attack on one victim, or one honest user.
type scene struct {
	*stage

	n       int
	attack  *attack // nil for an honest user
	victim  string
	method  string
	variant int

	phone *phone
	// own is the victim's browser, and scanner the one that looks through the victim's links.
	own     *person
	scanner *browser.Browser

	mu        sync.Mutex
	phones    []*phone
	attackers []*person
	// messages are what the chat said of each request.
	messages map[string]message
	// release ends what an attacker holds open; nil if nothing.
	release func()
}

// stage is what all scenes of a run share.
type stage struct {
	level     string
	simulator *simulator.Simulator
	network   *browser.Network
	shop      *shop.Shop
	write     func(ledger.Record)
	// spread is how long one replica may take to hear of what another one did; zero if it knows at once.
	spread time.Duration
	// nextNumber returns a phone number that no scene has had.
	nextNumber func() string
}

// person has a browser, and the request that they began with it.
type person struct {
	*browser.Browser

	scene *scene
	party string

	number    string
	session   string
	request   string
	page      string
	messenger string
	// shop is the page of the shop that is open.
	shop *browser.Page
}

func (s *scene) record(r ledger.Record) {
	r.Scene, r.Victim, r.Method, r.Level = s.n, s.victim, s.method, s.level
	if s.attack != nil {
		r.Attack = s.attack.name
	}
	s.write(r)
}

func (s *scene) newPerson(party string) *person {
	return &person{Browser: browser.New(s.network, true), scene: s, party: party}
}

// newAttacker returns an attacker of the scene.
func (s *scene) newAttacker(party string) *person {
	a := s.newPerson(party)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attackers = append(s.attackers, a)
	return a
}

func (s *scene) newPhone(ctx context.Context) (*phone, error) {
	p, err := addPhone(ctx, s.simulator, s.nextNumber())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phones = append(s.phones, p)
	return p, nil
}

// play plays the scene from its beginning to its end.
func (s *scene) play(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	defer func() {
		s.letGo()
		for _, p := range s.phones {
			err = errors.Join(err, p.remove(context.WithoutCancel(ctx)))
		}
		if err != nil {
			err = fmt.Errorf("scene %d (%s, %s, %s): %w", s.n, s.nameOfAttack(), s.victim, s.method, err)
		}
	}()
	s.record(ledger.Record{Kind: ledger.Scene})
	s.messages = map[string]message{}
	s.own, s.scanner = s.newPerson(ledger.Victim), browser.New(s.network, false)
	if s.phone, err = s.newPhone(ctx); err != nil {
		return err
	}
	if err := s.playParts(ctx); err != nil && !errors.Is(err, errNoMessage) && !errors.Is(err, errNothingBegun) {
		return err
	}
	return s.conclude(ctx)
}

// playParts plays what the attackers and the victim do, or the honest user.
func (s *scene) playParts(ctx context.Context) error {
	if s.attack == nil {
		return s.playHonest(ctx)
	}
	offers, err := s.attack.prepare(ctx, s)
	if err != nil {
		return fmt.Errorf("prepare attack: %w", err)
	}
	if err := s.playVictim(ctx, offers); err != nil {
		return fmt.Errorf("play victim: %w", err)
	}
	if s.attack.exploit == nil {
		return nil
	}
	if err := s.attack.exploit(ctx, s); err != nil {
		return fmt.Errorf("exploit: %w", err)
	}
	return nil
}

// letGo closes what an attacker holds open.
func (s *scene) letGo() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

func (s *scene) nameOfAttack() string {
	if s.attack == nil {
		return "no attack"
	}
	return s.attack.name
}

// conclude has each attacker try what costs nothing, and records what everyone sees at the end.
func (s *scene) conclude(ctx context.Context) error {
	for _, a := range s.attackers {
		if err := a.claimReturn(ctx); err != nil {
			return err
		}
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	s.letGo()
	s.searchResponses(ledger.Scanner, "", s.scanner)
	for _, a := range s.attackers {
		s.searchResponses(a.party, a.session, a.Browser)
	}
	return nil
}

// claimReturn opens the shop's return address as if a page had led there.
func (p *person) claimReturn(ctx context.Context) error {
	for _, query := range []string{"status=VERIFIED", "status=VERIFIED&code=", "status=PENDING&code=000000000000000000000"} {
		if _, err := p.Open(ctx, shop.ReturnURL+"?requestId="+p.request+"&"+query); err != nil {
			return err
		}
	}
	return nil
}

// look records what the shop shows to a person, and what status says of the request.
func (p *person) look(ctx context.Context) error {
	if p.request == "" {
		return nil
	}
	shown, err := p.Open(ctx, shop.URL+"/me")
	if err != nil {
		return err
	}
	p.scene.record(ledger.Record{
		Kind: ledger.Member, Party: p.party, Session: p.session, Request: p.request,
		Verified: strings.Contains(shown.Body, `"verified":true`),
	})
	for range 2 { // at one replica and at the other
		if _, err := p.scene.askStatus(ctx, p.request); err != nil {
			return err
		}
	}
	return nil
}

// askStatus asks for the status of a request, and records the answer.
func (s *scene) askStatus(ctx context.Context, id string) (shop.Answer, error) {
	answer, err := s.shop.Status(ctx, id)
	if err != nil {
		return answer, fmt.Errorf("ask for status: %w", err)
	}
	s.record(ledger.Record{Kind: ledger.Status, Request: id, Result: answer.Status, Hint: answer.Hint, Assurance: answer.Assurance})
	return answer, nil
}

// begin begins a request for a number in the shop. It reports whether it was let.
func (p *person) begin(ctx context.Context, number string) (bool, error) {
	asked := time.Now()
	page, err := p.Send(ctx, http.MethodPost, shop.URL+"/start", url.Values{"number": {number}, "method": {p.scene.method}})
	if err != nil {
		return false, err
	}
	r := ledger.Record{
		Kind: ledger.Begun, Asked: asked, Party: p.party, Session: page.Data["session"], Request: page.Data["request"], Number: number,
	}
	if page.Status != http.StatusOK {
		r.Kind, r.Answer, r.Result, r.Hint = ledger.Refused, page.Status, page.Data["error"], page.Data["limit"]
		p.scene.record(r)
		return false, nil
	}
	p.number, p.session, p.request, p.shop = number, r.Session, r.Request, page
	p.page, p.messenger = page.Link("page"), page.Link("messenger")
	p.scene.record(r)
	if p.page == "" || p.messenger == "" {
		return false, errors.New("init answered without pageURL or messenger link")
	}
	return true, nil
}

// mustBegin begins a request that has to be let.
func (p *person) mustBegin(ctx context.Context, number string) error {
	begun, err := p.begin(ctx, number)
	if err == nil && !begun {
		err = errors.New("init was refused")
	}
	return err
}

// openPage opens a page as a tap on its link does, and the messenger from there, as a tap on its button does: the script tells the
// server. It returns the page and its messenger link.
func (p *person) openPage(ctx context.Context, address string) (*browser.Page, string, error) {
	page, err := p.Open(ctx, address)
	if err != nil {
		return nil, "", err
	}
	link := page.Link("open")
	if link == "" {
		return page, "", nil
	}
	_, err = p.Send(ctx, http.MethodPost, "https://"+page.URL.Host+page.Data["page"]+"/opened", url.Values{})
	return page, link, err
}

// awaitForm opens a page, and follows it until it asks for digits or never changes again, as its script does: a replica may hear of a proof
// a moment later than the chat.
func (p *person) awaitForm(ctx context.Context, address string) (*browser.Page, error) {
	tick := time.NewTicker(formEvery)
	defer tick.Stop()
	for deadline := time.Now().Add(messageWait); ; {
		page, err := p.Open(ctx, address)
		if err != nil {
			return nil, err
		}
		if _, found := page.FormWith("code"); found || isOver(page) || time.Now().After(deadline) {
			return page, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// enterDigits types digits into the form of a page and sends it. It returns the page after that; nil if there is no form.
func (p *person) enterDigits(ctx context.Context, page *browser.Page, digits string) (*browser.Page, error) {
	form, found := page.FormWith("code")
	if !found {
		return nil, nil
	}
	next, err := p.Submit(ctx, page, form, "code", digits)
	if err != nil {
		return nil, err
	}
	if page.URL.Host != shop.Host {
		p.scene.record(ledger.Record{Kind: ledger.Tried, Party: p.party, Request: p.scene.requestOf(page), Result: resultOf(next), Where: "page"})
	}
	return next, nil
}

// requestOf returns the request that a page belongs to, by the ticket in its address: that of pageURL, or that of the link in the chat.
func (s *scene) requestOf(page *browser.Page) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	address := page.URL.Host + page.URL.Path
	for _, p := range append([]*person{s.own}, s.attackers...) {
		link, _, _ := strings.Cut(s.messages[p.request].link, "/return?")
		for _, known := range []string{p.page, link} {
			if known != "" && strings.HasPrefix(address, strings.TrimPrefix(known, "https://")) {
				return p.request
			}
		}
	}
	return ""
}

// The results of digits that were entered on a page.
const (
	resultPassed = "passed"
	resultWrong  = "wrong"
)

// resultOf returns what a page says of the digits that were entered before it.
func resultOf(page *browser.Page) string {
	switch {
	case page.URL.Host == shop.Host:
		return resultPassed
	case page.Status == http.StatusUnprocessableEntity:
		return resultWrong
	default:
		return page.Data["state"]
	}
}
