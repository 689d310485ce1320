package main

import "time"

// suites are the tests that must notice mutants, by name. Only this table has their packages, so that moving a package
// changes one line.
//
//nolint:gochecknoglobals // a table
var suites = map[string]Suite{
	"domain":        {Package: "./internal/verification", CI: true},
	"phone":         {Package: "./internal/phone", CI: true},
	"texts":         {Package: "./internal/texts", CI: true},
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
	"page":          {Package: "./internal/page"},
	"page view":     {Package: "./internal/page/view"},
	"health":        {Package: "./internal/health"},
	"settings":      {Package: "./internal/settings"},
	"lease":         {Package: "./internal/leader"},
	"requests":      {Package: "./controllers/request"},
	"callbacks":     {Package: "./controllers/callback"},
	"status":        {Package: "./controllers/projectstatus"},
	"server":        {Package: "./internal/server"},
	"render":        {Package: "./controllers/project/render"},
	"plugin":        {Package: "./cmd/kubectl-phoneproof", Limit: minutes(3)},
	"doctor":        {Package: "./internal/plugin/doctor"},
	"report":        {Package: "./internal/plugin/report"},
	// Few faults: the mutants are noticed without them, and faults may explain deviations.
	"chaos": {
		Package: "./test/chaos", Whole: true, Limit: minutes(5),
		Command: []string{
			"go", "run", "./test/chaos", "-store=postgresql", "-requests=1000", "-rate=0", "-kills=4", "-seed=1", "-dir=" + workerDir,
		},
	},
}

// minutes returns a limit of n minutes.
func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }
