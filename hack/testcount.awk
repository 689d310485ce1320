# Counts tests: reads `go test -json` and the plain output of the ginkgo command, prints "N passed, N failed, N skipped".
# A Go test counts once, unless it has subtests, which count in its place, or runs a Ginkgo suite, whose specs count in
# its place. The exit code is 1 when anything failed, and also when nothing ran: a green run without a test proves nothing.
# The plain output counts as one more suite; whether its command failed follows it as an event without package and test.

# number returns the digits before a word such as Passed.
function number(text, word) {
	return match(text, "[0-9]+ " word) ? substr(text, RSTART) + 0 : 0
}

# addSummary counts the specs of a line that ends a Ginkgo suite; pending ones are skipped ones.
function addSummary(suite, text) {
	gsub(/(\\u001b|\033)\[[0-9;]*m/, "", text)
	if (text !~ /^(\\t| )*(SUCCESS!|FAIL!).* -- [0-9]+ Passed \| [0-9]+ Failed \|.* [0-9]+ Skipped/) return
	sub(/.* -- /, "", text)
	hasChildren[suite] = 1
	passed += number(text, "Passed")
	skipped += number(text, "Pending") + number(text, "Skipped")
	addFailed(suite, number(text, "Failed"))
}

# addFailed counts failures, and explains with them why everything around them failed too.
function addFailed(test, n,   name) {
	failed += n
	if (!n) return
	explained[test] = 1
	explained[package[test]] = 1
	for (name = test; sub(/\/[^\/]*$/, "", name) && index(name, " ");) explained[name] = 1
}

substr($0, 1, 1) != "{" {
	addSummary("", $0)
	next
}

{ action = field("Action") }

# A package's events have no test; those of the compiler have no package.
{ test = field("Package") (field("Test") == "" ? "" : " " field("Test")) }

action == "output" {
	addSummary(test, field("Output"))
	next
}

action ~ /^build-/ { next }

!(test in result) {
	result[test] = "unfinished"
	package[test] = field("Package")
	isPackage[test] = test == package[test] && test != ""
	order[++tests] = test
	for (name = test; sub(/\/[^\/]*$/, "", name) && index(name, " ");) hasChildren[name] = 1
}

action == "pass" || action == "fail" || action == "skip" { result[test] = action }

END {
	# A test comes after its parent and its package: from behind, what explains a failure is known before it.
	for (i = tests; i > 0; i--) {
		test = order[i]
		if (result[test] != "pass" && result[test] != "skip") {
			if (!explained[test]) addFailed(test, 1)
		} else if (!isPackage[test] && !hasChildren[test]) {
			if (result[test] == "pass") passed++
			else skipped++
		}
	}
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit failed > 0 || passed == 0
}
