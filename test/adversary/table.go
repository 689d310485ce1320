package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/phoneproof/phoneproof/test/adversary/ledger"
)

// line is what a run came to for an attack, or for a kind of people.
type line struct {
	scenes, begun, refused, proven, declined, wrong, responses, told, toldVerified, verified int
}

// writeTable prints what each attack, and each kind of people, came to.
func writeTable(out io.Writer, records []ledger.Record) {
	byAttack, byKind := countLines(records)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "  \tattack\tscenes\tinits\trefused\tproven\tNot me\twrong codes\tresponses\tread out\tthen verified\telse verified\t")
	for _, a := range attacks() {
		writeLine(table, a.row, a.name, byAttack[a.name])
	}
	for _, kind := range victimKinds() {
		writeLine(table, "", kind, byKind[kind])
	}
	for _, kind := range append(honestKinds(), ledger.Late) {
		writeLine(table, "", "honest, "+kind, byKind[kind])
	}
	_ = table.Flush() // of a strings.Builder
}

func writeLine(out io.Writer, row, name string, l *line) {
	if l == nil {
		l = &line{}
	}
	fmt.Fprintf(out, "  %s\t%s\t", row, name)
	for _, count := range []int{
		l.scenes, l.begun, l.refused, l.proven, l.declined, l.wrong, l.responses, l.told, l.toldVerified, l.verified,
	} {
		fmt.Fprintf(out, "%d\t", count)
	}
	fmt.Fprintln(out)
}

// countLines counts the records by attack and by kind. Verified counts the sessions of attackers to whom no digits were read out, and
// those of honest users.
func countLines(records []ledger.Record) (byAttack, byKind map[string]*line) {
	byAttack, byKind = map[string]*line{}, map[string]*line{}
	talked, begun := map[string]bool{}, map[string]ledger.Record{}
	for _, r := range records {
		if r.Kind == ledger.Talked {
			talked[r.Session] = true
		}
		if r.Kind == ledger.Begun {
			begun[r.Request] = r
		}
	}
	for _, r := range records {
		of := r
		if r.Kind == ledger.Redeemed {
			of = begun[r.Request]
		}
		for key, lines := range map[string]map[string]*line{of.Attack: byAttack, of.Victim: byKind} {
			if key == "" {
				continue
			}
			if lines[key] == nil {
				lines[key] = &line{}
			}
			lines[key].add(r, talked[r.Session])
		}
	}
	return byAttack, byKind
}

func (l *line) add(r ledger.Record, talked bool) {
	switch r.Kind {
	case ledger.Scene:
		l.scenes++
	case ledger.Begun:
		l.begun++
	case ledger.Refused:
		l.refused++
	case ledger.Messaged:
		l.proven++
	case ledger.Declined:
		l.declined++
	case ledger.Fetched:
		l.responses += r.Count
	case ledger.Talked:
		l.told++
	case ledger.Tried, ledger.Redeemed:
		if r.Result == resultWrong || r.Result == "wrong_code" {
			l.wrong++
		}
	case ledger.Member:
		switch {
		case r.Verified && talked:
			l.toldVerified++
		case r.Verified && (r.Attack == "" || ledger.IsAttacker(r.Party)):
			l.verified++
		}
	default: // not of a scene
	}
}
