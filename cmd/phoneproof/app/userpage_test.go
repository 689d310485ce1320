package app

import (
	"bytes"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/page/view"
	"github.com/phoneproof/phoneproof/internal/verification"
)

// pagePictures names the folder that the pictures of docs/page.md are written to, if it is set; see `make screenshot`.
const pagePictures = "PHONEPROOF_TEST_PAGE_PICTURES"

// userPage is the page of a request in a browser.
type userPage struct {
	*tab

	dev *devProcess
	// id, url and link are those of the request.
	id, url, link string
	// taps counts what the user tapped so far, on the page and in the messenger.
	taps int
}

// openUserPage starts a verification and opens its page.
func (b *tab) openUserPage(d *devProcess, more map[string]any) *userPage {
	b.t.Helper()
	body := map[string]any{"phoneNumber": ada, "subject": "user-1", "returnURL": d.page + "/?order=7"}
	maps.Copy(body, more)
	answer := d.call(http.StatusOK, http.MethodPost, d.api+"/api/verify/init", body)
	p := &userPage{tab: b, dev: d, id: answer["requestId"].(string), url: answer["pageURL"].(string)}
	p.link, _ = answer["waLink"].(string)
	if p.link == "" {
		p.link, _ = answer["tgLink"].(string)
	}
	p.UseAxe("color-contrast", "document-title", "html-has-lang")
	p.Open(p.url)
	return p
}

// expectTitle waits for the title of a state, and judges how accessible it is.
func (p *userPage) expectTitle(title string) {
	p.t.Helper()
	p.AwaitText("h1", Equal(title))
	p.judgePage(title)
}

// judgePage looks at the page as people with and without a screen reader do, in light and dark, wide and narrow.
func (p *userPage) judgePage(state string) {
	p.t.Helper()
	p.ExpectAccessible(state)
	p.ExpectNarrow(state)
}

// readQR returns what the QR code on the screen holds. Its place is given, because gozxing misjudges the size of one code in some hundreds
// if it has to find it on the screen.
func (p *userPage) readQR() string {
	p.t.Helper()
	box := p.Eval(`(() => {
		const picture = document.querySelector(".scan img");
		picture.scrollIntoView({block: "center"});
		const box = picture.getBoundingClientRect(), round = parseFloat(getComputedStyle(picture).borderTopLeftRadius);
		return [box.left + round, box.top + round, box.right - round, box.bottom - round];
	})()`).([]any)
	at := func(i int) int { return int(math.Round(box[i].(float64))) }
	screen, err := png.Decode(bytes.NewReader(p.TakeScreenshot()))
	p.Expect(err).NotTo(HaveOccurred())
	picture := image.NewGray(image.Rect(0, 0, at(2)-at(0), at(3)-at(1)))
	draw.Draw(picture, picture.Bounds(), screen, image.Pt(at(0), at(1)), draw.Src)
	bitmap, err := gozxing.NewBinaryBitmapFromImage(picture)
	p.Expect(err).NotTo(HaveOccurred())
	result, err := qrcode.NewQRCodeReader().Decode(bitmap, map[gozxing.DecodeHintType]any{gozxing.DecodeHintType_PURE_BARCODE: true})
	p.Expect(err).NotTo(HaveOccurred())
	return result.GetText()
}

