# Names what failed, each with the beginning of what it printed: reads what testcount.awk reads. Only the end of a long output is
# kept in some places, so a few hundred characters have to do; the whole stands in the log and in the JSON.

# list names a failure, with the beginning of its text.
function list(name, text) {
	printf "failed: %s%s\n", name, text == "" ? "" : ": " substr(text, 1, 400)
}

# addSpec lists a spec from the summary that ends a Ginkgo suite.
function addSpec(text) {
	text = plain(text)
	if (!sub(/^\[(FAIL|PANICKED!|TIMEDOUT|INTERRUPTED)\] /, "", text)) return 0
	list("spec", text)
	return 1
}

substr($0, 1, 1) != "{" { addSpec($0); next }

{ action = field("Action"); test = field("Package") (field("Test") == "" ? "" : " " field("Test")) }

action == "output" {
	text = field("Output")
	if (addSpec(text)) explained[test] = 1
	text = plain(text)
	if (length(printed[test]) < 400 && text !~ /^(=== |--- |FAIL)/) printed[test] = printed[test] (printed[test] == "" ? "" : " ") text
}

action == "build-output" { printed["build"] = plain(printed["build"] " " field("Output")) }

action == "fail" && test != "" {
	if (!explained[test]) {
		name = test
		sub(/^[^ ]*\//, "", name)
		list(name, printed[test] == "" ? printed["build"] : printed[test])
	}
	# Its parents and its package failed with it.
	explained[field("Package")] = 1
	for (name = test; sub(/\/[^\/]*$/, "", name) && index(name, " ");) explained[name] = 1
}
