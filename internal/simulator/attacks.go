package simulator

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Attack is a way to prove a number that is not one's own, or to harm those who verify. None may succeed.
type Attack struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	// Summary says what the user does.
	Summary string `json:"summary"`
	// Expect is the status that a sound server answers: 401 or 403 if it can recognize that the platform did not send it, else
	// 200, because the platform would only send it again.
	Expect int `json:"expect"`
	// Honest is true if it holds a genuine message too, which must count all the same.
	Honest bool `json:"honest,omitempty"`
	// Asks is true if a sound server asks the owner of the sending phone for a confirmation, and notes that it did.
	Asks bool `json:"asks,omitempty"`
	// Needs is what must have come before; empty for nothing.
	Needs string `json:"needs,omitempty"`

	// forge returns the requests to post, in their order. It is called with the simulator's lock held.
	forge func(*assault) ([]job, *failure)
}

// What an attack needs before it.
const (
	// needsMessage is a message of the user that the server took, for the attack to repeat.
	needsMessage = "message"
	// needsQuestion is a question with a button that the business sent to the number of the victim.
	needsQuestion = "question"
	// needsEcho is an echo: a question with two buttons that the business sent to the number that someone claims.
	needsEcho = "echo"
	// needsOtherEcho is a second echo, to another number; needsOlderEcho one to the same number before it.
	needsOtherEcho = "otherEcho"
	needsOlderEcho = "olderEcho"
	// needsEchoTap is a tap on an echo that the server took.
	needsEchoTap = "echoTap"
)

// Attacks returns all of them.
func Attacks() []Attack {
	return append(whatsAppAttacks(), telegramAttacks()...)
}

// assault is an attack at work.
type assault struct {
	*Attack

	in   *attacker
	user *user
	chat *chat
	// text is what the link would have its user send, victim the number that the attacker claims.
	text   string
	victim string
	now    time.Time
	// queued is how many updates wait for getUpdates, which delivers them in the place of requests.
	queued int
}

// shot is what came of a part of an attack.
type shot struct {
	// Status is what the server answered; 0 if it was queued for getUpdates, or if nothing was answered.
	Status int    `json:"status"`
	Queued bool   `json:"queued,omitempty"`
	Error  string `json:"error,omitempty"`
}

// attacker has users misbehave.
type attacker struct {
	*hub

	phones   *phones
	telegram *telegram
}

// runAttack has a user misbehave with a link. It posts at once, and once.
func (a *attacker) runAttack(ctx context.Context, ref, name, link, victim string) ([]shot, *failure) {
	to, f := parseLink(link)
	if f != nil {
		return nil, f
	}
	all := Attacks()
	i := slices.IndexFunc(all, func(a Attack) bool { return a.Name == name && a.Platform == to.platform })
	if i < 0 {
		return nil, &failure{http.StatusNotFound, "unknown_attack", "", "that messenger has no such attack; GET /sim/attacks lists them"}
	}
	on := &assault{Attack: &all[i], in: a, text: to.draft, victim: victim, now: a.clock.Now()}
	jobs, f := on.forgeJobs(ref, to)
	if f != nil {
		return nil, f
	}
	shots := make([]shot, 0, len(jobs)+on.queued)
	for range on.queued {
		shots = append(shots, shot{Queued: true})
	}
	for _, j := range jobs {
		j.attack = name
		r := a.postWebhook(ctx, j)
		shots = append(shots, shot{Status: r.status, Error: r.failed})
	}
	return shots, nil
}

// forgeJobs forges what is to be posted, and shows it in the chat.
func (a *assault) forgeJobs(ref string, to target) ([]job, *failure) {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	if f := a.findTargets(ref, to); f != nil {
		return nil, f
	}
	jobs, f := a.forge(a)
	if f != nil {
		return nil, f
	}
	a.chat.noteWritten(a.user, a.now)
	a.chat.addLine(&line{From: fromUser, At: a.now.UTC(), Text: a.Summary, Attack: a.Name})
	a.in.publish(event{Type: "attack", User: a.user.ID, Chat: a.chat.ID, Platform: a.Platform, Attack: a.Name})
	return jobs, nil
}

func (a *assault) findTargets(ref string, to target) *failure {
	var f *failure
	if a.user, f = a.in.phones.findUser(ref); f != nil {
		return f
	}
	if a.chat, f = a.in.phones.chatWith(a.user, to); f != nil {
		return f
	}
	if a.victim == "" {
		a.victim = a.user.Phone
	}
	if !e164.MatchString(a.victim) {
		return badRequest("phone", "want the number in E.164, as +4915112345678")
	}
	if b := a.chat.business; b != nil && (b.callbackURL() == "" || b.secret() == "") {
		return noCallback("no callback is registered for that account")
	}
	return nil
}

func noCallback(message string) *failure {
	return &failure{http.StatusConflict, "no_callback", "link", message}
}

func nothingCaptured() *failure {
	return &failure{http.StatusConflict, "nothing_captured", "", "no webhook of that user was taken yet, so there is nothing to replay"}
}

func (a *assault) victimDigits() string { return strings.TrimPrefix(a.victim, "+") }
