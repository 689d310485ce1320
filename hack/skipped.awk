# Lists the tests that were skipped, each with its reason: reads what testcount.awk reads. A Go test's reason is what it printed
# last; specs come from test/skipped. The exit code is 1 when a Go test gives none: then what was not tested is unknown.

function list(name, reason) {
	skipped++
	printf "skipped: %s: %s\n", name, reason
}

substr($0, 1, 1) != "{" {
	if (sub(/^ *SKIPPED SPEC /, "")) list("spec", $0)
	next
}

{ action = field("Action"); test = field("Package") " " field("Test") }

action == "output" {
	text = plain(field("Output"))
	if (sub(/^SKIPPED SPEC /, "", text)) list("spec", text)
	else if (text !~ /^(=== |--- )/ && text != "") reason[test] = text
}

action == "skip" && field("Test") != "" {
	if (reason[test] == "") unknown = 1
	sub(/^[^ ]*\//, "", test)
	list(test, reason[field("Package") " " field("Test")] == "" ? "NO REASON GIVEN" : reason[field("Package") " " field("Test")])
}

END { exit unknown }
