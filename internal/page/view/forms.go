package view

import "fmt"

// asksDigits reports whether the page has the form of the digits: only where it can lead on with them.
func (d *document) asksDigits() bool { return d.view.State == Digits && d.view.ReturnURL != "" }

// writeDigits writes the form of the digits. Digits are written from left to right in every language.
func (d *document) writeDigits() {
	v, t := d.view, d.texts
	action := v.PageURL + "/confirm"
	if v.Scanned {
		action += "?scanned"
	}
	fmt.Fprintf(d, `<form method="post" action="%s"%s><label for="digits">%s</label>`,
		link(action), d.targetAttribute("_top"), text(d.fill(t.DigitsLabel)))
	fmt.Fprintf(d, `<input id="digits" name="code" dir="ltr" inputmode="numeric" autocomplete="one-time-code" required`+
		` pattern="%s" title="%s"`, digitsPattern, text(d.fill(t.NotDigits)))
	if problem := d.problemText(); problem != "" {
		fmt.Fprintf(d, ` aria-invalid="true" aria-describedby="problem" autofocus>`+
			`<p id="problem" role="alert"><span class="icon" aria-hidden="true">!</span> %s</p>`, text(d.fill(problem)))
	} else {
		d.WriteString(">")
	}
	fmt.Fprintf(d, `<button class="button">%s</button></form>`, text(d.fill(t.DigitsSend)))
}

// digitsPattern is what a field of digits takes: six of any script, with spaces.
const digitsPattern = `\s*(\p{Nd}[\s\-]*){6}`

func (d *document) problemText() string {
	switch d.view.Problem {
	case NotDigits:
		return d.texts.NotDigits
	case WrongDigits:
		return d.texts.WrongDigits
	case NotChecked:
		return d.texts.NotChecked
	default:
		return ""
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
	if v.ReturnURL == "" || v.State != Ready && v.State != OtherNumber && v.State != Hidden {
		return
	}
	fmt.Fprintf(d, `<form method="post" action="%s/wrong-number"%s><button class="plain">%s</button></form>`,
		link(v.PageURL), d.targetAttribute("_top"), text(d.fill(d.texts.WrongNumber)))
}
