package simulator

import (
	"net/http"
	"slices"
	"time"
)

// The platforms.
const (
	onWhatsApp = "whatsapp"
	onTelegram = "telegram"
)

// chat is what a user and an account wrote to each other.
type chat struct {
	ID       string `json:"chat"` // PLATFORM:PEER
	Platform string `json:"platform"`
	// Peer is the digits of the business number, or the bot's username.
	Peer  string `json:"peer"`
	Title string `json:"title"`
	// Draft is what a link put into the field for the next message; with Telegram, what the START button sends.
	Draft string `json:"draft"`
	// AsksForContact is true while the account shows a button which shares the user's number, with the text Button.
	AsksForContact bool   `json:"asksForContact"`
	Button         string `json:"button,omitempty"`
	// Replies are the buttons below the account's last question, or of the bot's keyboard. They go when one is tapped, unless the bot
	// has its keyboard stay.
	Replies []replyButton `json:"replies,omitempty"`
	Lines   []*line       `json:"messages"`

	business *business // one of these
	bot      *bot
	wroteAt  time.Time // when the user wrote last
	lastID   int64     // of Telegram's messages in this chat
	promptID string    // of Telegram's message that shows the button
	promptAt time.Time // when that was sent
	// repliesOnce is true if a bot's keyboard goes when a button of it was tapped.
	repliesOnce bool
	// questionID is of WhatsApp's newest message with buttons, which Replies are.
	questionID string
	unread     []*outbound // messages of a WhatsApp account that the user has not read
}

// line is a message as the phone shows it.
type line struct {
	ID   string    `json:"id"`
	From string    `json:"from"` // user or business
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	// Contact is the number that the user shared.
	Contact string `json:"contact,omitempty"`
	// State of a user's message is sending, delivered, or waiting (it was refused and comes again), failed or undeliverable.
	State  string `json:"state,omitempty"`
	Status int    `json:"status,omitempty"`
}

const (
	fromUser     = "user"
	fromBusiness = "business"

	stateSending   = "sending"
	stateDelivered = "delivered"
	stateWaiting   = "waiting"
	stateFailed    = "failed"
	// stateNowhere is a message to an account without a callback.
	stateNowhere = "undeliverable"
)

func (c *chat) addLine(l *line) { c.Lines = appendBounded(c.Lines, l, maxLines) }

// openChat returns the user's chat with an account, as the one that is open now.
func (u *user) openChat(platform, peer, title string) *chat {
	id := platform + ":" + peer
	c := &chat{ID: id, Platform: platform, Peer: peer, Title: title, Lines: []*line{}}
	if i := slices.IndexFunc(u.chats, func(c *chat) bool { return c.ID == id }); i >= 0 {
		c = u.chats[i]
		u.chats = slices.Delete(u.chats, i, i+1)
	}
	c.Title = title
	u.chats = appendBounded(u.chats, c, maxChats)
	return c
}

// findChat returns a chat of the user; the one opened last if id is empty.
func (u *user) findChat(id string) (*chat, *failure) {
	if id == "" && len(u.chats) > 0 {
		return u.chats[len(u.chats)-1], nil
	}
	for _, c := range u.chats {
		if c.ID == id {
			return c, nil
		}
	}
	return nil, &failure{http.StatusNotFound, "unknown_chat", "chat", "the user has no such chat; open a link first"}
}

// openLinkOrChat opens a link, or else a chat that is there.
func (p *phones) openLinkOrChat(u *user, link, id string) (*chat, *failure) {
	if link == "" && id != "" {
		return u.findChat(id)
	}
	return p.openLink(u, link)
}

// openLink does what a phone does with a link.
func (p *phones) openLink(u *user, link string) (*chat, *failure) {
	to, f := parseLink(link)
	if f != nil {
		return nil, f
	}
	c, f := p.chatWith(u, to)
	if f != nil {
		return nil, f
	}
	c.Draft = to.draft
	return c, nil
}

