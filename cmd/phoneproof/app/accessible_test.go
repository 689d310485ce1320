package app

import (
	"net/http"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
)

// expectAllShown expects that nothing is cut off in a state of the page, in narrow windows too, and that fields and buttons stand
// out from what is around them.
func (b *tab) expectAllShown(state string) {
	b.t.Helper()
	for _, width := range []int{320, 400, 800, 1100, 1280} {
		b.Resize(width, 800)
		b.Await(cutOff, BeEmpty(), "%s, %d pixels wide", state, width)
	}
	for _, scheme := range []string{"dark", "light"} {
		b.EmulateScheme(scheme)
		b.Expect(b.Eval(indistinct)).To(BeEmpty(), "%s, %s", state, scheme)
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
	t.Parallel()
	d := startDev(t)
	b := openTab(t)
	b.Resize(1280, 800)
	b.openPage(d)

	b.TabTo("#init .main")
	b.PressKey("Enter")
	b.AwaitText("#requests .pill", Equal("PENDING"))
	b.AwaitFocus("#init .main")
	b.TabTo("#requests .open")
	b.PressKey("Enter")
	b.AwaitValue("#text", ContainSubstring("I confirm my phone number"))
	b.AwaitFocus("#text")
	b.PressKey("Enter")
	b.AwaitText("#requests .pill", Equal("VERIFIED"))
	b.AwaitFocus("#text")

	b.TabTo(`#init input[name="method"]`)
	b.PressKey("ArrowDown")
	b.AwaitFocus(`#init input[value="TELEGRAM"]`)
	b.TabTo("#init .main")
	b.PressKey("Enter")
	b.TabTo("#requests .open")
	b.PressKey("Enter")
	b.AwaitValue("#text", HavePrefix("/start "))
	b.AwaitFocus("#text")
	b.PressKey("Enter")
	b.AwaitText("#messages .bubble.business:last-child", ContainSubstring("asks to confirm your phone number"))
	b.TabTo("#share")
	b.PressKey("Enter")
	b.AwaitText("#requests .pill", Equal("VERIFIED"))
	b.AwaitFocus("#text")

	b.TabTo("#chats .whatsapp")
	b.PressKey("Enter")
	b.AwaitText(`#chats [aria-current="true"]`, HavePrefix("WhatsApp"))
	b.AwaitFocus("#chats .whatsapp")
	b.TabTo("#messages")
}

// TestDev_pageTabs: the users are tabs as the ARIA Authoring Practices describe them. One is a stop of the Tab key, the arrow
// keys, Home and End move among them, and the focus stays where it is while the page draws itself anew.
func TestDev_pageTabs(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	b := openTab(t)
	b.Resize(1280, 800)
	b.openPage(d)

	b.TabTo("#people button")
	selected := func(number int, phone string) {
		t.Helper()
		b.AwaitFocus(`#people [role="tab"]:nth-child(` + strconv.Itoa(number) + `)[aria-selected="true"][aria-controls="phone"][tabindex="0"]`)
		b.Expect(b.Eval(`document.querySelectorAll('#people [tabindex="0"], #people [aria-selected="true"]').length`)).To(BeEquivalentTo(1))
		b.AwaitText("#identity", HavePrefix(phone))
		b.Expect(b.Eval(`document.getElementById(document.getElementById("phone").getAttribute("aria-labelledby")) === document.activeElement`)).
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
		b.PressKey(step.key)
		selected(step.number, step.phone)
	}
	d.call(http.StatusCreated, http.MethodPost, d.page+"/sim/users", map[string]string{"name": "Zoe", "phone": "+4915155500001"})
	b.AwaitText("#people button:last-child", Equal("Zoe"))
	selected(1, "+4915112345678")
	b.PressKey("ArrowLeft")
	selected(6, "+4915155500001")
}
