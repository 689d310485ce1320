package page

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/phoneproof/phoneproof/internal/verification"
)

// markPrefix begins the names of the cookies that say that the messenger was opened from a page. They hold nothing else.
const markPrefix = "__Host-opened-"

// markName returns the name of the cookie of a request and a messenger, which does not show the id.
func markName(id string, method verification.Method) string {
	sum := sha256.Sum256([]byte("phoneproof/page/opened\x00" + id + "\x00" + string(method)))
	return markPrefix + base64.RawURLEncoding.EncodeToString(sum[:9])
}

// readMarks returns the messengers that were opened from a page of the request in this browser.
func readMarks(r *http.Request, id string) (marks []verification.Method) {
	for _, method := range [...]verification.Method{verification.WhatsApp, verification.Telegram} {
		if _, err := r.Cookie(markName(id, method)); err == nil {
			marks = append(marks, method)
		}
	}
	return marks
}

// serveOpened records that the user opened the messenger. A page of another site cannot.
func (h *Handler) serveOpened(v *visit) {
	if !h.isOfOwnPage(v) {
		return
	}
	marks, name := 0, markName(v.id, methodOf(v.settings, v, h.Clock.Now()))
	for _, c := range slices.Backward(v.r.Cookies()) { // browsers send the oldest first
		if strings.HasPrefix(c.Name, markPrefix) && c.Name != name {
			if marks++; marks >= maxMarks {
				setMark(v.w, c.Name, -1)
			}
		}
	}
	setMark(v.w, name, markLife)
	v.w.WriteHeader(http.StatusNoContent)
}

// setMark sets a cookie, or removes it with a negative age. Its prefix keeps other hosts of the domain from setting it.
func setMark(w http.ResponseWriter, name string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: "1", Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}
