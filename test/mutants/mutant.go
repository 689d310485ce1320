package main

import (
	"slices"
	"time"
)

// Mutant is a defect that is planted in the product while one suite runs, which must notice it.
type Mutant struct {
	// Name identifies the mutant in results: words with hyphens.
	Name string
	// Promise is a section of the documentation, as docs/PAGE.md#SECTION, and in short what the defect breaks of it.
	Promise string
	// Symbol is the declaration that changes: a function, method, type, variable or constant, such as verification.(*Request).Verify.
	// The package's name only decides between several that fit, so that a declaration may move.
	Symbol string
	// Old occurs once in the declaration, with any white space, and is replaced by New.
	Old, New string
	// Suite is the name of the suite that must notice.
	Suite string
	// Test is a regular expression of the cheapest tests that notice: of Go tests, of specs in a Ginkgo suite, or of the line that a
	// judging program prints about an invariant. No other failure counts.
	Test string
}

// allMutants returns the list.
func allMutants() []Mutant {
	return slices.Concat(memoryMutants, postgresMutants, objectsMutants, loopMutants, inboundMutants, chaosMutants, sessionMutants,
		proofMutants, tenantMutants, codeMutants)
}

// Suite is a test package, or a program that judges a run.
type Suite struct {
	// Package is the folder from the repository's root, such as ./internal/phone.
	Package string
	// Specs is the Go test that runs a package's specs; empty if Mutant.Test names Go tests.
	Specs string
	// Program has the arguments with which the package is run as a program, in place of its tests; {dir} in them is a folder of the run's own.
	Program []string
	// CI reports whether continuous integration plants the mutants of the suite.
	CI bool
	// Limit bounds one run; zero is a minute.
	Limit time.Duration
}

// suites are the tests that must notice mutants, by name. Only this table has their packages, so that moving a package changes one line.
var suites = map[string]Suite{
	"domain": {Package: "./internal/verification", CI: true},
	"page":   {Package: "./internal/page", CI: true},
	// What continuous integration has not the time for.
	"domain more":  {Package: "./internal/verification"},
	"page more":    {Package: "./internal/page"},
	"webhook":      {Package: "./internal/webhook", CI: true},
	"replies":      {Package: "./internal/messenger"},
	"telegram":     {Package: "./internal/messenger/telegram"},
	"whatsapp":     {Package: "./internal/messenger/whatsapp"},
	"memory":       {Package: "./internal/store/memory", Specs: "TestMemory"},
	"postgres":     {Package: "./internal/store/postgres", Specs: "TestPostgres", Limit: 4 * time.Minute},
	"objects":      {Package: "./internal/store/kubernetes", Specs: "TestKubernetes", Limit: 4 * time.Minute},
	"objects unit": {Package: "./internal/store/kubernetes"},
	"http api":     {Package: "./internal/httpapi"},
	"settings":     {Package: "./internal/settings"},
	"lease":        {Package: "./internal/leader"},
	"requests":     {Package: "./controllers/request"},
	"callbacks":    {Package: "./controllers/callback"},
	"server":       {Package: "./internal/server"},
	"adversary":    {Package: "./test/adversary", Limit: 4 * time.Minute},
	// Few faults: the mutants are noticed without them, and faults may explain deviations.
	"chaos": {
		Package: "./test/chaos", Limit: 5 * time.Minute,
		Program: []string{"-store=postgresql", "-requests=1000", "-rate=0", "-kills=4", "-codekills=0", "-seed=1", "-dir={dir}"},
	},
	"chaos codes": {
		Package: "./test/chaos", Limit: 5 * time.Minute,
		Program: []string{"-store=postgresql", "-requests=2", "-rate=0", "-kills=0", "-codekills=16", "-seed=1", "-dir={dir}"},
	},
}
