package app

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// expectAccessible has axe-core find nothing in a state of the page, in light and dark colors, on a wide screen and on one of 320
// pixels.
func (a *axe) expectAccessible(state string) {
	a.t.Helper()
	for _, view := range []struct {
		scheme string
		width  int
	}{{"light", 1280}, {"dark", 1280}, {"light", 320}} {
		a.emulateScheme(view.scheme)
		a.resize(view.width, 800)
		for _, finding := range a.listFindings() {
			a.t.Errorf("%s, %s, %d pixels wide: %s", state, view.scheme, view.width, finding)
		}
	}
}

// expectAllShown expects that nothing is cut off in a state of the page, in narrow windows too, and that fields and buttons stand
// out from what is around them.
func (b *browser) expectAllShown(state string) {
	b.t.Helper()
	for _, width := range []int{320, 400, 800, 1100, 1280} {
		b.resize(width, 800)
		b.Eventually(func() any { return b.eval(cutOff) }).WithTimeout(30*time.Second).Should(BeEmpty(), "%s, %d pixels wide", state, width)
	}
	for _, scheme := range []string{"dark", "light"} {
		b.emulateScheme(scheme)
		b.Expect(b.eval(indistinct)).To(BeEmpty(), "%s, %s", state, scheme)
	}
}

// cutOff is JavaScript that lists the elements which do not show all of their text.
const cutOff = `[...document.querySelectorAll("body *")].filter((element) => {
	if (!element.checkVisibility()) return false;
	const box = element.getBoundingClientRect();
	const hides = getComputedStyle(element).overflowX !== "visible" && !element.matches("input");
	return box.left < 0 || box.right > document.documentElement.clientWidth + 0.5
		|| hides && element.scrollWidth > element.clientWidth + 1
		|| element.matches("textarea") && element.scrollHeight > element.clientHeight;
}).map((element) => element.outerHTML.slice(0, 200) + " " + JSON.stringify([element.scrollWidth, element.clientWidth, element.scrollHeight, element.clientHeight]))`

// indistinct is JavaScript that lists the fields and buttons whose edge has less than 3:1 of contrast to what is around it
// (WCAG 1.4.11), or whose text or placeholder has less than 4.5:1 (1.4.3).
const indistinct = `(() => {
	const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
	const luminance = (color) => {
		const [r, g, b] = parse(color).map((value) => value / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (one, other) => {
		const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
		return (light + 0.05) / (dark + 0.05);
	};
	const behind = (element) => {
		for (; element; element = element.parentElement) {
			const color = getComputedStyle(element).backgroundColor;
			if (parse(color)[3] !== 0) return color;
		}
		return "rgb(255, 255, 255)";
	};
	const found = [];
	for (const element of document.querySelectorAll("input:not([type=radio]), textarea, select, button")) {
		if (!element.checkVisibility()) continue;
		const style = getComputedStyle(element);
		const check = (what, least, one, other) => {
			const got = contrast(one, other);
			if (!(got >= least)) found.push(what + " " + got.toFixed(2) + " of " + element.outerHTML.slice(0, 120));
		};
		check("edge to the outside", 3, style.borderTopColor, behind(element.parentElement));
		if (!element.matches("button")) check("edge to the inside", 3, style.borderTopColor, behind(element));
		check("text", 4.5, style.color, behind(element));
		if (element.placeholder) check("placeholder", 4.5, getComputedStyle(element, "::placeholder").color, behind(element));
	}
	return found;
})()`

