package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	firstBotID    = 5_021_000_000
	firstUpdateID = 880_000_001
	// secretHeader carries the secret_token of setWebhook.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token" //nolint:gosec // a name
)

// telegram is Telegram: the Bot API and what it knows.
type telegram struct {
	*hub

	phones *phones

	bots []*bot
	// codes are those that the Gateway took, balances what its accounts have left, in US dollars.
	codes    []*gatewayCode
	balances map[string]float64
}

// takeDueUpdates returns the updates to post now, and how long no other will be. The lock is held.
func (tg *telegram) takeDueUpdates(now time.Time) ([]job, time.Duration) {
	jobs, next := []job{}, time.Minute
	for _, b := range tg.bots {
		more, wait := tg.takeDueUpdatesOf(b, now)
		jobs, next = append(jobs, more...), min(next, wait)
	}
	return jobs, next
}

// bot is a Telegram bot.
type bot struct {
	Username string `json:"username"`
	Webhook  string `json:"webhook,omitempty"`

	id         int64
	tokens     []string // beside those that name it
	secret     string
	allowed    []string // nil for the default, all that are simulated
	maxConns   int
	nextUpdate int64
	pending    []*update
	poll       chan struct{} // closed to end the poll that is held
	pollEnd    string        // why
	lastError  string
	lastFailed time.Time
}

// update waits until it is confirmed, or taken by the webhook.
type update struct {
	id       int64
	chat     string // updates of a chat are posted one after the other
	body     tgUpdate
	line     *line
	attempt  int
	due      time.Time
	inFlight bool
}

func (b *bot) key() string { return strings.ToLower(b.Username) }

func (b *bot) title() string { return "@" + b.Username }

func (b *bot) asTelegramUser() tgUser {
	return tgUser{ID: b.id, IsBot: true, FirstName: b.Username, Username: b.Username}
}

// addUpdate queues a message, unless the bot wants none. The lock is held.
func (tg *telegram) addUpdate(b *bot, m tgMessage, l *line) bool {
	if b.allowed != nil && !slices.Contains(b.allowed, kindMessage) || len(b.pending) >= maxUpdates {
		return false
	}
	b.pending = append(b.pending, &update{
		id: b.nextUpdate, chat: strconv.FormatInt(m.Chat.ID, 10), line: l, due: tg.clock.Now(),
		body: tgUpdate{"update_id": b.nextUpdate, kindMessage: m},
	})
	b.nextUpdate++
	tg.wakeWaiters()
	return true
}

// takeDueUpdatesOf returns the updates of a bot to post now, of each chat one at a time, and how long no other will be. The lock is held.
func (tg *telegram) takeDueUpdatesOf(b *bot, now time.Time) ([]job, time.Duration) {
	next := time.Minute
	if b.Webhook == "" {
		return nil, next
	}
	var jobs []job
	busy := map[string]bool{}
	for _, up := range b.pending {
		if busy[up.chat] {
			continue
		}
		busy[up.chat] = true
		switch wait := up.due.Sub(now); {
		case up.inFlight:
		case wait > 0:
			next = min(next, wait)
		default:
			up.inFlight = true
			up.attempt++
			jobs = append(jobs, tg.newUpdateJob(b, up))
		}
	}
	return jobs, next
}

func (tg *telegram) newUpdateJob(b *bot, up *update) job {
	h := http.Header{"Content-Type": {"application/json"}}
	if b.secret != "" {
		h.Set(secretHeader, b.secret)
	}
	return job{
		platform: onTelegram, account: b.Username, url: b.Webhook, header: h, body: encodePlain(up.body), attempt: up.attempt,
		finish: func(r result) time.Time { return tg.finishUpdate(b, up, r) },
	}
}

// finishUpdate forgets an update that was taken: by any 2xx. The lock is held.
func (tg *telegram) finishUpdate(b *bot, up *update, r result) time.Time {
	up.inFlight = false
	switch {
	case r.ok():
		b.removeTaken(up, r)
		return time.Time{}
	case up.attempt >= attempts:
		b.removePending(up)
		up.line.setState(stateFailed, r)
		return time.Time{}
	}
	b.lastFailed, b.lastError = tg.clock.Now(), "Wrong response from the webhook: "+strconv.Itoa(r.status)+" "+http.StatusText(r.status)
	if r.status == 0 {
		b.lastError = "Connection failed"
	}
	up.due = tg.clock.Now().Add(max(retryDelay(tg.retry, up.attempt), r.retryAfter))
	up.line.setState(stateWaiting, r)
	return up.due
}

// removeTaken removes an update that was taken.
func (b *bot) removeTaken(up *update, r result) {
	b.removePending(up)
	up.line.setState(stateDelivered, r)
}

func (b *bot) removePending(up *update) {
	if i := slices.Index(b.pending, up); i >= 0 {
		b.pending = slices.Delete(b.pending, i, i+1)
	}
}

// endPoll ends the poll that is held, if one is. The lock is held.
func (tg *telegram) endPoll(b *bot, why string) {
	if b.poll != nil {
		close(b.poll)
		b.poll, b.pollEnd = nil, why
		tg.wakeWaiters()
	}
}

// writeToBot sends a text to a bot. The lock is held.
func (tg *telegram) writeToBot(u *user, c *chat, l *line, forwarded bool) {
	m := u.telegramText(c, l.Text, l.At)
	if forwarded {
		m.ForwardOrigin = &tgOrigin{"user", *m.From, m.Date}
	}
	tg.queueMessage(c, m, l)
}

// shareWithBot presses the button of request_contact. The lock is held.
func (tg *telegram) shareWithBot(u *user, c *chat, l *line) {
	m := u.telegramContact(c, l.At)
	if id, err := strconv.ParseInt(c.promptID, 10, 64); err == nil {
		m = m.inReplyTo(c.bot, id, c.promptAt.Unix())
	}
	tg.queueMessage(c, m, l)
}

func (tg *telegram) queueMessage(c *chat, m tgMessage, l *line) {
	l.ID = strconv.FormatInt(m.ID, 10)
	if !tg.addUpdate(c.bot, m, l) {
		l.State = stateNowhere
	}
}
