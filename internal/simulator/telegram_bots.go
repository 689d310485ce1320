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
	// captured is the last update that was taken, of each user: what a thief of it could post again.
	captured map[string][]byte
}

// update waits until it is confirmed, or taken by the webhook.
type update struct {
	id       int64
	kind     string
	chat     string // updates of a chat are posted one after the other
	body     tgUpdate
	user     *user
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

// add queues an update. Those of kinds that the bot does not want are left out, unless they were queued before it said so,
// which is what force stands for. The lock is held.
func (tg *telegram) addUpdate(b *bot, kind string, m tgMessage, u *user, l *line, force bool) *update {
	if !force && b.allowed != nil && !slices.Contains(b.allowed, kind) || len(b.pending) >= maxUpdates {
		return nil
	}
	up := &update{
		id: b.nextUpdate, kind: kind, chat: strconv.FormatInt(m.Chat.ID, 10), user: u, line: l, due: tg.clock.Now(),
		body: tgUpdate{"update_id": b.nextUpdate, kind: m},
	}
	b.nextUpdate++
	b.pending = append(b.pending, up)
	tg.wakeWaiters()
	return up
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
			j := b.newJob(encodePlain(up.body), b.secret)
			j.attempt = up.attempt
			j.finish = func(r result) time.Time { return tg.finishUpdate(b, up, r) }
			jobs = append(jobs, j)
		}
	}
	return jobs, next
}

// newJob returns a webhook request with a secret; none if that is empty.
func (b *bot) newJob(body []byte, secret string) job {
	h := http.Header{"Content-Type": {"application/json"}}
	if secret != "" {
		h.Set(secretHeader, secret)
	}
	return job{platform: onTelegram, account: b.Username, url: b.Webhook, header: h, body: body, attempt: 1}
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
	if up.user != nil && up.line != nil {
		b.captured[up.user.ID] = encodePlain(up.body)
	}
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
func (tg *telegram) writeToBot(u *user, c *chat, l *line) {
	tg.queueMessage(u, c, u.telegramText(c, l.Text, l.At), l)
}

// shareWithBot presses the button of request_contact. The lock is held.
func (tg *telegram) shareWithBot(u *user, c *chat, l *line) {
	m := u.telegramContact(c, l.At)
	if id, err := strconv.ParseInt(c.promptID, 10, 64); err == nil {
		m = m.inReplyTo(c.bot, id, c.promptAt.Unix())
	}
	tg.queueMessage(u, c, m, l)
}

func (tg *telegram) queueMessage(u *user, c *chat, m tgMessage, l *line) {
	l.ID = strconv.FormatInt(m.ID, 10)
	if tg.addUpdate(c.bot, kindMessage, m, u, l, false) == nil {
		l.State = stateNowhere
	}
}