// TestDev_pageByKeyboardAlone plays the flow without a mouse: the focus is visible at every stop, and after each choice it is
// where a person goes on.
func TestDev_pageByKeyboardAlone(t *testing.T) {
	b := startBrowser(t)
	d := startDev(t)
	b.resize(1280, 800)
	b.openPage(d)

	b.tabTo("#init .main")
	b.pressKey("Enter")
	b.text("#requests .pill", Equal("PENDING"))
	b.expectFocus("#init .main")
	b.tabTo("#requests .open")
	b.pressKey("Enter")
	b.value("#text", ContainSubstring("I confirm my phone number"))
	b.expectFocus("#text")
	b.pressKey("Enter")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.expectFocus("#text")

	b.tabTo(`#init input[name="method"]`)
	b.pressKey("ArrowDown")
	b.expectFocus(`#init input[value="TELEGRAM"]`)
	b.tabTo("#init .main")
	b.pressKey("Enter")
	b.tabTo("#requests .open")
	b.pressKey("Enter")
	b.value("#text", HavePrefix("/start "))
	b.expectFocus("#text")
	b.pressKey("Enter")
	b.text("#messages .bubble.business:last-child", ContainSubstring("asks to confirm your phone number"))
	b.tabTo("#share")
	b.pressKey("Enter")
	b.text("#requests .pill", Equal("VERIFIED"))
	b.expectFocus("#text")

	b.tabTo("#chats .whatsapp")
	b.pressKey("Enter")
	b.text(`#chats [aria-current="true"]`, HavePrefix("WhatsApp"))
	b.expectFocus("#chats .whatsapp")
	b.tabTo("#messages")
	b.tabTo("#misbehave summary")
	b.pressKey("Enter")
	b.tabTo("#attack button")
	b.pressKey("Enter")
	b.text("#attack-error", ContainSubstring("the bot has no webhook"))
	b.expectFocus("#attack button")
}

// TestDev_pageTabs: the users are tabs as the ARIA Authoring Practices describe them. One is a stop of the Tab key, the arrow
// keys, Home and End move among them, and the focus stays where it is while the page draws itself anew.
func TestDev_pageTabs(t *testing.T) {
	b := startBrowser(t)
	d := startDev(t)
	b.resize(1280, 800)
	b.openPage(d)

	b.tabTo("#people button")
	selected := func(number int, phone string) {
		t.Helper()
		b.expectFocus(`#people [role="tab"]:nth-child(` + strconv.Itoa(number) + `)[aria-selected="true"][aria-controls="phone"][tabindex="0"]`)
		b.Expect(b.eval(`document.querySelectorAll('#people [tabindex="0"], #people [aria-selected="true"]').length`)).To(BeEquivalentTo(1))
		b.text("#identity", HavePrefix(phone))
		b.Expect(b.eval(`document.getElementById(document.getElementById("phone").getAttribute("aria-labelledby")) === document.activeElement`)).
			To(BeTrue(), "the panel is named by its tab")
	}
	selected(1, "+4915112345678")
	for _, step := range []struct {
		key    string
		number int
		phone  string
	}{
		{"ArrowRight", 2, "+525512345678"}, {"ArrowLeft", 1, "+4915112345678"}, {"ArrowLeft", 5, "+4915198765432"},
		{"ArrowRight", 1, "+4915112345678"}, {"End", 5, "+4915198765432"}, {"Home", 1, "+4915112345678"},
	} {
		b.pressKey(step.key)
		selected(step.number, step.phone)
	}
	d.call(http.StatusCreated, http.MethodPost, d.page+"/sim/users", map[string]string{"name": "Zoe", "phone": "+4915155500001"})
	b.text("#people button:last-child", Equal("Zoe"))
	selected(1, "+4915112345678")
	b.pressKey("ArrowLeft")
	selected(6, "+4915155500001")
}

// tabTo presses the Tab key until the focus is on an element that a selector finds, and expects to see it at every stop.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	b.Eventually(func() any {
		return b.eval(`document.querySelector(` + strconv.Quote(selector) + `)?.checkVisibility() ?? false`)
	}).
		WithTimeout(30*time.Second).Should(BeTrue(), selector)
	const most = 60
	for range most {
		b.pressKey("Tab")
		b.Expect(b.eval(`(() => {
			const style = getComputedStyle(document.activeElement);
			return document.activeElement === document.body || style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
		})()`)).To(BeTrue(), "the focus is visible")
		if b.eval(`document.activeElement.matches(`+strconv.Quote(selector)+`)`) == true {
			return
		}
	}
	b.t.Fatalf("the Tab key does not lead to %s", selector)
}

// expectFocus waits until the focus is on an element that a selector finds.
func (b *browser) expectFocus(selector string) {
	b.t.Helper()
	b.Eventually(func() any { return b.eval(`document.activeElement.matches(` + strconv.Quote(selector) + `)`) }).
		WithTimeout(30*time.Second).Should(BeTrue(), "the focus is on %s", selector)
}
