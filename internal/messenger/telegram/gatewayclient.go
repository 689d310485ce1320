package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/phoneproof/phoneproof/internal/messenger"
	"github.com/phoneproof/phoneproof/internal/phone"
	"github.com/phoneproof/phoneproof/internal/settings"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// DefaultGatewayURL is where Telegram's Gateway is, which sends codes to numbers (core.telegram.org/gateway/api).
const DefaultGatewayURL = "https://gatewayapi.telegram.org"

// The methods of the Gateway that are called.
const (
	methodSendVerification = "sendVerificationMessage"
	methodCheckStatus      = "checkVerificationStatus"
)

// GatewayClient calls the Gateway. It is safe for concurrent use.
type GatewayClient struct{ platform *messenger.Platform }

// NewGatewayClient returns a client, or an error about its URLs. A real token goes over TLS, except to this machine.
func NewGatewayClient(o ClientOptions) (*GatewayClient, error) {
	platform, err := messenger.NewPlatform(messenger.PlatformOptions{
		URL: cmp.Or(o.BaseURL, DefaultGatewayURL), SimulatorURL: o.SimulatorURL, TLS: true, Transport: o.Transport,
		MaxConns: 2 * messenger.MaxCodesInFlight, MaxIdleConns: messenger.ReplyWorkers,
		Recorder: o.Metrics.Recorder(verification.Telegram, methodSendVerification, methodCheckStatus),
	})
	if err != nil {
		return nil, fmt.Errorf("create client of the Gateway: %w", err)
	}
	return &GatewayClient{platform}, nil
}

// gatewayMessage are the parameters of sendVerificationMessage. There is no callback_url: reports would say who has Telegram.
type gatewayMessage struct {
	PhoneNumber    string `json:"phone_number"`
	Code           string `json:"code"`
	SenderUsername string `json:"sender_username,omitempty"`
	// Payload is the id of the request, which the Gateway shows to its account's owner alone.
	Payload string `json:"payload"`
	// TTL is after how many seconds an undelivered code is given up, and refunded: 30 to 3600.
	TTL int64 `json:"ttl"`
}

// gatewayCheck are the parameters of checkVerificationStatus.
type gatewayCheck struct {
	RequestID string `json:"request_id"`
	// Code is the one that the user entered; empty if they entered none.
	Code string `json:"code,omitempty"`
}

// gatewayStatus is a RequestStatus, as far as it is used.
type gatewayStatus struct {
	RequestID   string `json:"request_id"`
	PhoneNumber string `json:"phone_number"`
	// Cost and Balance are in US dollars; Balance is nil if the answer has none.
	Cost       float64  `json:"request_cost"`
	IsRefunded bool     `json:"is_refunded"`
	Balance    *float64 `json:"remaining_balance"`
}

// parseRecipient returns the number that the code goes to; zero if the answer names none.
func (s gatewayStatus) parseRecipient() phone.Number {
	number, err := phone.ParseTelegram(s.PhoneNumber)
	if err != nil {
		return phone.Number{}
	}
	return number
}

// GatewayError is a failed call of the Gateway. It never holds the token, nor text of the answer beyond Code.
type GatewayError struct {
	messenger.CallError

	// Code is the Gateway's word, such as ACCESS_TOKEN_INVALID; empty without an answer of the Gateway.
	Code string
}

// Error describes the failure without the answer's text.
func (e *GatewayError) Error() string { return "Telegram Gateway: " + string(e.Class) }

