package view

import "fmt"

// asksDigits reports whether the page has the form of the digits: only where it can lead on with them.
func (d *document) asksDigits() bool {
	v := d.view
	return v.ReturnURL != "" && (v.State == Digits || v.AsksCode && !v.isFinal())
}

// writeDigits writes the form of the digits. Digits are written from left to right in every language.
func (d *document) writeDigits() {
	v, t := d.view, d.texts
	label, format, pattern := t.DigitsLabel, t.NotDigits, digitsPattern
	if v.AsksCode {
		pattern = codePattern
	}
	if v.AsksCode && v.State != Digits {
		label, format = t.CodeLabel, t.NotCode
	}
	action := v.PageURL + "/confirm"
	if v.Scanned {
		action += "?scanned"
	}
	fmt.Fprintf(d, `<form method="post" action="%s"%s><label for="digits">%s</label>`,
		link(action), d.targetAttribute("_top"), text(d.fill(label)))
	fmt.Fprintf(d, `<input id="digits" name="code" dir="ltr" inputmode="numeric" autocomplete="one-time-code" required`+
		` pattern="%s" title="%s"`, pattern, text(d.fill(format)))
	if problem := d.problemText(format); problem != "" {
		fmt.Fprintf(d, ` aria-invalid="true" aria-describedby="problem" autofocus>`+
			`<p id="problem" role="alert"><span class="icon" aria-hidden="true">!</span> %s</p>`, text(d.fill(problem)))
	} else {
		d.WriteString(">")
	}
	fmt.Fprintf(d, `<button class="button">%s</button></form>`, text(d.fill(t.DigitsSend)))
}

// digitsPattern is what a field of digits takes: six of any script, with spaces. codePattern takes eight, too: six come in the chat to
// who sent a message in place of the code.
const (
	digitsPattern = `\s*(\p{Nd}[\s\-]*){6}`
	codePattern   = digitsPattern + `((\p{Nd}[\s\-]*){2})?`
)

// problemText returns what is wrong with the digits that were entered; format is the sentence for those in another form.
func (d *document) problemText(format string) string {
	switch d.view.Problem {
	case NotDigits:
		return format
	case WrongDigits:
		return d.texts.WrongDigits
	case NotChecked:
		return d.texts.NotChecked
	default:
		return ""
	}
}

// writeWayOfCode writes the way from a code to a message in its place, or back. The sentence is shown after TextDelay, by the style alone.
func (d *document) writeWayOfCode() {
	v, t := d.view, d.texts
	switch {
	case v.TextURL != "":
		class := "later"
		if v.TextDelay > 0 {
			class += " soon"
		}
		fmt.Fprintf(d, `<p class="%s">%s <a class="switch" id="text" href="%s">%s</a></p>`, class,
			d.fillHTML(t.NoCode), link(v.TextURL), text(d.fill(t.SendText)))
	case v.CodeURL != "":
		fmt.Fprintf(d, `<p><a class="switch" id="code" href="%s">%s</a></p>`, link(v.CodeURL), text(d.fill(t.EnterCode)))
	}
}

// writeCancel writes the button with which the user ends a pending request.
func (d *document) writeCancel() {
	v := d.view
	if !v.Session || v.isFinal() {
		return
	}
	fmt.Fprintf(d, `<form method="post" action="%s/cancel"><button class="button cancel">%s</button></form>`,
		link(v.PageURL), text(d.fill(d.texts.Cancel)))
}

// writeWrongNumber writes the button that leads back to enter another number, where the user reads the number and nothing is under way.
func (d *document) writeWrongNumber() {
	v := d.view
	if v.ReturnURL == "" || v.State != Ready && v.State != Code && v.State != OtherNumber && v.State != Hidden {
		return
	}
	fmt.Fprintf(d, `<form method="post" action="%s/wrong-number"%s><button class="plain">%s</button></form>`,
		link(v.PageURL), d.targetAttribute("_top"), text(d.fill(d.texts.WrongNumber)))
}
