package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Desk is the part of the platform that takes codes: it appends each to a ledger before it answers. All fields are set before the first.
type Desk struct {
	Codes *ledger.Writer
	// Stored reports whether the store has a request at this moment.
	Stored func(ctx context.Context, id string) (bool, error)
	// Caller names the process that calls from an address.
	Caller func(address string) string

	calm chan struct{} // closed when no answer is held any more

	mu       sync.Mutex
	plans    map[string]plan
	digits   map[string]string
	checked  map[string]bool // by Telegram's id of the code
	inFlight int
	err      error
}

// plan is what becomes of the code of one number.
type plan struct {
	answer ledger.CodeAnswer
	hold   time.Duration
	// received is called when the code is in the ledger, with its request and the name of its sender; nil calls nothing.
	received func(request, sender string)
}

// planCode decides what becomes of the code of a number, before it is asked for.
func (d *Desk) planCode(number string, p plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.plans == nil {
		d.plans, d.digits, d.checked = map[string]plan{}, map[string]string{}, map[string]bool{}
	}
	d.plans[number] = p
}

// digitsOf returns the digits that were delivered to a number; empty if none were.
func (d *Desk) digitsOf(number string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.digits[number]
}

// InFlight returns how many codes wait for their answer.
func (d *Desk) InFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inFlight
}

// Err returns what kept codes from being recorded: then the run proves nothing.
func (d *Desk) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// gatewayCall is the body of a call of Telegram's Gateway, whose request_id is "gw" and the request.
type gatewayCall struct {
	Number    string `json:"phone_number"`
	Code      string `json:"code"`
	Payload   string `json:"payload"`
	RequestID string `json:"request_id"`
}

// gatewayAnswer is the RequestStatus of a code.
const gatewayAnswer = `{"ok":true,"result":{"request_id":"gw%s","phone_number":%q,"request_cost":0.01,"remaining_balance":5}}`

// serveGateway takes a code for Telegram, or the one check of it, and reports whether the call was of the Gateway.
func (d *Desk) serveGateway(w http.ResponseWriter, r *http.Request, body []byte) bool {
	var c gatewayCall
	switch _ = json.Unmarshal(body, &c); r.URL.Path {
	case "/sendVerificationMessage":
		var err error
		if len(c.Code) != 8 {
			err = fmt.Errorf("the code of %s has %d digits", c.Payload, len(c.Code))
		}
		d.takeCode(r, ledger.Code{At: time.Now(), Request: c.Payload, Number: c.Number, Digits: c.Code}, err, func(answer ledger.CodeAnswer) {
			answerGateway(w, answer, c)
		})
	case "/checkVerificationStatus":
		d.recordCheck(c.RequestID)
		_, _ = fmt.Fprintf(w, gatewayAnswer, strings.TrimPrefix(c.RequestID, "gw"), "")
	default:
		return false
	}
	return true
}

// CountChecks returns how many codes through Telegram were checked.
func (d *Desk) CountChecks() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.checked)
}

// recordCheck records a check of a code, of which there must be one at most.
func (d *Desk) recordCheck(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.checked[id] && d.err == nil {
		d.err = fmt.Errorf("the code %s was checked twice", id)
	}
	d.checked[id] = true
}

// answerGateway answers as Telegram's Gateway does.
func answerGateway(w http.ResponseWriter, answer ledger.CodeAnswer, c gatewayCall) {
	switch answer {
	case ledger.CodeRefusedNumber:
		_, _ = io.WriteString(w, `{"ok":false,"error":"PHONE_NUMBER_NOT_FOUND"}`)
	case ledger.CodeRefusedTemplate:
		_, _ = io.WriteString(w, `{"ok":false,"error":"ACCESS_TOKEN_INVALID"}`)
	case ledger.CodeLost, ledger.CodeKilled:
		panic(http.ErrAbortHandler)
	case ledger.CodeAccepted:
		_, _ = fmt.Fprintf(w, gatewayAnswer, c.Payload, c.Number)
	}
}