// chatWith opens the chat that a link leads to.
func (p *phones) chatWith(u *user, to target) (*chat, *failure) {
	if to.platform == onTelegram {
		b := p.telegram.findBotByName(to.peer)
		if b == nil {
			return nil, unknownAccount("no bot of that name is known: its token must be sim_" + to.peer +
				" or sim_" + to.peer + ":ANYTHING, and the server must have called the Bot API with it")
		}
		c := u.openChat(onTelegram, b.key(), b.title())
		c.bot = b
		return c, nil
	}
	b := p.whatsApp.findBusinessByNumber(to.peer)
	if b == nil {
		return nil, unknownAccount("no account has that number: its access token must be sim_" + to.peer +
			" or sim_" + to.peer + ":ANYTHING and the server must have called the Graph API with it, or PUT /sim/accounts/whatsapp/{phoneNumberID} must say so")
	}
	c := u.openChat(onWhatsApp, b.Number, b.title())
	c.business = b
	return c, nil
}

func unknownAccount(message string) *failure {
	return &failure{http.StatusNotFound, "unknown_account", "link", message}
}

// deliverText has the user send a text, or forward it; the draft if it is empty.
func (p *phones) deliverText(u *user, c *chat, text string, forwarded bool) (*line, *failure) {
	if text == "" {
		text = c.Draft
	}
	switch {
	case text == "":
		return nil, badRequest("text", "there is no draft, so there must be a text")
	case len([]rune(text)) > maxTextRunes:
		return nil, badRequest("text", "a message has at most 4096 characters")
	case c.bot == nil && c.business == nil:
		return nil, badRequest("chat", "Telegram itself writes the codes of its Gateway, and takes no message")
	}
	p.readMessages(u, c)
	l := &line{From: fromUser, At: p.clock.Now().UTC(), Text: text, State: stateSending}
	if c.bot != nil {
		p.telegram.writeToBot(u, c, l, forwarded)
	} else {
		p.whatsApp.writeToBusiness(u, c, l, forwarded)
	}
	c.Draft = ""
	c.wroteAt = l.At
	c.addLine(l)
	p.publish(event{Type: "message", User: u.ID, Chat: c.ID, Platform: c.Platform})
	return l, nil
}

// deliverTap has the user tap a button below a message of the account, or of the bot's keyboard: the first one if title is empty. A
// keyboard's button sends its title as a text.
func (p *phones) deliverTap(u *user, c *chat, title string) (*line, *failure) {
	i := slices.IndexFunc(c.Replies, func(b replyButton) bool { return title == "" || b.Title == title })
	if i < 0 {
		return nil, &failure{http.StatusConflict, "not_asked", "chat", "there is no such button in that chat"}
	}
	button := c.Replies[i]
	if c.bot != nil {
		if c.repliesOnce {
			c.Replies = nil
		}
		draft := c.Draft
		l, f := p.deliverText(u, c, button.Title, false)
		c.Draft = draft
		return l, f
	}
	c.Replies = nil
	p.readMessages(u, c)
	l := &line{From: fromUser, At: p.clock.Now().UTC(), Text: button.Title, State: stateSending}
	p.whatsApp.queueMessage(c, u.newTapValue(c.business, button, c.questionID, l.At), l)
	c.wroteAt = l.At
	c.addLine(l)
	p.publish(event{Type: "message", User: u.ID, Chat: c.ID, Platform: c.Platform})
	return l, nil
}

// shareContact has the user press the button.
func (p *phones) shareContact(u *user, c *chat) (*line, *failure) {
	if !c.AsksForContact {
		return nil, &failure{http.StatusConflict, "not_asked", "chat", "the contact was not asked for in that chat"}
	}
	p.readMessages(u, c)
	l := &line{From: fromUser, At: p.clock.Now().UTC(), Contact: u.Phone, State: stateSending}
	if c.bot != nil {
		p.telegram.shareWithBot(u, c, l)
	} else {
		p.whatsApp.shareWithBusiness(u, c, l)
	}
	c.wroteAt = l.At
	c.addLine(l)
	p.publish(event{Type: "message", User: u.ID, Chat: c.ID, Platform: c.Platform})
	return l, nil
}

// readMessages has the user read what a WhatsApp account wrote in a chat.
func (p *phones) readMessages(u *user, c *chat) {
	for _, d := range c.unread {
		p.whatsApp.postStatus(d, u, "read")
	}
	c.unread = nil
}
