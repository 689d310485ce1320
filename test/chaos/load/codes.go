package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

const (
	// codeWorkers is the number of clients that ask for codes at a time: as many more may be in flight than are wanted.
	codeWorkers = 16
	// codesAtOnce is how many codes are wanted in flight, and roomWait how often a client looks whether fewer are.
	codesAtOnce = 65
	roomWait    = 20 * time.Millisecond
	// digitsWait is how long a user waits for a code.
	digitsWait = 3 * time.Second
)

// CodeUser is a user whose number is verified by a code that is sent to it.
type CodeUser struct {
	// Number is the user's own.
	Number string
	// Gate keeps the user from entering the digits until it is closed; nil is open.
	Gate chan struct{}

	n      int64
	method string
	random *rand.Rand
	plan   plan
	fate   ledger.Fate
	key    string
	id     string
}

// newCodeUser draws a user: the same one for the same seed and number.
func (l *Load) newCodeUser() *CodeUser {
	n := l.codes.next.Add(1)
	u := &CodeUser{
		Number: fmt.Sprintf("+49171%07d", n), n: n, random: rand.New(rand.NewPCG(l.Seed, uint64(n)<<32)),
		method: [...]string{"WHATSAPP", "TELEGRAM"}[n%2], fate: ledger.Proven, key: fmt.Sprintf("code-%d-%d", l.Seed, n),
	}
	switch drawn := u.random.Float64(); {
	case drawn < 0.15:
		u.fate = ledger.Unconfirmed
	case drawn < 0.3:
		u.fate = ledger.WrongCodes
	}
	answers := []ledger.CodeAnswer{ledger.CodeLost, ledger.CodeRefusedNumber, ledger.CodeRefusedTemplate}
	u.plan = plan{answer: ledger.CodeAccepted, hold: 3*time.Second + time.Duration(u.random.Int64N(int64(5*time.Second)))}
	if n%8 == 1 {
		u.plan.hold = 0 // so that Telegram's code is entered after the answer, and checked
	}
	if drawn := u.random.IntN(3 * len(answers)); drawn < len(answers) {
		u.plan.answer = answers[drawn]
	}
	return u
}

// NewMarked returns a user, of Telegram or WhatsApp, who is played by PlayMarked. received is called when the platform has the code, with
// its request and the name of its sender, before it answers; with lost it never answers.
func (l *Load) NewMarked(telegram, lost bool, received func(request, sender string)) *CodeUser {
	u := l.newCodeUser()
	u.method = map[bool]string{false: "WHATSAPP", true: "TELEGRAM"}[telegram]
	u.fate, u.Gate, u.plan = ledger.Proven, make(chan struct{}), plan{answer: ledger.CodeAccepted, received: received}
	if lost {
		u.plan.answer = ledger.CodeKilled
	}
	return u
}

// codes is the state of the part of the load that asks for codes.
type codes struct {
	next    atomic.Int64 // the number of the last user
	running sync.WaitGroup
}

// RunCodes plays users so that enough codes are in flight, until stop is closed. Then it completes what has begun.
func (l *Load) RunCodes(ctx context.Context, stop <-chan struct{}) error {
	beginning, last := context.WithCancel(ctx)
	l.codes.running.Go(func() {
		defer last()
		select {
		case <-stop:
		case <-ctx.Done():
		}
	})
	for range codeWorkers {
		l.codes.running.Go(func() {
			for beginning.Err() == nil {
				if l.Platform.Desk.InFlight() < codesAtOnce {
					l.playCode(ctx, l.newCodeUser())
				}
				sleep(beginning, roomWait)
			}
		})
	}
	l.codes.running.Wait()
	return errors.Join(ctx.Err(), l.Platform.Desk.Err())
}

// PlayMarked plays a user beside the others. It must be called before RunCodes ends.
func (l *Load) PlayMarked(ctx context.Context, u *CodeUser) {
	l.codes.running.Go(func() { l.playCode(ctx, u) })
}

// playCode asks for a code, and has the rest of its verification played beside that.
func (l *Load) playCode(ctx context.Context, u *CodeUser) {
	l.Platform.Desk.planCode(u.Number, u.plan)
	if !l.retryUntilDone(ctx, func(replica string) bool { return l.askForCode(ctx, replica, u) }) || u.id == "" {
		return
	}
	l.codes.running.Go(func() { l.completeCode(ctx, u) })
}

// completeCode plays a verification from the answer of init on.
func (l *Load) completeCode(ctx context.Context, u *CodeUser) {
	if u.random.IntN(4) == 0 { // a client that did not get the answer
		l.retryUntilDone(ctx, func(replica string) bool { return l.askForCode(ctx, replica, u) })
	}
	if u.Gate != nil {
		<-u.Gate
	}
	digits := l.awaitDigits(ctx, u)
	number, err := strconv.Atoi(digits)
	if err != nil {
		return
	}
	enter := func(code string, right bool) {
		l.retryUntilDone(ctx, func(replica string) bool { return l.enterCode(ctx, replica, u.id, code, right) })
	}
	if u.fate == ledger.WrongCodes {
		for n := range verification.MaxDeliveredTries {
			enter(fmt.Sprintf("%08d", (number+1+n)%100_000_000), false)
		}
	}
	if u.fate == ledger.WrongCodes || u.fate == ledger.Proven {
		enter(digits, true)
	}
}

// askForCode calls init once and records the call. It reports whether the answer is final.
func (l *Load) askForCode(ctx context.Context, replica string, u *CodeUser) bool {
	header := http.Header{
		"Authorization": {"Bearer " + l.Key()}, "Content-Type": {"application/json"}, "Idempotency-Key": {u.key},
	}
	try := ledger.Try{Asked: time.Now(), Key: u.key, Replica: replica}
	body := fmt.Sprintf(`{"phoneNumber":%q,"method":%q,"deliver":"CODE","subject":"user-%d"}`, u.Number, u.method, u.n)
	status, content := l.sendRequest(ctx, http.MethodPost, replica+"/api/verify/init", header, body)
	try.At, try.Answer = time.Now(), status
	l.recordError(l.Tries.Append(try))
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		l.recordError(fmt.Errorf("a code was refused: %d %s", status, content))
		return true
	}
	var answer struct {
		RequestID    string    `json:"requestId"`
		ExpectedText string    `json:"expectedText"`
		ExpiresAt    time.Time `json:"expiresAt"`
		CodeLength   int       `json:"codeLength"`
	}
	if status != http.StatusOK || json.Unmarshal(content, &answer) != nil {
		return false
	}
	if answer.CodeLength != 8 {
		l.recordError(fmt.Errorf("init with a code was answered with the codeLength %d", answer.CodeLength))
	}
	if u.id == "" {
		l.recent.add(answer.RequestID)
	}
	u.id = answer.RequestID
	words := strings.Fields(answer.ExpectedText)
	l.recordError(l.Clients.Append(ledger.Ack{
		Asked: try.Asked, At: try.At, Key: u.key, ID: u.id, Phone: u.Number, Number: u.Number, Method: u.method,
		Code: words[len(words)-1], Fate: u.fate, Expires: answer.ExpiresAt, Session: true,
	}))
	return true
}

// awaitDigits returns the digits that were sent to a user; empty if none were in time.
func (l *Load) awaitDigits(ctx context.Context, u *CodeUser) string {
	for end := time.Now().Add(digitsWait); time.Now().Before(end) && ctx.Err() == nil; sleep(ctx, 20*time.Millisecond) {
		if digits := l.Platform.Desk.digitsOf(u.Number); digits != "" {
			return digits
		}
	}
	return ""
}
