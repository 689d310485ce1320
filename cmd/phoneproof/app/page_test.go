package app

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/server"
)

// Where pictures of the page are written, if these variables are set: screenshots names a folder for pictures of every
// state, for a person to look at; readmePicture names the file that README.md shows (see `make screenshot`).
const (
	screenshots   = "PHONEPROOF_TEST_SCREENSHOTS"
	readmePicture = "PHONEPROOF_TEST_README_PICTURE"
)

// maxPictureBytes bounds a picture that is committed.
const maxPictureBytes = 150_000

// TestDev_pagePlaysTheWholeFlow is a person in a browser: starts a verification, opens its link, sends the text, shares the
// contact, sees VERIFIED and the event, and answers a question. What is not pressed by mouse is done by keyboard: the focus is
// visible, and after each choice it is where a person goes on. Each state of the page shows all of itself, and is accessible where axe-core
// is installed to judge that.
func TestDev_pagePlaysTheWholeFlow(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	hasAxe := b.UseAxe("color-contrast", "label", "button-name")
	at := func(state string) {
		if dir := os.Getenv(screenshots); dir != "" {
			b.Expect(os.WriteFile(filepath.Join(dir, state+".png"), b.TakeScreenshot(), 0o600)).To(Succeed())
		}
		if path := os.Getenv(readmePicture); path != "" && state == "shared" {
			b.EmulateScheme("light")
			picture := b.inFewColors(b.TakeScreenshot())
			b.Expect(len(picture)).To(BeNumerically("<", maxPictureBytes))
			b.Expect(os.WriteFile(path, picture, 0o644)).To(Succeed())
		}
		b.ExpectAccessible(state)
		b.expectAllShown(state)
	}
	d := startDevWith(t, server.Dependencies{})
	b.playFlow(d, at)
	b.playQuestion(d, at)
	b.Expect(b.TakeProblems()).To(BeEmpty())
	t.Run("accessibility", func(t *testing.T) {
		t.Parallel()
		if !hasAxe {
			t.Skip("axe-core is not installed: run hack/browser-assets.sh with npm in the PATH, and accessibility is tested too")
		}
		t.Logf("axe-core %s, %d rules: %v", b.Eval("axe.version"), len(b.ListRules()), b.ListRules())
	})
}

// playFlow plays every part of the page once, and calls at in each state that a person may look at, with the state's name.
func (b *tab) playFlow(d *devProcess, at func(state string)) {
	b.t.Helper()
	b.Resize(1280, 800)
	b.openPage(d)
	at("start")
	b.Eval(`document.getElementById("number").value = "12"; 0`)
	b.Press("#init .main")
	b.AwaitText("#init-error", Not(BeEmpty()))
	at("refused")
	b.Expect(b.TakeProblems()).To(ConsistOf(ContainSubstring("400 (Bad Request)")), "as the browser reports any such answer")
	b.Eval(`document.getElementById("number").value = "+4915112345678"; 0`)

	b.Press("#init .main")
	b.AwaitText("#requests .pill", Equal("PENDING"))
	at("requested")
	b.Press("#requests .open")
	b.AwaitValue("#text", ContainSubstring("I confirm my phone number"))
	at("drafted")
	b.Press("#send")
	b.AwaitText("#requests .pill", Equal("VERIFIED"))
	b.AwaitText("#messages .bubble.business", ContainSubstring("is confirmed"))
	b.AwaitText("#received .card", And(ContainSubstring("x-webhook-signature: valid"), ContainSubstring("Standard Webhooks: valid"),
		ContainSubstring(`"event": "verification.success"`)))
	at("sent")

	b.TabTo(`#init input[name="method"]`)
	b.PressKey("ArrowDown")
	b.AwaitFocus(`#init input[value="TELEGRAM"]`)
	b.pressByKeyboard("#init .main")
	b.pressByKeyboard("#requests .open")
	b.AwaitText("#send", Equal("Start"))
	b.AwaitFocus("#text")
	at("telegram-drafted")
	b.PressKey("Enter")
	b.AwaitText("#messages .bubble.business:last-child", ContainSubstring("asks to confirm your phone number"))
	b.Press("#messages") // it can be focused, as it can be scrolled
	at("prompted")
	b.pressByKeyboard("#share")
	b.AwaitText("#requests .pill", Equal("VERIFIED"))
	b.AwaitFocus("#text")
	b.AwaitText("#received .card", ContainSubstring(`"method": "TELEGRAM"`))
	at("shared")
	b.Press("#received details summary")
	b.Press(".log summary")
	at("receiver")
	b.playMistakes(at)
}

