#!/usr/bin/env bash
# Generates clients from api/openapi.yaml with the commands of docs/clients.md, word for word, compiles them, and lets each
# call a running `phoneproof dev`. Without Node the two TypeScript clients are skipped. The last line is the number of checks.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source hack/lib.sh

work=$PWD/bin/clients
results=$work/results
dev=
trap '[[ -z $dev ]] || { kill "$dev" && wait "$dev"; } 2>/dev/null; end_groups 10' EXIT

# check runs a command in a folder of $work. What it printed is shown if it failed.
check() {
	local folder=$1 name=$2 output
	shift 2
	if output=$(cd "$work/$folder" && timeout 300 "$@" 2>&1 </dev/null); then
		echo "PASS $name" | tee -a "$results"
		return
	fi
	printf '%s\nFAIL %s\n' "$output" "$name" | tee -a "$results"
	return 1
}

# generate runs the command that docs/clients.md names for a tool.
generate() {
	local folder=$1 name=$2 words
	mapfile -t words < <(grep -xE "(go tool|npx) $name .*" docs/clients.md)
	if ((${#words[@]} != 1)); then
		echo "FAIL $name: docs/clients.md has ${#words[@]} commands" | tee -a "$results"
		return 1
	fi
	read -ra words <<<"${words[0]}"
	check "$folder" "${words[*]}" "${words[@]}"
}

# call runs a compiled client, which prints PASS or FAIL for each of its checks.
call() {
	local folder=$1 name=$2
	shift 2
	(cd "$work/$folder" && timeout 120 "$@" </dev/null) | tee -a "$results" || echo "FAIL $name: exit code $?" | tee -a "$results"
}

# start_dev starts dev on free ports, and reads where it is from what it prints.
start_dev() {
	local first second third output
	export API_URL='' API_KEY='' SIMULATOR_URL=''
	coproc DEV { exec "bin/phoneproof-$(go env GOOS)-$(go env GOARCH)" dev --bind-address=127.0.0.1:0 --simulator-bind-address=127.0.0.1:0 \
		--health-bind-address=127.0.0.1:0 2>"$work/dev.log"; }
	# Both variables are gone as soon as dev is.
	dev=${DEV_PID-} output=${DEV-}
	while read -r -t 60 -u "$output" first second third _; do
		case "$first $second" in
		'Page http'*) SIMULATOR_URL=${second%/} ;;
		'API http'*) API_URL=$second ;;
		'API key') API_KEY=$third ;;
		'Try it:') break ;;
		esac
	done
	[[ -n $SIMULATOR_URL && -n $API_URL && -n $API_KEY ]] && await_listener "${API_URL#http://}"
}

# await_listener waits until an address accepts connections.
await_listener() {
	local deadline=$((SECONDS + 60))
	until (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; do
		kill -0 "$dev" 2>/dev/null && ((SECONDS < deadline)) || return 1
		sleep 0.1
	done
}

verify_go() {
	generate go oapi-codegen && check go 'oapi-codegen: go vet' go vet ./... &&
		check go 'oapi-codegen: go build' go build -o client . && call go oapi-codegen ./client
}

# Older releases of Node do not run the generators.
has_node() {
	command -v npm >/dev/null && node -e \
		'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || major === 20 && minor >= 19 ? 0 : 1)'
}

verify_npm() {
	check npm 'npm ci' npm ci --prefer-offline --no-audit --no-fund &&
		generate npm openapi-typescript && generate npm openapi-ts && check npm 'tsc --strict' npx tsc || return
	check npm 'standardwebhooks and svix, in docs/webhooks.md' go test -C ../../.. -count=1 -run '/webhooks.md' ./test/docs
	call npm openapi-typescript node out/openapi-typescript.js
	call npm hey-api node out/hey-api.js
}

rm -rf "$work" && cp -R hack/clients "$work" && cp api/openapi.yaml "$work/go" && cp api/openapi.yaml "$work/npm" &&
	make --no-print-directory build || exit
start_ticker print_time_of verify-clients 0
if ! start_dev; then
	cat "$work/dev.log"
	echo 'FAIL phoneproof dev did not start' | tee -a "$results"
else
	verify_go
	if has_node; then
		verify_npm
	else
		printf 'SKIP %s: Node 20.19 or newer, with npm, is not installed\n' openapi-typescript hey-api standardwebhooks svix | tee -a "$results"
	fi
fi
print_time 'make verify-clients' '1 min, warm'
awk '{ n[$1]++ } END { printf "%d passed, %d failed, %d skipped\n", n["PASS"], n["FAIL"], n["SKIP"]; exit n["FAIL"] > 0 }' "$results"
