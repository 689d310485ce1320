package doctor

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Report is what was found at one project.
type Report struct {
	Namespace string `json:"namespace,omitempty"`
	// Name is empty for the installation.
	Name string `json:"name,omitempty"`
	// Healthy is set if nothing was found. What was not checked may be broken all the same.
	Healthy    bool         `json:"healthy"`
	Findings   []Finding    `json:"findings"`
	NotChecked []NotChecked `json:"notChecked"`
}

// Finding is one thing that is broken.
type Finding struct {
	// Check is the stable name of what was found.
	Check string `json:"check"`
	// Problem says what is wrong, Evidence where that is seen, and Remedy what to do.
	Problem  string `json:"problem"`
	Evidence string `json:"evidence"`
	Remedy   string `json:"remedy"`
	// See is where the documentation has more.
	See string `json:"see"`
}

// NotChecked is something that was not read, and why.
type NotChecked struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// check is one thing that can be wrong.
type check struct {
	name string
	// problem and remedy are what the report and docs/doctor.md say. NAMESPACE and PROJECT stand for the project's.
	problem, remedy string
	// find returns the evidence; none if it is not so.
	find func(*Facts) []evidence
}

// evidence is where something is seen. remedy replaces the check's where it is known better; reason is that of a condition.
type evidence struct{ text, remedy, reason string }

// see returns a piece of evidence for each text.
func see(texts ...string) []evidence {
	var all []evidence
	for _, text := range texts {
		all = append(all, evidence{text: text})
	}
	return all
}

// Examine returns the report of facts.
func Examine(f *Facts) Report { return examine(f, allChecks()) }

func examine(f *Facts, checks []check) Report {
	r := Report{Namespace: f.Project.Namespace, Name: f.Project.Name, Findings: []Finding{}, NotChecked: []NotChecked{}}
	for _, c := range checks {
		for _, e := range c.find(f) {
			r.Findings = append(r.Findings, newFinding(f, c, e))
		}
	}
	for _, n := range listUnread(f) {
		r.NotChecked = append(r.NotChecked, NotChecked{What: n.What, Why: printable(n.Why)})
	}
	r.Healthy = len(r.Findings) == 0
	return r
}

func newFinding(f *Facts, c check, e evidence) Finding {
	p := f.Project
	remedy := e.remedy
	if remedy == "" {
		remedy = strings.NewReplacer("phoneproof-PROJECT", render.Name(p.Name),
			"NAMESPACE", cmp.Or(p.Namespace, "NAMESPACE"), "PROJECT", p.Name).Replace(c.remedy)
	}
	see := f.Docs.Link("doctor", c.name)
	if e.reason != "" {
		see = f.Docs.Link("conditions", e.reason)
	}
	return Finding{Check: c.name, Problem: c.problem, Evidence: printable(e.text), Remedy: printable(remedy), See: see}
}

// maxText is how many characters of a text are shown. The longest condition names ten Secrets.
const maxText = 1500

// printable returns a text that others wrote as one line without anything that a terminal would act on.
func printable(text string) string {
	var b strings.Builder
	runes := 0
	for _, r := range text {
		switch {
		case runes == maxText:
			return b.String() + "..."
		case r == ' ', unicode.IsGraphic(r) && !unicode.IsSpace(r):
			b.WriteRune(r)
		default: // control characters, line breaks, directions of text, bytes that are no text
			b.WriteRune('?')
		}
		runes++
	}
	return b.String()
}

// listUnread returns what was not read, in a fixed order.
func listUnread(f *Facts) []NotChecked {
	all := []NotChecked{
		{"the projects", f.Projects.Why},
		{"the clock of this machine", f.ServerOffset.Why},
		{"the clock of the pods", f.PodOffset.Why},
		{"the Deployment", f.Deployment.Why},
		{"the pods", f.Pods.Why},
		{"ResourceQuotas", f.Quotas.Why},
		{"LimitRanges", f.Ranges.Why},
		{"NetworkPolicies", f.Policies.Why},
		{"the operator", f.Operators.Why},
		{"the pods of the operator", f.OperatorPods.Why},
		{"the operator's rights in the namespace", f.Refused.Why},
		{"the roles of the pods", f.MissingRoles.Why},
		{"the CRDs", f.MissingFields.Why},
		{"the values of Secrets", f.Secrets.Why},
		{"what arrives at the WhatsApp callback", f.Callbacks.Why},
		{"the address of spec.baseURL", f.Address.Why},
		{"the messengers' platforms", f.Asked.Why},
	}
	var unread []NotChecked
	for _, n := range all {
		if n.Why != "" {
			unread = append(unread, n)
		}
	}
	return unread
}
