package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/internal/simulator"
	"github.com/phoneproof/phoneproof/test/simphone"
)

const (
	// pollEvery is how often a phone looks at its chat.
	pollEvery = 20 * time.Millisecond
	// notMe is the title of the button that declines, in the language that the shop asks for.
	notMe = "Not me"
)

// phone is a phone with both messengers.
type phone struct {
	simulator *simulator.Simulator
	number    string
	// read is how many lines of a chat its user has read for codes.
	read map[string]int
}

// chat is a chat as the phone shows it.
type chat struct {
	ID      string `json:"chat"`
	Replies []struct {
		Title string `json:"title"`
	} `json:"replies"`
	AsksForContact bool `json:"asksForContact"`
	Lines          []struct {
		From  string `json:"from"`
		Text  string `json:"text"`
		State string `json:"state"`
	} `json:"messages"`
}

// message is a message with session codes.
type message struct {
	digits, link string
	// offered is set if the chat offers Not me.
	offered bool
	chat    string
}

// addPhone gives the simulator one more user.
func addPhone(ctx context.Context, s *simulator.Simulator, number string) (*phone, error) {
	p := &phone{s, number, map[string]int{}}
	return p, p.call(ctx, http.MethodPost, "/sim/users", map[string]string{"name": "Ada", "phone": number}, nil)
}

// remove takes the user out of the simulator, which holds a limited number.
func (p *phone) remove(ctx context.Context) error {
	return p.call(ctx, http.MethodDelete, "/sim/users/"+p.number, nil, nil)
}

// call calls the simulator's API within the process.
func (p *phone) call(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode body: %w", err)
	}
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(string(content)))
	request.Header.Set("Content-Type", "application/json")
	p.simulator.ServeHTTP(answer, request)
	switch {
	case answer.Code >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %d %s", method, path, answer.Code, answer.Body)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// act does something in a chat, and returns when the server has taken the message.
func (p *phone) act(ctx context.Context, action string, body map[string]string) (*chat, error) {
	var sent struct {
		Chat string `json:"chat"`
	}
	if err := p.call(ctx, http.MethodPost, "/sim/users/"+p.number+"/"+action, body, &sent); err != nil {
		return nil, err
	}
	return p.await(ctx, sent.Chat, func(c *chat) bool {
		for _, l := range c.Lines {
			if l.From == "user" && l.State != "delivered" && l.State != "failed" {
				return false
			}
		}
		return true
	})
}

// await returns a chat as soon as it is as wanted.
func (p *phone) await(ctx context.Context, id string, wanted func(*chat) bool) (*chat, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		var all struct {
			Chats []*chat `json:"chats"`
		}
		if err := p.call(ctx, http.MethodGet, "/sim/users/"+p.number+"/chats", nil, &all); err != nil {
			return nil, err
		}
		for _, c := range all.Chats {
			if c.ID == id && wanted(c) {
				return c, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for chat: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// sendPrepared opens a messenger link, sends the text that it has prepared, and shares the contact where the chat asks for it.
func (p *phone) sendPrepared(ctx context.Context, link string) (*chat, error) {
	c, err := p.act(ctx, "send", map[string]string{"link": link})
	if err != nil || !strings.HasPrefix(c.ID, "telegram:") {
		return c, err
	}
	if c, err = p.await(ctx, c.ID, func(c *chat) bool { return c.AsksForContact || len(c.Lines) > 1 }); err != nil || !c.AsksForContact {
		return c, err
	}
	return p.act(ctx, "share-contact", map[string]string{"chat": c.ID})
}

// findMessage returns the newest message with digits among the lines from one on, and the line after it.
func findMessage(c *chat, from int) (m message, next int, found bool) {
	for i := len(c.Lines) - 1; i >= from; i-- {
		codes, brings := simphone.CodesIn(c.Lines[i].Text)
		if c.Lines[i].From == "user" || !brings {
			continue
		}
		m = message{digits: codes.Digits, link: codes.ReturnLink, chat: c.ID}
		for _, button := range c.Replies {
			m.offered = m.offered || button.Title == notMe
		}
		return m, i + 1, true
	}
	return message{}, from, false
}

// errNoMessage means that no message with digits came. It ends its scene, and is for the judge.
var errNoMessage = errors.New("no message with digits came")

// readMessage waits for a message with digits that its user has not read.
func (p *phone) readMessage(ctx context.Context, id string) (m message, err error) {
	ctx, cancel := context.WithTimeout(ctx, messageWait)
	defer cancel()
	_, err = p.await(ctx, id, func(c *chat) (found bool) {
		m, p.read[id], found = findMessage(c, p.read[id])
		return found
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = errNoMessage
	}
	return m, err
}

// messageWait is longer than a busy machine takes to send a message after the one that it answers was taken.
const messageWait = 30 * time.Second

// answerNotMe taps Not me.
func (p *phone) answerNotMe(ctx context.Context, id string) error {
	_, err := p.act(ctx, "tap", map[string]string{"chat": id, "title": notMe})
	return err
}
