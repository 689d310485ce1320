package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// confirmRequest enters the session code that the user received, if the user's fate is to do so. The proof was acknowledged, so the
// user has the code: the judge reports an empty one.
func (l *Load) confirmRequest(ctx context.Context, u *user) {
	digits := l.Platform.lastDigits(u.recipient())
	if u.drawBool(0.3) { // the user reads the message, and replicas are killed meanwhile
		sleep(ctx, u.drawBetween(0, 4*time.Second))
	}
	switch u.fate {
	case ledger.Proven:
		l.retryUntilDone(ctx, func(replica string) bool { return l.enterCode(ctx, replica, u.id, digits, true) })
		l.confirmed.Add(1)
	case ledger.WrongCodes:
		for n := range verification.MaxConfirmTries {
			wrong := changeDigits(digits, n+1)
			l.retryUntilDone(ctx, func(replica string) bool { return l.enterCode(ctx, replica, u.id, wrong, false) })
		}
		l.retryUntilDone(ctx, func(replica string) bool { return l.enterCode(ctx, replica, u.id, digits, true) })
	case ledger.Unconfirmed, ledger.Unproven, ledger.WrongSender, ledger.Forged:
	}
}

// recipient returns the address that messages to the user have.
func (u *user) recipient() string {
	if u.method == "TELEGRAM" {
		return strconv.FormatInt(10_000_000+u.n, 10)
	}
	return u.number[1:]
}

// changeDigits returns another code of six digits.
func changeDigits(digits string, by int) string {
	code, err := strconv.Atoi(digits)
	if err != nil {
		return digits
	}
	return fmt.Sprintf("%06d", (code+by)%1_000_000)
}

// enterCode enters a session code once and records the answer. It reports whether the answer is final.
func (l *Load) enterCode(ctx context.Context, replica, id, code string, right bool) bool {
	header := http.Header{"Authorization": {"Bearer " + l.Key()}, "Content-Type": {"application/json"}}
	asked := time.Now()
	sent := fmt.Sprintf(`{"requestId":%q,"code":%q}`, id, code)
	status, body := l.sendRequest(ctx, http.MethodPost, replica+"/api/verify/confirm", header, sent)
	if !json.Valid(body) {
		status = 0
	}
	record := ledger.Confirm{Asked: asked, At: time.Now(), ID: id, Right: right, Answer: status, Error: readErrorCode(body)}
	switch status {
	case http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity:
		l.recordError(l.Confirms.Append(record))
		return true
	default:
		l.recordError(l.Confirms.Note(record))
		return false
	}
}

// readErrorCode returns the code of an answer of the API; empty if it has none.
func readErrorCode(body []byte) string {
	var answer struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // else it stays empty
	return answer.Error.Code
}
