package main

import "time"

// Mutant is a defect that is planted in the product while one suite runs, which must notice it.
type Mutant struct {
	// Name identifies the mutant in results: words with hyphens.
	Name string
	// Promise is the document and, in short, the promise that the defect breaks.
	Promise string
	// Symbol, Old and New are the edit.
	Symbol, Old, New string
	// Also are further edits of the defect.
	Also []Edit
	// Suite is the name of the suite that must notice.
	Suite string
	// Test is a regular expression of the cheapest tests that notice: of Go tests, of specs in a Ginkgo suite, or of
	// the line that a judging program prints about an invariant. No other failure counts.
	Test string
	// Hangs reports whether the suite notices the mutant by exceeding its time limit. Otherwise a timeout does not
	// count.
	Hangs bool
}

// Edit replaces a text inside one declaration.
type Edit struct {
	// Symbol is the declaration: a function, method, type, variable or constant, such as Verify, (*Request).Verify or
	// verification.(*Request).Verify. The package's name only decides between several declarations that fit, so that a
	// declaration may move.
	Symbol string
	// Old occurs once in the declaration, with any white space, and is replaced by New.
	Old, New string
}

func (m Mutant) edits() []Edit {
	return append([]Edit{{Symbol: m.Symbol, Old: m.Old, New: m.New}}, m.Also...)
}

// Suite is a test package, or a program that judges a run.
type Suite struct {
	// Package is the folder from the repository's root, such as ./internal/phone.
	Package string
	// Specs is the Go test that runs a package's specs; empty if Mutant.Test names Go tests.
	Specs string
	// Command runs instead of the package's tests. workerDir in it stands for the worker's folder.
	Command []string
	// Whole reports whether the suite runs whole processes, so that any file of the product may change its outcome.
	Whole bool
	// CI reports whether continuous integration runs the suite.
	CI bool
	// Limit bounds one run; zero is a minute.
	Limit time.Duration
}

// workerDir stands for a worker's folder in the command of a suite.
const workerDir = "{dir}"

func (s Suite) limit() time.Duration {
	if s.Limit > 0 {
		return s.Limit
	}
	return time.Minute
}