// codeCall is the body of a call that sends a template.
type codeCall struct {
	To        string `json:"to"`
	Type      string `json:"type"`
	Reference string `json:"biz_opaque_callback_data"`
	Template  struct {
		Components []struct {
			Parameters []struct {
				Text string `json:"text"`
			} `json:"parameters"`
		} `json:"components"`
	} `json:"template"`
}

// readCode returns what a call sends to a number; an error if it is not complete.
func (c *codeCall) readCode() (ledger.Code, error) {
	code := ledger.Code{At: time.Now(), Number: "+" + c.To}
	parts := strings.Split(c.Reference, ":")
	if len(parts) != 3 || parts[0] != "code" {
		return code, fmt.Errorf("a code has the reference %q", c.Reference)
	}
	code.Request = parts[1]
	for _, component := range c.Template.Components {
		for _, p := range component.Parameters {
			if code.Digits != "" && code.Digits != p.Text {
				return code, fmt.Errorf("the code of %s is not the same in its parts", code.Request)
			}
			code.Digits = p.Text
		}
	}
	if len(code.Digits) != 8 {
		return code, fmt.Errorf("the code of %s has %d digits", code.Request, len(code.Digits))
	}
	return code, nil
}

// serve takes a code, and reports whether the call sent one.
func (d *Desk) serve(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if d.serveGateway(w, r, body) {
		return true
	}
	var c codeCall
	if json.Unmarshal(body, &c) != nil || c.Type != "template" {
		return false
	}
	code, err := c.readCode()
	d.takeCode(r, code, err, func(answer ledger.CodeAnswer) { answerCode(w, answer, c.To) })
	return true
}

// takeCode takes a code as it was planned for its number, and answers; it does not with an err, when the code is not complete.
func (d *Desk) takeCode(r *http.Request, code ledger.Code, err error, answer func(ledger.CodeAnswer)) {
	p := d.begin(code.Number)
	defer d.end(&err)
	if err != nil {
		return
	}
	code.Answer = p.answer
	if code.Stored, err = d.Stored(context.WithoutCancel(r.Context()), code.Request); err != nil {
		return
	}
	if err = d.Codes.Append(code); err != nil {
		return
	}
	if p.answer.Accepted() {
		d.deliver(code)
	}
	if p.received != nil {
		p.received(code.Request, d.Caller(r.RemoteAddr))
	}
	d.hold(r.Context(), p.hold)
	answer(p.answer)
}

// Calm ends the wait of all answers, and of those that come.
func (d *Desk) Calm() { close(d.calm) }

// hold waits before an answer.
func (d *Desk) hold(ctx context.Context, length time.Duration) {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-d.calm:
	case <-timer.C:
	}
}

func (d *Desk) begin(number string) plan {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight++
	return d.plans[number]
}

func (d *Desk) end(err *error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inFlight--
	if *err != nil && d.err == nil {
		d.err = fmt.Errorf("record a code: %w", *err)
	}
}

func (d *Desk) deliver(code ledger.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.digits[code.Number] = code.Digits
}

// answerCode answers as Meta does.
func answerCode(w http.ResponseWriter, answer ledger.CodeAnswer, to string) {
	refuse := func(code int, message string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"(#%d) %s","type":"OAuthException","code":%d,"fbtrace_id":"A"}}`, code, message, code)
	}
	switch answer {
	case ledger.CodeRefusedNumber:
		refuse(131026, "Message undeliverable")
	case ledger.CodeRefusedTemplate:
		refuse(132001, "Template name does not exist in the translation")
	case ledger.CodeLost, ledger.CodeKilled:
		panic(http.ErrAbortHandler)
	case ledger.CodeAccepted:
		_, _ = fmt.Fprintf(w, `{"messaging_product":"whatsapp","contacts":[{"input":%[1]q,"wa_id":%[1]q}],"messages":[{"id":"wamid.code"}]}`, to)
	}
}
