package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// api is the HTTP API of the simulator itself, beside those of the platforms.
type api struct {
	*hub

	phones   *phones
	whatsApp *whatsApp
	telegram *telegram
	receiver *receiver
	backend  *Backend
}

// routeUsers serves what users do. docs/simulator.md describes it.
func (a *api) routeUsers(mux *http.ServeMux) {
	mux.HandleFunc("GET /sim/users", a.answerLocked(func(*http.Request) (any, *failure) {
		return map[string]any{"users": append([]*user{}, a.phones.users...)}, nil
	}))
	mux.HandleFunc("POST /sim/users", a.createUser)
	mux.HandleFunc("DELETE /sim/users/{user}", a.deleteUser)
	mux.HandleFunc("GET /sim/users/{user}/chats", a.answerLocked(func(r *http.Request) (any, *failure) {
		u, f := a.phones.findUser(r.PathValue("user"))
		if f != nil {
			return nil, f
		}
		return map[string]any{"chats": append([]*chat{}, u.chats...)}, nil
	}))
	mux.HandleFunc("POST /sim/users/{user}/open", a.openChat)
	mux.HandleFunc("POST /sim/users/{user}/send", a.sendText)
	mux.HandleFunc("POST /sim/users/{user}/share-contact", a.shareContact)
	mux.HandleFunc("POST /sim/users/{user}/tap", a.tapButton)
}

// answerLocked answers what get returns with the lock held.
func (a *api) answerLocked(get func(*http.Request) (any, *failure)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		body, f := get(r)
		if f != nil {
			answerFailure(w, f)
			return
		}
		answerJSON(w, http.StatusOK, body)
	}
}

func (a *api) createUser(w http.ResponseWriter, r *http.Request) {
	var p Person
	if f := decodeBody(w, r, &p); f != nil {
		answerFailure(w, f)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	u, f := a.phones.addUser(p)
	if f != nil {
		answerFailure(w, f)
		return
	}
	answerJSON(w, http.StatusCreated, u)
}

func (a *api) deleteUser(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, u := range a.phones.users {
		if u.ID == r.PathValue("user") || u.Phone == r.PathValue("user") {
			a.phones.users = append(a.phones.users[:i:i], a.phones.users[i+1:]...)
			a.publish(event{Type: "user", User: u.ID})
			break
		}
	}
	answerNoContent(w)
}

// action is the body of what users are asked to do.
type action struct {
	Link  string `json:"link"`
	Chat  string `json:"chat"`
	Text  string `json:"text"`
	Title string `json:"title"`
	Wait  string `json:"wait"`
	// Forwarded is true for a text that is forwarded.
	Forwarded bool `json:"forwarded"`
}

// runAction reads a wish and does it, with the lock held.
func (a *api) runAction(w http.ResponseWriter, r *http.Request, status int, do func(*user, action) (any, *failure)) {
	var in action
	if f := decodeBody(w, r, &in); f != nil {
		answerFailure(w, f)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	u, f := a.phones.findUser(r.PathValue("user"))
	if f != nil {
		answerFailure(w, f)
		return
	}
	body, f := do(u, in)
	if f != nil {
		answerFailure(w, f)
		return
	}
	answerJSON(w, status, body)
}

// openChat opens a link, or else a chat that is there. The user reads what the account wrote.
func (a *api) openChat(w http.ResponseWriter, r *http.Request) {
	a.runAction(w, r, http.StatusOK, func(u *user, in action) (any, *failure) {
		c, f := a.phones.openLinkOrChat(u, in.Link, in.Chat)
		if f != nil {
			return nil, f
		}
		a.phones.readMessages(u, c)
		a.publish(event{Type: "user", User: u.ID, Chat: c.ID})
		return c, nil
	})
}

// sendText sends the text, or the draft; with a link it is opened before.
func (a *api) sendText(w http.ResponseWriter, r *http.Request) {
	a.runAction(w, r, http.StatusAccepted, func(u *user, in action) (any, *failure) {
		var (
			c *chat
			f *failure
		)
		if in.Link != "" {
			c, f = a.phones.openLink(u, in.Link)
		} else {
			c, f = u.findChat(in.Chat)
		}
		if f != nil {
			return nil, f
		}
		l, f := a.phones.deliverText(u, c, in.Text, in.Forwarded)
		if f != nil {
			return nil, f
		}
		return map[string]any{"chat": c.ID, "message": l}, nil
	})
}

// shareContact presses the button that shares the contact; with wait, as soon as there is one.
func (a *api) shareContact(w http.ResponseWriter, r *http.Request) {
	a.pressButton(w, r, func(u *user, c *chat, _ action) (*line, *failure) { return a.phones.shareContact(u, c) })
}

// tapButton taps a button below a message; with wait, as soon as there is one.
func (a *api) tapButton(w http.ResponseWriter, r *http.Request) {
	a.pressButton(w, r, func(u *user, c *chat, in action) (*line, *failure) { return a.phones.deliverTap(u, c, in.Title) })
}

// pressButton has a user press a button that is there, or will be soon.
func (a *api) pressButton(w http.ResponseWriter, r *http.Request, do func(*user, *chat, action) (*line, *failure)) {
	var in action
	if f := decodeBody(w, r, &in); f != nil {
		answerFailure(w, f)
		return
	}
	wait, f := waitOf(in.Wait)
	if f != nil {
		answerFailure(w, f)
		return
	}
	var body any
	a.waitUntil(r.Context(), wait, func() bool {
		body, f = a.pressNow(r.PathValue("user"), in, do)
		return f == nil || f.code != "not_asked"
	})
	if f != nil {
		answerFailure(w, f)
		return
	}
	answerJSON(w, http.StatusAccepted, body)
}

// pressNow answers with copies, because it is not answered under the lock.
func (a *api) pressNow(ref string, in action, do func(*user, *chat, action) (*line, *failure)) (any, *failure) {
	u, f := a.phones.findUser(ref)
	if f != nil {
		return nil, f
	}
	c, f := u.findChat(in.Chat)
	if f != nil {
		return nil, f
	}
	l, f := do(u, c, in)
	if f != nil {
		return nil, f
	}
	return map[string]any{"chat": c.ID, "message": *l}, nil
}

// waitOf reads how long to wait: nothing if it is empty.
func waitOf(text string) (time.Duration, *failure) {
	return durationOf("wait", text)
}

// durationOf reads a duration in a field, at most maxWait; none if it is empty.
func durationOf(field, text string) (time.Duration, *failure) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, badRequest(field, "want a duration, as 20s")
	}
	return min(d, maxWait), nil
}