// playMistakes is the part of the flow in which no number is verified.
func (b *tab) playMistakes(at func(state string)) {
	b.t.Helper()
	b.Press(`#init input[value="WHATSAPP"]`)
	b.Press("#init .main")
	b.AwaitText("#requests .pill", Equal("PENDING"))
	b.TabTo("#people button")
	for _, move := range []struct{ key, tab string }{{"ArrowRight", "2"}, {"Home", "1"}, {"ArrowLeft", "5"}, {"ArrowRight", "1"}, {"End", "5"}} {
		b.PressKey(move.key)
		b.AwaitFocus(`#people [role="tab"]:nth-child(` + move.tab + `)[aria-selected="true"][tabindex="0"]`)
	}
	b.Expect(b.Eval(`document.querySelectorAll('#people [tabindex="0"], #people [aria-selected="true"]').length`)).To(BeEquivalentTo(1))
	b.AwaitText("#identity", Equal("+4915198765432"))
	b.AwaitText("#no-chat", ContainSubstring("No chat yet"))
	at("another-user")
	b.Press("#requests .open")
	b.AwaitValue("#text", ContainSubstring("I confirm my phone number"))
	b.Press("#send")
	b.AwaitText("#messages .bubble.business", ContainSubstring("could not confirm this phone number"))
	b.AwaitText("#requests .pill", Equal("PENDING"))
	at("another-number")

	b.Eval(`{
		const real = window.fetch;
		window.fetch = (path, init) => path.startsWith("/backend/status")
			? Promise.resolve(new Response(JSON.stringify({status: "EXPIRED"}))) : real(path, init);
	}`)
	b.Press("#init .main")
	b.AwaitText("#requests .pill", Equal("EXPIRED"))
	at("expired")
}

// playQuestion comes from the page of a user, whose messenger is the simulated phone, and answers a question that has two buttons.
func (b *tab) playQuestion(d *devProcess, at func(state string)) {
	b.t.Helper()
	d.call(http.StatusNoContent, http.MethodPut, d.page+"/sim/accounts/whatsapp/777", map[string]string{"number": "+4915112345699"})
	link := map[string]string{"link": "https://wa.me/4915112345699?text=Hello"}
	d.call(http.StatusAccepted, http.MethodPost, d.page+"/sim/users/1/send", link)
	button := func(id, title string) map[string]any {
		return map[string]any{"type": "reply", "reply": map[string]string{"id": id, "title": title}}
	}
	d.call(http.StatusOK, http.MethodPost, d.page+"/v25.0/777/messages?access_token=sim_4915112345699", map[string]any{
		"messaging_product": "whatsapp", "to": "4915112345678", "type": "interactive", "interactive": map[string]any{
			"type": "button", "body": map[string]string{"text": "Is it you?"},
			"action": map[string]any{"buttons": []any{button("echo:1", "Confirm"), button("notme:1", "Not me")}},
		},
	})
	p := b.openUserPage(d, nil)
	b.AwaitText("header .test", HavePrefix("This is phoneproof dev: messengers are simulated"))
	b.Open(b.Eval(`document.getElementById("open").href`).(string))
	b.AwaitValue("#link", Equal(p.link))
	b.AwaitText("#requests .id", Equal(p.id)) // the site began it, not the page
	b.AwaitText("#replies button:first-child", Equal("Confirm"))
	b.AwaitText("#replies button:last-child", Equal("Not me"))
	at("question")
	b.pressByKeyboard("#replies button:last-child")
	b.AwaitText("#messages .bubble.user:last-child", HavePrefix("Not me"))
	b.AwaitFocus("#text")
	b.Await(`document.getElementById("replies").checkVisibility()`, BeFalse())
}

// pressByKeyboard leads the focus to an element and presses the Enter key there.
func (b *tab) pressByKeyboard(selector string) {
	b.t.Helper()
	b.TabTo(selector)
	b.PressKey("Enter")
}

// openPage opens the page of a dev, and returns once it shows something.
func (b *tab) openPage(d *devProcess) {
	b.t.Helper()
	b.Open(d.page + "/")
	b.AwaitValue("#number", Equal("+4915112345678"))
}

// inFewColors returns a PNG with its 256 most frequent colors alone, which is enough for text and a third of the size.
func (b *tab) inFewColors(picture []byte) []byte {
	b.t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	b.Expect(err).NotTo(HaveOccurred())
	frequency, bounds := map[color.Color]int{}, full.Bounds()
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			frequency[full.At(x, y)]++
		}
	}
	palette := slices.SortedFunc(maps.Keys(frequency), func(c, d color.Color) int { return frequency[d] - frequency[c] })
	small := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	draw.Draw(small, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	b.Expect((&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)).To(Succeed())
	return out.Bytes()
}
