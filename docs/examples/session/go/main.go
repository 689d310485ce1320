// Command go is a website whose visitors verify a phone number at the level Session. Its sessions are in memory.
package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"html/template"
	"net/http"
	"os"
	"strings"
	"sync"

	phoneproof "github.com/phoneproof/phoneproof/sdk/go"
)

var page = template.Must(template.New("").Parse(`<!doctype html><title>Shop</title><p>{{index . 0}}</p>
{{range slice . 1}}<a href="{{.}}">Verify it</a>{{end}}<form method="post" action="/start">Phone number <input name="number" type="tel">
<button>Verify</button></form><form method="post" action="/digits">Six or eight digits <input name="code"> <button>Confirm</button></form>`))

var texts = map[string]string{"no_country_code": "Begin with the country code, such as +49.", "wrong_code": "These digits are wrong.",
	"invalid_phone_number": "Is this number complete?", "not_proven": "Send the message from your phone first.",
	"request_expired": "This has ended. Begin again.", "connection_failed": "Try again."} // by reason or code: docs/errors.md has all

func main() {
	address := cmp.Or(os.Getenv("ADDRESS"), "127.0.0.1:8000")
	origin := cmp.Or(os.Getenv("ORIGIN"), "http://"+address)
	name := map[bool]string{true: "__Host-session", false: "session"}[strings.HasPrefix(origin, "https:")]
	client, err := phoneproof.New(cmp.Or(os.Getenv("PHONEPROOF_URL"), "http://127.0.0.1:8080"), os.Getenv("PHONEPROOF_KEY"))
	if err != nil {
		panic(err)
	}
	sessions, begun := phoneproof.NewSessions(client, &phoneproof.MemoryStore{}), sync.Map{} // begun has what to show, by session
	panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, id, newID := r.Context(), append(r.CookiesNamed(name), &http.Cookie{})[0].Value, rand.Text()
		w.Header().Set("Referrer-Policy", "strict-origin") // the address may hold a code
		verified, _ := sessions.Verified(ctx, id)
		show := func(status int, lines ...string) { w.WriteHeader(status); _ = page.Execute(w, lines) }
		answer := func(_ any, err error) {
			failure := &phoneproof.Error{}
			switch errors.As(err, &failure); {
			case err == nil:
				http.SetCookie(w, &http.Cookie{Name: name, Value: newID, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: name != "session"})
				fallthrough
			case errors.Is(err, phoneproof.ErrSession): // no code of this session: a repeated return, or one of another browser
				http.Redirect(w, r, "/me", http.StatusSeeOther)
			default:
				show(cmp.Or(failure.Status, http.StatusBadGateway), cmp.Or(texts[failure.Reason], texts[failure.Code], "Try again later."))
			}
		}
		switch route := r.Method + " " + r.URL.Path; {
		case r.Method == http.MethodPost && r.Header.Get("Origin") != origin: // browsers name the site in each POST
			show(http.StatusForbidden, "Send this form from "+origin+".")
		case route == "POST /start":
			started, err := sessions.Begin(ctx, newID, phoneproof.StartParams{PhoneNumber: r.PostFormValue("number"), Purpose: "sign-in", ReturnURL: origin + "/return"})
			if err == nil {
				begun.Store(newID, "Not verified. Your number: "+r.PostFormValue("number")+"\n"+started.PageURL)
			}
			answer(started, err)
		case route == "POST /digits" || route == "GET /return" && r.FormValue("code") != "": // without one the user gave up
			answer(sessions.Redeem(ctx, phoneproof.Redemption{SessionID: id, NewSessionID: newID, Code: r.PostFormValue("code"), Return: r.URL.Query()}))
		case verified != "":
			show(http.StatusOK, "Verified: "+verified)
		default:
			shown, _ := begun.Load(id)
			lines, _ := shown.(string) // none before a verification has begun
			show(http.StatusUnauthorized, strings.Split(cmp.Or(lines, "Not verified."), "\n")...)
		}
	})))
}
