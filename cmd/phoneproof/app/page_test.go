package app

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
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
// contact, sees VERIFIED and the event, and attacks. Each state of the page shows all of itself, and is accessible where axe-core
// is installed to judge that.
func TestDev_pagePlaysTheWholeFlow(t *testing.T) {
	b := startBrowser(t)
	a := newAxe(b)
	b.playFlow(startDev(t), func(state string) {
		if dir := os.Getenv(screenshots); dir != "" {
			b.Expect(os.WriteFile(filepath.Join(dir, state+".png"), b.takeScreenshot(), 0o600)).To(Succeed())
		}
		if path := os.Getenv(readmePicture); path != "" && state == "shared" {
			b.emulateScheme("light")
			picture := b.inFewColors(b.takeScreenshot())
			b.Expect(len(picture)).To(BeNumerically("<", maxPictureBytes))
			b.Expect(os.WriteFile(path, picture, 0o644)).To(Succeed())
		}
		if a != nil {
			a.expectAccessible(state)
		}
		b.expectAllShown(state)
	})
	b.Expect(b.errors).To(BeEmpty())
	t.Run("accessibility", func(t *testing.T) {
		if a == nil {
			t.Skip("axe-core is not installed: run hack/browser-assets.sh with npm in the PATH, and accessibility is tested too")
		}
		t.Logf("axe-core %s, %d rules: %v", b.eval("axe.version"), len(a.listRules()), a.listRules())
	})
}

// playFlow plays every part of the page once, and calls at in each state that a person may look at, with the state's name.
func (b *browser) playFlow(d *devProcess, at func(state string)) {
	b.t.Helper()
	b.resize(1280, 800)
	b.openPage(d)
	at("start")
	b.eval(`document.getElementById("number").value = "12"; 0`)
	b.click("#init .main")
	b.text("#init-error", Not(BeEmpty()))
	at("refused")
	b.Expect(b.errors).To(ConsistOf(ContainSubstring("400 (Bad Request)")), "as the browser reports any such answer")
	b.errors = nil
	b.eval(`document.getElementById("number").value = "+4915112345678"; 0`)

	b.click("#init .main")
	b.text("#requests .pill", Equal("PENDING"))
	at("requested")
	b.click("#requests .open")
	b.value("#text", ContainSubstring("I confirm my phone number"))
	at("drafted")
	b.click("#send")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.text("#messages .bubble.business", ContainSubstring("is confirmed"))
	b.text("#received .card", And(ContainSubstring("x-webhook-signature: valid"), ContainSubstring("Standard Webhooks: valid"),
		ContainSubstring(`"event": "verification.success"`)))
	at("sent")

	b.click(`#init input[value="TELEGRAM"]`)
	b.click("#init .main")
	b.click("#requests .open")
	b.text("#send", Equal("Start"))
	at("telegram-drafted")
	b.click("#send")
	b.text("#messages .bubble.business:last-child", ContainSubstring("asks to confirm your phone number"))
	b.click("#messages") // it can be focused, as it can be scrolled
	at("prompted")
	b.click("#share")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.text("#received .card", ContainSubstring(`"method": "TELEGRAM"`))
	at("shared")
	b.click("#received details summary")
	b.click(".log summary")
	at("receiver")
	b.misbehave(at)
}

// misbehave is the part of the flow in which no number is verified.
func (b *browser) misbehave(at func(state string)) {
	b.t.Helper()
	b.click(`#init input[value="WHATSAPP"]`)
	b.click("#init .main")
	b.text("#requests .pill", Equal("PENDING"))
	b.click("#people button:last-child")
	b.text("#identity", Equal("+4915198765432"))
	b.text("#no-chat", ContainSubstring("No chat yet"))
	at("another-user")
	b.click("#requests .open")
	b.value("#text", ContainSubstring("I confirm my phone number"))
	b.click("#send")
	b.text("#messages .bubble.business", ContainSubstring("could not confirm this phone number"))
	b.text("#requests .pill", Equal("PENDING"))
	at("another-number")

	b.click("#misbehave summary")
	b.text("#attack-summary", ContainSubstring("403 is right: the server refuses"))
	b.click("#attack button")
	b.text("#attack-result", Equal("answered 403: as expected"))
	b.text("#posted li", ContainSubstring("403 - attack no-signature, as expected"))
	b.text("#requests .pill", Equal("PENDING"))
	at("attacked")

	b.eval(`{
		const real = window.fetch;
		window.fetch = (path, init) => path.startsWith("/backend/status")
			? Promise.resolve(new Response(JSON.stringify({status: "EXPIRED"}))) : real(path, init);
	}`)
	b.click("#init .main")
	b.text("#requests .pill", Equal("EXPIRED"))
	at("expired")
}

// openPage opens the page of a dev, and returns once it shows something.
func (b *browser) openPage(d *devProcess) {
	b.t.Helper()
	b.open(d.page + "/")
	b.value("#number", Equal("+4915112345678"))
}

// inFewColors returns a PNG with its 256 most frequent colors alone, which is enough for text and a third of the size.
func (b *browser) inFewColors(picture []byte) []byte {
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

// value waits until the value of a field matches.
func (b *browser) value(selector string, matcher OmegaMatcher) {
	b.t.Helper()
	b.Eventually(func() any { return b.eval(`document.querySelector("` + selector + `")?.value ?? ""`) }).
		WithTimeout(30*time.Second).Should(matcher, selector)
}