// callMethod makes one call, which is never repeated. Its errors are *GatewayError, or are about why no call was made.
func (c *GatewayClient) callMethod(ctx context.Context, codes *settings.GatewayCodes, method string, in any) (gatewayStatus, error) {
	token := codes.Token.Current()
	if len(token) == 0 {
		return gatewayStatus{}, &GatewayError{CallError: messenger.CallError{Class: messenger.CallCredentials, Unsent: true}}
	}
	base, err := c.platform.BaseURL(token, codes.Simulated)
	if err != nil {
		return gatewayStatus{}, fmt.Errorf("choose Gateway: %w", err)
	}
	var status gatewayStatus
	err = c.platform.Do(ctx, messenger.Call{
		Operation: method, Method: http.MethodPost, URL: base + "/" + method, Body: in, Timeout: callTimeout, MaxBytes: maxAnswerBytes,
		Header: http.Header{"Authorization": {"Bearer " + string(token)}, "Accept": {"application/json"}},
	}, func(a messenger.Answer) error {
		status, err = readGatewayAnswer(a)
		return err
	})
	return status, err
}

// readGatewayAnswer reads an answer. Its own words count, whatever the status of HTTP is, which a proxy may have changed.
func readGatewayAnswer(a messenger.Answer) (gatewayStatus, error) {
	var answer struct {
		OK     bool           `json:"ok"`
		Result *gatewayStatus `json:"result"`
		Error  string         `json:"error"`
	}
	switch err := json.Unmarshal(a.Body, &answer); {
	case a.Err != nil:
		return gatewayStatus{}, &GatewayError{CallError: messenger.Unanswered(a.Err)}
	case err == nil && answer.OK && answer.Result != nil && answer.Result.RequestID != "":
		return *answer.Result, nil
	case err == nil && !answer.OK && answer.Error != "":
		return gatewayStatus{}, &GatewayError{CallError: messenger.CallError{Class: gatewayFailure(answer.Error)}, Code: answer.Error}
	case a.Status >= http.StatusInternalServerError:
		return gatewayStatus{}, &GatewayError{CallError: messenger.CallError{Class: messenger.CallPlatformError}}
	default:
		return gatewayStatus{}, &GatewayError{CallError: messenger.CallError{Class: messenger.CallUnreadable}}
	}
}

func gatewayFailure(code string) messenger.CallFailure {
	switch reasonOf(code) {
	case GatewayToken:
		return messenger.CallCredentials
	case reasonFlood:
		return messenger.CallRateLimited
	default:
		return messenger.CallRefused
	}
}

// GatewayAccepts is the state of a Gateway that accepted a code. The others are reasons of refusals that are true of all codes.
const (
	GatewayAccepts = "accepts"
	GatewayToken   = "token"
	GatewayBalance = "balance"
	GatewaySender  = "sender"
)

// The other reasons of codes that the Gateway refuses.
const (
	reasonFlood  = "flood_wait"
	reasonAbsent = "undeliverable"
	reasonOther  = "other"
)

// reasonOf returns the reason of an error's word.
func reasonOf(code string) string {
	for prefix, reason := range map[string]string{
		"ACCESS_TOKEN_": GatewayToken, "BALANCE_NOT_ENOUGH": GatewayBalance, "SENDER_": GatewaySender, "FLOOD_WAIT": reasonFlood,
		"PHONE_NUMBER_": reasonAbsent,
	} {
		if strings.HasPrefix(code, prefix) {
			return reason
		}
	}
	return reasonOther
}

// judgeGateway returns the result of sending a code to the number asked. Its state is empty if that is unknown. A refused token alone is
// NOT_SENT: the Gateway may look up the number before balance and sender, so that these errors, too, would show who has Telegram.
func judgeGateway(err error, answered, asked phone.Number) verification.CodeResult {
	failure, called := errors.AsType[*GatewayError](err)
	switch {
	case err == nil:
		return messenger.NewCodeSent(answered, asked)
	case !called:
		return messenger.NewCodeNotSent(messenger.CodeNotConfigured)
	case failure.Class == messenger.CallCredentials: // also if the secret of the token is gone
		return messenger.NewCodeNotSent(GatewayToken)
	case failure.Unsent:
		return messenger.NewCodeNotSent(messenger.CodeUnreachable)
	case failure.Code == "":
		return verification.CodeResult{Reason: messenger.CodeNoAnswer}
	default:
		return verification.CodeResult{State: verification.CodeSent, Reason: reasonOf(failure.Code)}
	}
}