// routeState serves what there is beside the users: accounts, deliveries, events, and what is to go wrong.
func (a *api) routeState(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]bool{"ok": true})
	})
	mux.HandleFunc("GET /sim/about", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]bool{"backend": a.backend != nil})
	})
	mux.HandleFunc("GET /sim/events", a.waitForEvents)
	mux.HandleFunc("GET /sim/deliveries", a.answerLocked(func(*http.Request) (any, *failure) {
		return map[string]any{"deliveries": append([]delivery{}, a.deliveries...)}, nil
	}))
	mux.HandleFunc("GET /sim/sent", a.answerLocked(func(*http.Request) (any, *failure) { return a.sent.copyAll(), nil }))
	mux.HandleFunc("GET /sim/accounts", a.answerLocked(func(*http.Request) (any, *failure) {
		return map[string]any{
			onWhatsApp: append([]*business{}, a.whatsApp.businesses...), onTelegram: append([]*bot{}, a.telegram.bots...),
		}, nil
	}))
	mux.HandleFunc("PUT /sim/accounts/whatsapp/{id}", handleCommand(func(r *http.Request, account *WhatsAppAccount) *failure {
		account.PhoneNumberID = r.PathValue("id")
		return a.whatsApp.addAccount(*account)
	}))
	mux.HandleFunc("PUT /sim/accounts/telegram/{id}", handleCommand(func(r *http.Request, account *TelegramAccount) *failure {
		account.Username = r.PathValue("id")
		return a.telegram.addAccount(*account)
	}))
	mux.HandleFunc("POST /sim/faults", handleCommand(func(_ *http.Request, f *fault) *failure { return a.addFault(*f) }))
	mux.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		a.faults = nil
		a.mu.Unlock()
		answerNoContent(w)
	})
	mux.HandleFunc("POST /sim/codes", handleCommand(func(_ *http.Request, rule *codeRule) *failure { return a.addCodeRule(*rule) }))
	mux.HandleFunc("DELETE /sim/codes", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		a.codeRules = nil
		a.mu.Unlock()
		answerNoContent(w)
	})
	mux.HandleFunc("GET /sim/requests", a.answerLocked(func(*http.Request) (any, *failure) {
		return map[string]any{"requests": append([]siteRequest{}, a.requests...)}, nil
	}))
	mux.HandleFunc("DELETE /sim/limits", func(w http.ResponseWriter, _ *http.Request) {
		if a.resetLimits == nil {
			answerFailure(w, &failure{http.StatusNotFound, "no_limits", "", "limits can be reset in phoneproof dev alone"})
			return
		}
		a.resetLimits()
		answerNoContent(w)
	})
	mux.HandleFunc("POST /sim/revoke", handleCommand(func(_ *http.Request, in *struct {
		Credential string `json:"credential"`
	}) *failure {
		return a.revokeCredential(in.Credential)
	}))
	mux.HandleFunc("POST /sim/reset", func(w http.ResponseWriter, _ *http.Request) {
		a.mu.Lock()
		a.resetState()
		a.mu.Unlock()
		answerNoContent(w)
	})
	a.backend.registerRoutes(mux)
}

// handleCommand answers 204 to what could be done.
func handleCommand[T any](do func(*http.Request, *T) *failure) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		f := decodeBody(w, r, &in)
		if f == nil {
			f = do(r, &in)
		}
		if f != nil {
			answerFailure(w, f)
			return
		}
		answerNoContent(w)
	}
}

// waitForEvents answers the events after one, as soon as there are some.
func (a *api) waitForEvents(w http.ResponseWriter, r *http.Request) {
	wait, f := waitOf(r.URL.Query().Get("wait"))
	if f != nil {
		answerFailure(w, f)
		return
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = 0
	}
	found, next := []event{}, after
	a.waitUntil(r.Context(), wait, func() bool {
		for _, e := range a.events {
			if e.Seq > after {
				found = append(found, e)
			}
		}
		next = a.seq
		return len(found) > 0 || after > a.seq
	})
	answerJSON(w, http.StatusOK, map[string]any{"events": found, "next": next})
}

// resetState forgets everything but the accounts, without which no user could write to one. The lock is held.
func (a *api) resetState() {
	a.phones.users, a.whatsApp.parcels, a.deliveries, a.faults, a.revoked, a.events = nil, nil, nil, nil, nil, nil
	a.requests, a.codeRules, a.telegram.codes, a.telegram.balances = nil, nil, nil, nil
	a.sent = ledger{}
	for _, b := range a.telegram.bots {
		b.pending = nil
	}
	a.phones.lastUser = 0
	a.phones.addFirstUsers()
	a.publish(event{Type: "reset"})
}