// TestUserPage_everyStateIsAccessible looks at each state as the page renders it, and at what of it only a browser shows.
func TestUserPage_everyStateIsAccessible(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		language, state, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v/"), "/")
		v := &view.View{
			Language: language, State: view.State(state), DisplayName: "Ada's Bookshop", MaskedNumber: "+49*********78",
			Method: verification.WhatsApp, Others: []view.Choice{{Method: verification.Telegram, URL: "/v/x"}},
			Link: "https://wa.me/1", QR: largeQR, PageURL: r.URL.Path,
			Purpose: "Sign in to your account", TimeLeft: 9 * time.Minute,
			ConfirmLabel: "Confirm", NotMeLabel: "Not me", Accent: "#fbbf24", OnAccent: "#000000",
		}
		if state != string(view.Verified) {
			v.ReturnURL = "https://shop.example/back"
		}
		variant := r.URL.Query()
		if v.AsksCode = v.State == view.Code || variant.Has("code"); v.AsksCode {
			v.TextURL = "/v/x?method=WHATSAPP"
		}
		v.Session, v.TriesUsedUp = v.State == view.Digits || v.AsksCode || variant.Has("session"), variant.Has("session")
		v.Problem, v.TriesLeft = view.Problem(variant.Get("problem")), 3
		if v.State == view.Digits || v.State == view.Code || v.State == view.Canceled {
			v.Others = nil
		}
		if variant.Has("elsewhere") {
			v.ReturnURL = ""
		}
		content, err := view.Render(v)
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", view.ContentSecurityPolicy(v, nil))
		_, _ = w.Write(content)
	}))
	defer server.Close()
	p := &userPage{tab: b}
	p.UseAxe("color-contrast", "document-title", "html-has-lang")
	p.openView(server.URL, "en", string(view.Ready), "?session")
	p.expectLooks()
	for _, language := range []string{"en", "ar"} {
		for _, state := range view.States() {
			p.judgeView(server.URL, language, string(state), "")
			if dir := os.Getenv(pagePictures); dir != "" && language == "en" {
				p.EmulateScheme("light")
				p.Resize(390, 720)
				p.Expect(os.WriteFile(filepath.Join(dir, string(state)+".png"), p.inFewColors(p.TakeScreenshot()), 0o600)).To(Succeed())
			}
		}
		for _, state := range []view.State{view.Ready, view.Hidden, view.Confirm, view.Unavailable, view.Expired} {
			p.judgeView(server.URL, language, string(state), "?session")
		}
		for _, state := range []view.State{view.OtherNumber, view.Confirm} {
			p.judgeView(server.URL, language, string(state), "?code")
		}
		for _, variant := range []string{"?problem=wrong-digits", "?problem=not-digits", "?problem=not-checked", "?elsewhere"} {
			p.judgeView(server.URL, language, string(view.Digits), variant)
			p.judgeView(server.URL, language, string(view.Code), variant)
		}
	}
	for _, language := range view.Languages() {
		for _, state := range []view.State{view.OtherNumber, view.TextRefused, view.NoQuestion} { // the longest ones
			p.openView(server.URL, language, string(state), "?session")
		}
	}
}

// largeQR is what the QR code of a view holds.
var largeQR = "https://wa.me/" + strings.Repeat("1", 480)

// expectLooks expects the page to be dark for a user who prefers that, its QR code to be read either way, the button that cancels to be as
// large as the main one, and the minutes to be counted.
func (p *userPage) expectLooks() {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		p.EmulateScheme(scheme)
		p.Expect(p.Eval(`getComputedStyle(document.body).backgroundColor.match(/\d+/g).every((color) => color < 50)`)).To(Equal(scheme == "dark"), scheme)
		p.Expect(p.readQR()).To(Equal(largeQR), scheme)
	}
	p.Expect(p.Eval(`(() => {
		const [go, end] = [".button:not(.cancel)", ".cancel"].map((name) => document.querySelector(name).getBoundingClientRect());
		return Math.abs(go.width - end.width) < 1 && end.height >= go.height - 1;
	})()`)).To(BeTrue(), "the second button has the same weight")
	p.Eval(`document.getElementById("left").dataset.end = Date.now() + 59000; 0`)
	p.AwaitText("#left", Equal("Less than a minute left"))
}

// openView opens a view in a state. On a large screen nothing of it is below the fold.
func (p *userPage) openView(server, language, state, variant string) {
	p.t.Helper()
	p.Open(fmt.Sprintf("%s/v/%s/%s%s", server, language, state, variant))
	p.Await("document.readyState === 'complete' && location.search === '"+variant+"' ? document.body.dataset.state : ''", Equal(state))
	p.Resize(1280, 800)
	p.Expect(p.Eval(`document.documentElement.scrollHeight`)).To(BeNumerically("<=", 800), "%s %s%s", language, state, variant)
}

// judgeView opens a view in a state, and judges it.
func (p *userPage) judgeView(server, language, state, variant string) {
	p.t.Helper()
	p.openView(server, language, state, variant)
	p.judgePage(language + " " + state + variant)
}
