package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// routeUsers serves what users do. docs/simulator.md describes it.
func (s *Simulator) routeUsers(mux *http.ServeMux) {
	mux.HandleFunc("GET /sim/users", s.locked(func(*http.Request) (any, *failure) {
		return map[string]any{"users": append([]*user{}, s.users...)}, nil
	}))
	mux.HandleFunc("POST /sim/users", s.createUser)
	mux.HandleFunc("DELETE /sim/users/{user}", s.deleteUser)
	mux.HandleFunc("GET /sim/users/{user}/chats", s.locked(func(r *http.Request) (any, *failure) {
		u, f := s.findUser(r.PathValue("user"))
		if f != nil {
			return nil, f
		}
		return map[string]any{"chats": append([]*chat{}, u.chats...)}, nil
	}))
	mux.HandleFunc("POST /sim/users/{user}/open", s.openLink)
	mux.HandleFunc("POST /sim/users/{user}/send", s.sendText)
	mux.HandleFunc("POST /sim/users/{user}/share-contact", s.share)
	mux.HandleFunc("POST /sim/users/{user}/tap", s.tapButton)
	mux.HandleFunc("POST /sim/users/{user}/attack/{attack}", s.attackBy)
	mux.HandleFunc("GET /sim/attacks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"attacks": Attacks()})
	})
}

// locked answers what get returns with s.mu held.
func (s *Simulator) locked(get func(*http.Request) (any, *failure)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		body, f := get(r)
		if f != nil {
			refuse(w, f)
			return
		}
		answer(w, http.StatusOK, body)
	}
}

func (s *Simulator) createUser(w http.ResponseWriter, r *http.Request) {
	var p Person
	if f := read(w, r, &p); f != nil {
		refuse(w, f)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, f := s.addUser(p)
	if f != nil {
		refuse(w, f)
		return
	}
	answer(w, http.StatusCreated, u)
}

func (s *Simulator) deleteUser(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, u := range s.users {
		if u.ID == r.PathValue("user") || u.Phone == r.PathValue("user") {
			s.users = append(s.users[:i:i], s.users[i+1:]...)
			s.tell(event{Type: "user", User: u.ID})
			break
		}
	}
	nothing(w)
}

// wish is the body of what users are asked to do.
type wish struct {
	Link  string `json:"link"`
	Chat  string `json:"chat"`
	Text  string `json:"text"`
	Phone string `json:"phone"`
	Title string `json:"title"`
	Wait  string `json:"wait"`
}

// act reads a wish and does it, with s.mu held.
func (s *Simulator) act(w http.ResponseWriter, r *http.Request, status int, do func(*user, wish) (any, *failure)) {
	var in wish
	if f := read(w, r, &in); f != nil {
		refuse(w, f)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, f := s.findUser(r.PathValue("user"))
	if f != nil {
		refuse(w, f)
		return
	}
	body, f := do(u, in)
	if f != nil {
		refuse(w, f)
		return
	}
	answer(w, status, body)
}

func (s *Simulator) openLink(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, http.StatusOK, func(u *user, in wish) (any, *failure) {
		c, f := s.open(u, in.Link)
		if f != nil {
			return nil, f
		}
		s.tell(event{Type: "user", User: u.ID, Chat: c.ID})
		return c, nil
	})
}

// sendText sends the text, or the draft; with a link it is opened before.
func (s *Simulator) sendText(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, http.StatusAccepted, func(u *user, in wish) (any, *failure) {
		var (
			c *chat
			f *failure
		)
		if in.Link != "" {
			c, f = s.open(u, in.Link)
		} else {
			c, f = u.findChat(in.Chat)
		}
		if f != nil {
			return nil, f
		}
		l, f := s.deliverText(u, c, in.Text)
		if f != nil {
			return nil, f
		}
		return map[string]any{"chat": c.ID, "message": l}, nil
	})
}

// share presses the button that shares the contact; with wait, as soon as there is one.
func (s *Simulator) share(w http.ResponseWriter, r *http.Request) {
	s.pressButton(w, r, func(u *user, c *chat, _ wish) (*line, *failure) { return s.shareContact(u, c) })
}

// tapButton taps a button below a message; with wait, as soon as there is one.
func (s *Simulator) tapButton(w http.ResponseWriter, r *http.Request) {
	s.pressButton(w, r, func(u *user, c *chat, in wish) (*line, *failure) { return s.deliverTap(u, c, in.Title) })
}

