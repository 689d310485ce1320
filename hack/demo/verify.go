package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// patience bounds everything that is waited for here.
const patience = time.Minute

// reach makes API and simulator reachable from here, as it works with every cluster.
func (d *demo) reach(ctx context.Context) error {
	for _, service := range []struct {
		name, port, probe string
		url               *string
	}{
		{deployment, ":80", "/openapi.json", &d.api},
		{"simulator", ":8090", "/healthz", &d.sim},
	} {
		var err error
		*service.url, err = d.forward(ctx, d.lost, "--namespace", namespace, "port-forward", "--address", "127.0.0.1",
			"service/"+service.name, service.port)
		if err != nil {
			return err
		}
		if err := d.exchange(ctx, http.MethodGet, *service.url+service.probe, nil, nil); err != nil {
			return err
		}
	}
	args := []string{"--namespace", namespace, "get", "secret", "shop", `--output=go-template={{index .data "api-key" | base64decode}}`}
	d.command("API_KEY=$(" + typed("kubectl", args) + ")")
	var err error
	d.apiKey, err = d.output(ctx, "kubectl", args...)
	return err
}

// started is what the API answers to init.
type started struct {
	RequestID    string `json:"requestId"`
	WaLink       string `json:"waLink,omitempty"`
	TgLink       string `json:"tgLink,omitempty"`
	ExpectedText string `json:"expectedText"`
	ExpiresIn    string `json:"expiresIn"`
}

// verify plays one verification through: the client's backend, its user, the outcome and the webhook.
func (d *demo) verify(ctx context.Context, method string) error {
	number, err := newNumber()
	if err != nil {
		return err
	}
	if err := d.call(ctx, http.MethodPost, d.sim+"/sim/users", map[string]string{"name": "Ada", "phone": number}, nil); err != nil {
		return err
	}
	began := time.Now()
	var request started
	err = d.call(ctx, http.MethodPost, d.api+"/api/verify/init", map[string]string{"phoneNumber": number, "method": method}, &request)
	if err != nil {
		return err
	}
	user := d.sim + "/sim/users/" + number
	link := request.WaLink + request.TgLink // one of them is empty
	if err := d.call(ctx, http.MethodPost, user+"/send", map[string]string{"link": link}, nil); err != nil {
		return err
	}
	if method == "TELEGRAM" {
		d.textf("  The bot asks for the contact, because Telegram does not tell it the number; the user presses the button.\n")
		if err := d.call(ctx, http.MethodPost, user+"/share-contact", map[string]string{"wait": "30s"}, nil); err != nil {
			return err
		}
	}
	var status struct {
		Status string `json:"status"`
	}
	query := url.Values{"id": {request.RequestID}, "wait": {"20s"}}.Encode()
	if err := d.call(ctx, http.MethodGet, d.api+"/api/verify/status?"+query, nil, &status); err != nil {
		return err
	}
	took := time.Since(began)
	if status.Status != "VERIFIED" {
		return fmt.Errorf("the status is %s, not VERIFIED", status.Status)
	}
	if err := d.event(ctx, request.RequestID); err != nil {
		return err
	}
	d.verified = append(d.verified, verified{method, number, request.RequestID, took})
	return nil
}

// newNumber makes up a German mobile number: one number may be verified only a few times in ten minutes.
func newNumber() (string, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(10_000_000))
	if err != nil {
		return "", fmt.Errorf("make up a number: %w", err)
	}
	return fmt.Sprintf("+491511%07d", n), nil
}

// delivery is an event as the receiver took it.
type delivery struct {
	Body              string `json:"body"`
	Signature         string `json:"signature"`
	StandardSignature string `json:"standardSignature"`
	Status            int    `json:"status"`
}

// event waits until the receiver has the webhook of a request, and says what its signatures are worth.
func (d *demo) event(ctx context.Context, requestID string) error {
	const path = "/receiver/deliveries"
	d.command("curl --silent " + d.sim + path)
	var found delivery
	err := d.until(ctx, "the webhook", func(ctx context.Context) error {
		var all struct {
			Deliveries []delivery `json:"deliveries"`
		}
		if err := d.exchange(ctx, http.MethodGet, d.sim+path, nil, &all); err != nil {
			return err
		}
		for _, found = range all.Deliveries {
			if strings.Contains(found.Body, requestID) {
				return nil
			}
		}
		return errors.New("the receiver has no event of this request")
	})
	if err != nil {
		return err
	}
	d.textf("    %s\n    x-webhook-signature: %s, webhook-signature (Standard Webhooks): %s, answered with %d\n",
		found.Body, found.Signature, found.StandardSignature, found.Status)
	if found.Signature != "valid" || found.StandardSignature != "valid" || found.Status != http.StatusNoContent {
		return errors.New("the receiver did not accept the webhook")
	}
	return nil
}

// call shows an exchange as curl would do it, and does it.
func (d *demo) call(ctx context.Context, method, address string, body map[string]string, into any) error {
	words := []string{"curl", "--silent"}
	line := ""
	if strings.HasPrefix(address, d.api) {
		line = ` --header "Authorization: Bearer $API_KEY"`
	}
	if method == http.MethodPost {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("call %s: %w", address, err)
		}
		words = append(words, "--json", string(encoded))
	}
	d.command(typed(words[0], append(words[1:], address)) + line)
	var answer json.RawMessage
	if err := d.exchange(ctx, method, address, body, &answer); err != nil {
		return err
	}
	d.textf("    %s\n", bytes.TrimSpace(answer))
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}

// exchange sends JSON and reads JSON; anything but success is an error that says what was answered.
func (d *demo) exchange(ctx context.Context, method, address string, body map[string]string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, address, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, address, err)
	}
	request.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(address, d.api) {
		request.Header.Set("Authorization", "Bearer "+d.apiKey)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // past any proxy of the environment
	response, err := direct.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, address, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, address, err)
	case response.StatusCode > 299:
		return fmt.Errorf("%s %s: %s: %s", method, address, response.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// until asks again and again until there is no error.
func (d *demo) until(ctx context.Context, what string, ask func(context.Context) error) error {
	last := errors.New("never asked")
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = ask(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, last)
	}
	return nil
}
