// Package simphone reads for tests what a simulated phone shows, through the HTTP API of the simulator.
package simphone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// Codes are what a message with session codes brings.
type Codes struct {
	// Digits are the six digits.
	Digits string
	// ReturnLink is empty if the message has none.
	ReturnLink string
	At         time.Time
}

// errNoCodes is returned if the phone shows no message with session codes.
var errNoCodes = errors.New("the phone shows no session codes")

var (
	// The line with the code in any language.
	digits     = regexp.MustCompile(`(?m)[:：] ?([0-9]{6})$`)
	returnLink = regexp.MustCompile(`(?m)^https?://\S+/return\?code=\S+$`)
)

// LatestCodes returns the session codes of the latest message that brought some to a user, whose reference is an id or a number in E.164.
func LatestCodes(ctx context.Context, client *http.Client, simulatorURL, user string) (Codes, error) {
	answer, err := readChats(ctx, client, simulatorURL, user)
	if err != nil {
		return Codes{}, err
	}
	return answer.latest(codesIn)
}

// readChats returns the chats of a user.
func readChats(ctx context.Context, client *http.Client, simulatorURL, user string) (*chats, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, simulatorURL+"/sim/users/"+url.PathEscape(user)+"/chats", nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read chats: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read chats: the simulator answers %d", response.StatusCode)
	}
	var answer chats
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("parse chats: %w", err)
	}
	return &answer, nil
}

// codesIn returns the session codes that a message brings, without a time; false for one without any.
func codesIn(text string) (Codes, bool) {
	found := digits.FindStringSubmatch(text)
	if found == nil {
		return Codes{}, false
	}
	return Codes{Digits: found[1], ReturnLink: returnLink.FindString(text)}, true
}

// chats is the answer of GET /sim/users/{user}/chats, as far as it is read.
type chats struct {
	Chats []struct {
		Messages []struct {
			From string    `json:"from"`
			At   time.Time `json:"at"`
			Text string    `json:"text"`
		} `json:"messages"`
	} `json:"chats"`
}

// latest returns the codes of the latest message of a business in which find finds some.
func (c *chats) latest(find func(text string) (Codes, bool)) (Codes, error) {
	var latest Codes
	for _, chat := range c.Chats {
		for _, m := range chat.Messages {
			codes, found := find(m.Text)
			if m.From == "business" && found && !m.At.Before(latest.At) {
				latest, latest.At = codes, m.At
			}
		}
	}
	if latest.Digits == "" {
		return Codes{}, errNoCodes
	}
	return latest, nil
}