// pressButton has a user press a button that is there, or will be soon.
func (s *Simulator) pressButton(w http.ResponseWriter, r *http.Request, do func(*user, *chat, wish) (*line, *failure)) {
	var in wish
	if f := read(w, r, &in); f != nil {
		refuse(w, f)
		return
	}
	wait, f := waitOf(in.Wait)
	if f != nil {
		refuse(w, f)
		return
	}
	var body any
	s.until(r.Context(), wait, func() bool {
		body, f = s.pressNow(r.PathValue("user"), in, do)
		return f == nil || f.code != "not_asked"
	})
	if f != nil {
		refuse(w, f)
		return
	}
	answer(w, http.StatusAccepted, body)
}

// pressNow answers with copies, because it is not answered under the lock.
func (s *Simulator) pressNow(ref string, in wish, do func(*user, *chat, wish) (*line, *failure)) (any, *failure) {
	u, f := s.findUser(ref)
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

func (s *Simulator) attackBy(w http.ResponseWriter, r *http.Request) {
	var in wish
	if f := read(w, r, &in); f != nil {
		refuse(w, f)
		return
	}
	shots, f := s.attack(r.Context(), r.PathValue("user"), r.PathValue("attack"), in.Link, in.Phone)
	if f != nil {
		refuse(w, f)
		return
	}
	answer(w, http.StatusOK, map[string]any{"attack": r.PathValue("attack"), "deliveries": shots})
}

// waitOf reads how long to wait: nothing if it is empty.
func waitOf(text string) (time.Duration, *failure) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, badRequest("wait", "want a duration, as 20s")
	}
	return min(wait, maxWait), nil
}

// routeState serves what there is beside the users: accounts, deliveries, events, and what is to go wrong.
func (s *Simulator) routeState(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, map[string]bool{"ok": true}) })
	mux.HandleFunc("GET /sim/about", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]bool{"backend": s.backend != nil})
	})
	mux.HandleFunc("GET /sim/events", s.waitForEvents)
	mux.HandleFunc("GET /sim/deliveries", s.locked(func(*http.Request) (any, *failure) {
		return map[string]any{"deliveries": append([]delivery{}, s.deliveries...)}, nil
	}))
	mux.HandleFunc("GET /sim/accounts", s.locked(func(*http.Request) (any, *failure) {
		return map[string]any{
			onWhatsApp: append([]*business{}, s.businesses...), onTelegram: append([]*bot{}, s.bots...),
		}, nil
	}))
	mux.HandleFunc("PUT /sim/accounts/whatsapp/{id}", command(func(r *http.Request, a *WhatsAppAccount) *failure {
		a.PhoneNumberID = r.PathValue("id")
		return s.addWhatsApp(*a)
	}))
	mux.HandleFunc("PUT /sim/accounts/telegram/{id}", command(func(r *http.Request, a *TelegramAccount) *failure {
		a.Username = r.PathValue("id")
		return s.addTelegram(*a)
	}))
	mux.HandleFunc("POST /sim/faults", command(func(_ *http.Request, f *fault) *failure { return s.addFault(*f) }))
	mux.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		s.faults = nil
		s.mu.Unlock()
		nothing(w)
	})
	mux.HandleFunc("POST /sim/revoke", command(func(_ *http.Request, in *struct {
		Credential string `json:"credential"`
	}) *failure {
		return s.revoke(in.Credential)
	}))
	mux.HandleFunc("POST /sim/reset", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		s.reset()
		s.mu.Unlock()
		nothing(w)
	})
	s.backend.route(mux)
}

// command answers 204 to what could be done.
func command[T any](do func(*http.Request, *T) *failure) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in T
		f := read(w, r, &in)
		if f == nil {
			f = do(r, &in)
		}
		if f != nil {
			refuse(w, f)
			return
		}
		nothing(w)
	}
}

// waitForEvents answers the events after one, as soon as there are some.
func (s *Simulator) waitForEvents(w http.ResponseWriter, r *http.Request) {
	wait, f := waitOf(r.URL.Query().Get("wait"))
	if f != nil {
		refuse(w, f)
		return
	}
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		after = 0
	}
	found, next := []event{}, after
	s.until(r.Context(), wait, func() bool {
		for _, e := range s.events {
			if e.Seq > after {
				found = append(found, e)
			}
		}
		next = s.seq
		return len(found) > 0 || after > s.seq
	})
	answer(w, http.StatusOK, map[string]any{"events": found, "next": next})
}
