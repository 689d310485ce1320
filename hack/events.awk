# Functions for programs that read the events of `go test -json`: awk -f hack/events.awk -f PROGRAM.

# field returns a string of a JSON line, as it is escaped there.
function field(name,   start, rest) {
	start = index($0, "\"" name "\":\"")
	if (!start) return ""
	rest = substr($0, start + length(name) + 4)
	match(rest, /^([^"\\]|\\.)*/)
	return substr(rest, 1, RLENGTH)
}

# plain undoes the escapes of text that is read by people.
function plain(text) {
	gsub(/(\\u001b|\033)\[[0-9;]*m/, "", text)
	gsub(/\\[nt]/, " ", text)
	gsub(/\\"/, "\"", text)
	gsub(/\\u003c/, "<", text)
	gsub(/\\u003e/, ">", text)
	gsub(/  +/, " ", text)
	sub(/^ /, "", text)
	sub(/ $/, "", text)
	return text
}
