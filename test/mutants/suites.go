package main

import "time"

// suites are the tests that must notice mutants, by name. Mutants name them here alone, so that a package that moves changes
// one line.
//
//nolint:gochecknoglobals // a table
var suites = map[string]Suite{
	"domain":        {Package: "./internal/verification", CI: true},
	"phone":         {Package: "./internal/phone", CI: true},
	"webhook":       {Package: "./internal/webhook"},
	"telegram":      {Package: "./internal/messenger/telegram"},
	"whatsapp":      {Package: "./internal/messenger/whatsapp"},
	"replies":       {Package: "./internal/messenger", CI: true},
	"memory":        {Package: "./internal/store/memory", Specs: "TestMemory"},
	"postgres":      {Package: "./internal/store/postgres", Specs: "TestPostgres", Limit: minutes(4)},
	"postgres unit": {Package: "./internal/store/postgres"},
	"objects":       {Package: "./internal/store/kubernetes", Specs: "TestKubernetes", Limit: minutes(4)},
	"objects unit":  {Package: "./internal/store/kubernetes"},
	"http api":      {Package: "./internal/httpapi"},
	"health":        {Package: "./internal/health"},
	"settings":      {Package: "./internal/settings"},
	"clock":         {Package: "./internal/storeclock", CI: true},
	"lease":         {Package: "./internal/leader"},
	"requests":      {Package: "./controllers/request"},
	"terms":         {Package: "./controllers"},
	"callbacks":     {Package: "./controllers/callback"},
	"server":        {Package: "./internal/server"},
	"render":        {Package: "./controllers/project/render"},
	// Few faults: what is to be noticed here is noticed without them, and they would have to be told apart from it.
	"chaos": {
		Package: "./test/chaos", Whole: true, Limit: minutes(5),
		Command: []string{
			"go", "run", "./test/chaos", "-store=postgresql", "-requests=1000", "-rate=0", "-kills=4", "-seed=1", "-dir=" + workerDir,
		},
	},
}

// minutes is a limit.
func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }
