package app

import . "github.com/onsi/gomega"

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
