package main

import "time"

// Mutant is a defect that is planted in the product while one suite runs, which has to notice it.
type Mutant struct {
	// Name identifies the mutant in results: words with hyphens.
	Name string
	// Promise is the document and, in short, the promise that the defect breaks.
	Promise string
	// Symbol, Old and New are the edit.
	Symbol, Old, New string
	// Also are further edits that the defect takes.
	Also []Edit
	// Suite is the name of the suite that must notice.
	Suite string
	// Test is a regular expression of the cheapest tests that notice: of Go tests, of specs in a suite of Ginkgo's, or of the
	// line that a program that judges prints of an invariant. A failure of anything else is no noticing.
	Test string
	// Hangs says that the suite notices by not ending in time. Without it the time limit is no noticing.
	Hangs bool
}

// Edit replaces a text inside one declaration.
type Edit struct {
	// Symbol is the declaration: a function, method, type, variable or constant, such as Verify, (*Request).Verify or
	// verification.(*Request).Verify. The package's name decides only where several declarations fit, so that a declaration
	// may move.
	Symbol string
	// Old occurs once in the declaration, whatever its white space. New takes its place.
	Old, New string
}

func (m Mutant) edits() []Edit {
	return append([]Edit{{Symbol: m.Symbol, Old: m.Old, New: m.New}}, m.Also...)
}

// Suite is a test package, or a program that judges.
type Suite struct {
	// Package is the folder from the repository's root, such as ./internal/phone.
	Package string
	// Specs is the Go test that runs a package's specs; empty where Mutant.Test names Go tests.
	Specs string
	// Command is run in the place of the package's tests. workerDir in it stands for a folder of the run's own.
	Command []string
	// Whole says that the suite runs whole processes, so that any file of the product may change its outcome.
	Whole bool
	// CI says that the suite is in the slice of continuous integration.
	CI bool
	// Limit bounds one run; zero is a minute.
	Limit time.Duration
}

// workerDir stands for the folder of a worker in the command of a suite.
const workerDir = "{dir}"

func (s Suite) limit() time.Duration {
	if s.Limit > 0 {
		return s.Limit
	}
	return time.Minute
}
