package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// screenshots names a folder that the pictures of the page are put into, for a person to look at.
const screenshots = "PHONEPROOF_TEST_SCREENSHOTS"

// TestDev_pagePlaysTheWholeFlow is a person in a browser: starts a verification, taps its link, sends the text, shares the
// contact, and sees VERIFIED and the event.
func TestDev_pagePlaysTheWholeFlow(t *testing.T) {
	b := startBrowser(t)
	d := startDev(t)
	b.resize(1280, 800)
	b.open(d.page + "/")
	b.Eventually(func() any { return b.eval(`document.getElementById("number")?.value`) }).WithTimeout(30*time.Second).
		Should(Equal("+4915112345678"), "the page is ready")

	b.click("#init .main")
	b.text("#requests .pill", Equal("PENDING"))
	b.click("#requests .open")
	b.Eventually(func() any { return b.eval(`document.getElementById("text").value`) }).WithTimeout(30 * time.Second).
		Should(ContainSubstring("I confirm my phone number"))
	b.click("#send")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.text("#messages .bubble.business", ContainSubstring("is confirmed"))
	b.text("#received .card", And(ContainSubstring("x-webhook-signature: valid"), ContainSubstring("Standard Webhooks: valid"),
		ContainSubstring(`"event": "verification.success"`)))

	b.click(`#init input[value="TELEGRAM"]`)
	b.click("#init .main")
	b.click("#requests .open")
	b.text("#send", Equal("Start"))
	b.click("#send")
	b.text("#messages .bubble.business:last-child", ContainSubstring("asks to confirm your phone number"))
	b.picture(t, "share.png", false)
	b.click("#share")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.text("#received .card", ContainSubstring(`"method": "TELEGRAM"`))
	b.picture(t, "dev.png", false)

	b.click(`#init input[value="WHATSAPP"]`)
	b.click("#init .main")
	b.text("#requests .pill", Equal("PENDING"))
	b.click("#people button:last-child")
	b.click("#misbehave summary")
	b.click("#attack button")
	b.text("#attack-result", Equal("answered 403"))
	b.text("#requests .pill", Equal("PENDING"))
	b.picture(t, "attack.png", false)
	b.resize(400, 800)
	b.Eventually(func() any { return b.eval(`getComputedStyle(document.querySelector("main")).gridTemplateColumns`) }).
		WithTimeout(30 * time.Second).ShouldNot(ContainSubstring(" "))
	b.picture(t, "narrow.png", false)
	b.Expect(b.eval(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)).To(BeTrue(), "nothing is cut off")
	b.Expect(b.errors).To(BeEmpty())
}

// picture keeps a screenshot where somebody asked for it.
func (b *browser) picture(t *testing.T, name string, whole bool) {
	t.Helper()
	dir := os.Getenv(screenshots)
	if dir == "" {
		return
	}
	b.Expect(os.WriteFile(filepath.Join(dir, name), b.screenshot(whole), 0o600)).To(Succeed())
}
