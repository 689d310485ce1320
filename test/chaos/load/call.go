package load

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// maxAnswer is larger than any answer.
const maxAnswer = 64 << 10

// sendRequest sends a request and returns the answer's status and body; status 0 if no complete answer came.
func (l *Load) sendRequest(ctx context.Context, method, to string, header http.Header, body string) (int, []byte) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+to, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header = header
	response, err := l.http.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

// startVerification starts a user's verification.
func (l *Load) startVerification(ctx context.Context, replica string, u *user) bool {
	header := http.Header{
		"Authorization": {"Bearer " + u.apiKey}, "Content-Type": {"application/json"}, "Idempotency-Key": {u.key},
	}
	asked := time.Now()
	status, body := l.sendRequest(ctx, http.MethodPost, replica+"/api/verify/init", header,
		u.initBody())
	if status == http.StatusUnauthorized {
		l.unauthorized.Add(1)
	}
	var answer struct {
		RequestID    string    `json:"requestId"`
		ExpectedText string    `json:"expectedText"`
		ExpiresAt    time.Time `json:"expiresAt"`
	}
	if status != http.StatusOK || json.Unmarshal(body, &answer) != nil {
		return false
	}
	u.id, u.text, u.expires = answer.RequestID, answer.ExpectedText, answer.ExpiresAt
	words := strings.Fields(answer.ExpectedText)
	l.recordError(l.Clients.Append(ledger.Ack{
		Asked: asked, At: time.Now(), Key: u.key, ID: u.id, Phone: u.phone, Number: u.number, Method: u.method,
		Code: words[len(words)-1], Fate: u.fate, Expires: u.expires, Session: u.session,
	}))
	return true
}

// queryStatus queries the status of a verification and records the answer.
func (l *Load) queryStatus(ctx context.Context, replica, id, wait string) {
	query := url.Values{"id": {id}}
	if wait != "" {
		query.Set("wait", wait)
	}
	asked := time.Now()
	status, body := l.sendRequest(ctx, http.MethodGet, replica+"/api/verify/status?"+query.Encode(),
		http.Header{"Authorization": {"Bearer " + l.Key()}}, "")
	var answer struct {
		Status    string    `json:"status"`
		Phone     string    `json:"phoneNumber"`
		Actual    string    `json:"actualPhoneNumber"`
		Assurance string    `json:"assurance"`
		Expires   time.Time `json:"expiresAt"`
		Verified  time.Time `json:"verifiedAt"`
	}
	switch {
	case status == http.StatusNotFound:
		answer.Status = "404"
	case status != http.StatusOK || json.Unmarshal(body, &answer) != nil:
		return
	}
	l.recordError(l.Statuses.Note(ledger.Status{
		Facts: ledger.Facts{Phone: answer.Phone, Actual: answer.Actual, Assurance: answer.Assurance, Verified: answer.Verified},
		Asked: asked, At: time.Now(), ID: id, Status: answer.Status, Expires: answer.Expires,
	}))
}

// postWebhook sends a messenger's signed webhook once and records the answer.
func (l *Load) postWebhook(ctx context.Context, replica string, m system.Message, messages ...ledger.Message) bool {
	asked := time.Now()
	status, _ := l.sendRequest(ctx, http.MethodPost, replica+m.Path, m.Header, string(m.Body))
	record := ledger.Inbound{Asked: asked, At: time.Now(), Answer: status, Signed: true, Messages: messages}
	if status != http.StatusOK {
		l.recordError(l.Inbound.Note(record))
		return false
	}
	l.recordError(l.Inbound.Append(record))
	return true
}
