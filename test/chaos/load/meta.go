package load

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/system"
)

// maxBatch is the most users' messages in one webhook.
const maxBatch = 10

// pendingMessage is a message that waits for its webhook.
type pendingMessage struct {
	from         *user
	sent         time.Time
	acknowledged chan struct{}
}

// meta puts messages of several users into one webhook, in any order, among statuses and malformed messages.
type meta struct {
	load    *Load
	pending chan pendingMessage
}

func newMeta(l *Load) *meta { return &meta{load: l, pending: make(chan pendingMessage, maxBatch)} }

// sendMessage returns when the webhook with the message was acknowledged.
func (m *meta) sendMessage(ctx context.Context, u *user, sent time.Time) bool {
	l := pendingMessage{from: u, sent: sent, acknowledged: make(chan struct{})}
	select {
	case m.pending <- l:
	case <-ctx.Done():
		return false
	}
	select {
	case <-l.acknowledged:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *meta) run(ctx context.Context) {
	for {
		var batch []pendingMessage
		select {
		case <-ctx.Done():
			return
		case l := <-m.pending:
			batch = append(batch, l)
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case l := <-m.pending:
				batch = append(batch, l)
			default:
				more = false
			}
		}
		rand.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		message, proofs := m.newWebhook(batch)
		m.load.retryUntilDone(ctx, func(replica string) bool { return m.load.postWebhook(ctx, replica, message, proofs...) })
		for _, l := range batch {
			close(l.acknowledged)
		}
	}
}

// newWebhook returns one webhook with all messages, in two entries, among changes that are not for PhoneProof.
func (m *meta) newWebhook(batch []pendingMessage) (system.Message, []ledger.Message) {
	p := m.load.Project
	value := func(content string) string {
		return fmt.Sprintf(`{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"4915113000000",`+
			`"phone_number_id":%q},%s}}`, p.PhoneNumberID, content)
	}
	odd := []string{
		value(`"messages":[{"from":17,"id":{},"timestamp":[],"type":"text"}]`),
		value(`"statuses":[{"id":"wamid.sent","status":"delivered","timestamp":"1","recipient_id":"1"}]`),
		value(`"messages":[{"from":"491521","id":"wamid.x","timestamp":"1","type":"unsupported","errors":[{"code":131051}]}]`),
		`{"field":"account_update","value":{"event":"VERIFIED_ACCOUNT"}}`,
	}
	changes := []string{odd[rand.N(len(odd))]}
	var proofs []ledger.Message
	for _, l := range batch {
		text, err := json.Marshal(l.from.text)
		if err != nil {
			panic(err) // a string can always be encoded
		}
		changes = append(changes, value(fmt.Sprintf(`"contacts":[{"profile":{"name":"Ada"},"wa_id":%q}],`+
			`"messages":[{"from":%q,"id":%q,"timestamp":"%d","type":"text","text":{"body":%s}}]`,
			l.from.number[1:], l.from.number[1:], "wamid."+l.from.messageID(), l.sent.Unix(), text)))
		proofs = append(proofs, l.from.proofMessage(l.from.messageID()))
	}
	rand.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	half := len(changes) / 2
	body := fmt.Sprintf(`{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[%s]},{"id":"2","changes":[%s]}]}`,
		strings.Join(changes[:half], ","), strings.Join(changes[half:], ","))
	mac := hmac.New(sha256.New, []byte(p.AppSecret))
	mac.Write([]byte(body))
	return system.Message{Path: system.WhatsAppPath, Body: []byte(body), Header: http.Header{
		"Content-Type": {"application/json"}, "X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
	}}, proofs
}
