#!/usr/bin/env bash
# Runs every check but the tests, as many at once as there are processors. All of them run, whatever the first ones find, so
# that one run shows all there is to correct; the exit code is 1 when any of them failed. Nothing in the checkout is changed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source hack/lib.sh

tool=(go tool -modfile=hack/tools/go.mod)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
running=()
failed=()

# check starts a check; what it prints appears when it has ended, so that several can run at once.
check() {
	local name=$1 log=$work/$1
	shift
	while ((${#running[@]} >= $(nproc))); do
		print_ended
	done
	running+=("$name")
	{
		local code=0 start=$SECONDS self=$BASHPID
		"$@" >"$log" 2>&1 </dev/null || code=$?
		echo "$code $((SECONDS - start)) $(processor_time "$self")" >"$log.ended"
	} &
}

# print_ended waits for a check and prints those that have ended. If none is left to wait for, the rest has ended without
# a result: they were killed, or the disk is full.
print_ended() {
	local name code seconds processor waited=0 still=()
	wait -n || waited=$?
	for name in "${running[@]}"; do
		if [[ -s $work/$name.ended ]]; then
			read -r code seconds processor <"$work/$name.ended"
			echo "--- $name: $seconds s, $processor s of processor time"
		elif ((waited == 127)); then
			code=1
			echo "--- $name: ended without a result"
		else
			still+=("$name")
			continue
		fi
		cat "$work/$name"
		if ((code != 0)); then
			failed+=("$name")
			echo "--- $name: FAILED"
		fi
	done
	running=("${still[@]}")
}

# print_unended prints which checks run.
print_unended() {
	local started names=()
	for started in "$work"/*; do
		[[ $started == *.ended || -e $started.ended || ! -f $started ]] || names+=("$(basename "$started")")
	done
	printf 'verify: %d s: %s\n' $SECONDS "$(IFS=,; echo "${names[*]}")"
}

# files lists what git knows or would add, so that neither bin/ nor an ignored file is checked.
files() {
	local file
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
		[[ ! -f $file ]] || echo "$file"
	done
}

scripts() {
	local file ok=0
	while read -r file; do
		bash -n "$file" || ok=1
		[[ -x $file || $file == hack/lib.sh ]] || { echo "$file is not executable"; ok=1; }
	done < <(files '*.sh' .ci/run)
	return $ok
}

format() {
	local unformatted
	unformatted=$(files '*.go' | xargs -r gofmt -s -l) || return 1
	[[ -z $unformatted ]] || { printf 'run make fmt for\n%s\n' "$unformatted"; return 1; }
}

# What generators write is compared in a copy: the other checks read the checkout meanwhile.
up_to_date() {
	local copy=$work/copy
	mkdir "$copy"
	files | xargs -d '\n' cp --parents -t "$copy" && cd "$copy" && git init -q && git add -A &&
		make --no-print-directory generate manifests reference && git add -A -N || return 1
	git --no-pager diff --exit-code || { echo 'run make generate manifests reference'; return 1; }
}

# lint_module runs the linters in a module of its own.
lint_module() {
	local tools=$PWD/hack/tools/go.mod
	cd "$1" && go tool -modfile="$tools" golangci-lint run
}

tidy() {
	local module ok=0
	for module in . docs/examples hack/clients/go hack/cluster hack/coredns hack/envtest hack/kube hack/release hack/tools hack/tools/gremlins hack/tools/helm hack/tools/test sdk/go test/alerts test/sdk/drivers/go; do
		(cd "$module" && go mod tidy -diff) || { echo "run go mod tidy in $module"; ok=1; }
	done
	return $ok
}

# What a server or the operator runs simulates nothing, and the program has nothing of the kubectl plugin.
imports() {
	local foreign ok=0
	if foreign=$(go list -deps ./internal/server ./internal/operator ./controllers/... | grep -E '/internal/(dev|simulator)(/|$)'); then
		printf 'a server or the operator imports\n%s\n' "$foreign"
		ok=1
	fi
	if foreign=$(go list -deps ./cmd/phoneproof | grep -E '/internal/plugin(/|$)|^k8s\.io/cli-runtime/'); then
		printf 'cmd/phoneproof imports\n%s\n' "$foreign"
		ok=1
	fi
	return $ok
}

# The release has programs for systems that no test runs on. Each one more takes about 6 s of processor time.
platforms() {
	go run ./hack/platforms windows/amd64 darwin/arm64
}

# Phrases that a reader has to decode, or that name people who are not meant: CONTRIBUTING.md, "Words". Pages repeat titles of tests
# between stars, and some texts of the product, word by word.
language() {
	local phrases='\b(tells? whether|says? whether|says that|whoever|somebody|nobody|anybody|everybody|(is|are|was|were) told|told of|mend(s|ed|ing)?|he|his|him|she|her)\b'
	! git grep --untracked -nIiE "$phrases" -- '*.go' '*.md' '*.yaml' '*.yml' '*.sh' '*.tpl' '*.txt' Makefile .ci/run \
		':!docs/adr' ':!CHANGELOG.md' ':!hack/verify.sh' ':!*/testdata/*' ':!charts/phoneproof/files/crds' |
		sed -E '/^[^:]*\.md:/s/\*[^*]+\*//g; s/[nN]oBody|send it to nobody else|"nobody"|user postgres or nobody//g' |
		grep -iE ":[0-9]+:.*$phrases"
}

# What the pages name is there: files and titles behind links, targets of make, functions of the walks, metrics and other names of the code; and
# docs/errors.md has each code, and a row for each hint, reason and event that clients meet. A loop that finds too little checks nothing.
pages() {
	local page link name room function file kind row ok=0
	local -A titles=() seen=()
	while IFS=$'\t' read -r page name; do
		titles[$page#$name]=1
	done < <(files '*.md' | xargs awk '
		FNR == 1 { code = 0 }
		/^ *```/ { code = !code }
		!code && /^#+ / { name = tolower($0); sub(/^#+ /, "", name); gsub(/[^a-z0-9_ -]/, "", name); gsub(/ /, "-", name); print FILENAME "\t" name }
		/<a id="/ { name = $0; sub(/.*<a id="/, "", name); sub(/".*/, "", name); print FILENAME "\t" name }')
	while IFS=$'\t' read -r page link; do
		((++seen[links]))
		[[ -e ${link%%#*} && ($link != *.md#* || -n ${titles[$link]-}) ]] || { echo "$page: there is no $link"; ok=1; }
	done < <(files '*.md' | xargs awk '
		FNR == 1 { code = 0 }
		/^ *```/ { code = !code }
		!code { for (rest = $0; match(rest, /\]\([^)]+\)/); rest = substr(rest, RSTART + RLENGTH)) {
			link = substr(rest, RSTART + 2, RLENGTH - 3)
			if (link ~ /^[a-z]+:/) continue
			folder = FILENAME; sub(/[^\/]*$/, "", folder)
			link = link ~ /^#/ ? FILENAME link : folder link
			while (sub(/[^\/.]+\/\.\.\//, "", link));
			print FILENAME "\t" link
		} }')
	while read -r name; do
		((++seen[targets]))
		[[ $name == *= ]] && grep -qw "${name%=}" Makefile || grep -qE "^$name:" Makefile || { echo "there is no make $name"; ok=1; }
	done < <(files README.md CONTRIBUTING.md 'docs/*.md' | xargs grep -ohE '(^|`)make( +([a-z][a-z0-9-]*|[A-Z_]+=[^ `]*))+' |
		grep -oE ' ([a-z][a-z0-9-]*|[A-Z_]+=)' | sort -u)
	while IFS='|' read -r room function file; do
		((++seen[functions]))
		grep -qsE "^func .*\b${function##*.}[[(]" */"$room/$file" */*/"$room/$file" || { echo "docs/architecture.md: $room/$file has no $function"; ok=1; }
	done < <(sed -nE 's/^[0-9]+\. `(\w+)\.([^`]+)`, `([^`]+)`.*/\1|\2|\3/p' docs/architecture.md)
	while IFS= read -r name; do
		((++seen[names]))
		[[ $name == $'\t'* ]] || { echo "a page names $name, which is not in the code"; ok=1; }
	done < <(comm -2 \
		<({
			files README.md CONTRIBUTING.md 'docs/*.md' ':!docs/adr' | xargs grep -ohE '`[A-Z][a-z]+([A-Z][a-z]*)+[`=]|\bphoneproof_[a-z0-9_]+[a-z0-9]' |
				tr -d '`=' | sed -E 's/_(bucket|count|sum)$//' | grep -vxE 'Rss(Anon|File)|ServerSideApply'
			files README.md CONTRIBUTING.md 'docs/*.md' ':!docs/adr' | # conditions of one word
				xargs grep -ohP '\bconditions? \[?`\K[A-Z][a-z]+(?=`)|`\K[A-Z][a-z]+(?=`?( is)?[ =](True|False|Unknown))' | sed 's/^/Condition/'
		} | sort -u) \
		<(files api charts cmd controllers internal ':!*_test.go' ':!*.md' | xargs grep -ohE '\w+' | sort -u))
	while read -r name kind; do
		((++seen[${kind:=rows}]))
		[[ $kind == rows ]] && row='^\| (<a [^>]*></a>)?' || row=
		grep -qE "$row\`$name\`" docs/errors.md || { echo "docs/errors.md has no $name of its $kind"; ok=1; }
	done < <(sed -nE '/^ {12}code:$/,/^ {12}message:$/s/^ *- .*/& codes/; /verification\.update:/d; /x-extensible-enum: \[(shared_contact|SENT|CODE|DELIVERY)/d; s/^ *(- )?(verification\.[a-z]+):?$/\2/p
		/x-extensible-enum:/,/^ *[a-z]+:/{s/.*x-extensible-enum: \[(.*)\]/\1/p; s/^ *- //p}' api/openapi.yaml | tr , '\n')
	while read -r kind row; do
		((${seen[$kind]-0} >= row)) || { echo "only ${seen[$kind]-0} $kind were found, of at least $row"; ok=1; }
	done <<<$'links 400\ntargets 35\nfunctions 25\nnames 150\nrows 30\ncodes 45'
	return $ok
}

# A stranger could register a name that has no owner yet: what is read or printed installs the libraries by file or address.
install_names() {
	local commands='(npm (i|ci|install|add|exec)|npx|yarn (global )?add|pnpm (i|add|install|dlx)|bun (add|x)|bunx|deno add|pip3? install|pipx (install|run)|uvx|uv (pip install|add)|poetry add)'
	! git grep --untracked -nIiP "\b$commands\b([ =]+(?!@?phoneproof)[^ \`|;&]+)*[ =]+[\"']?@?phoneproof[a-z/-]*(?=[\"'\`@=<>~\[), .;]|\$)(?![^ ]*\.(tgz|whl))" -- \
		'*.md' '*.go' '*.ts' '*.mjs' '*.py' '*.json' '*.toml' '*.yaml' '*.sh' ':!hack/verify.sh' | grep -vE -- ' -o phoneproof'
}

# What Kubernetes and the cluster's program share with the product is compiled once if all have the same versions.
same_versions() {
	local module ok=0
	for module in hack/cluster hack/kube; do
		join <(awk '/^\t[a-z]/ { print $1, $2 }' go.mod | sort -u -k1,1) <(awk '/^\t[a-z]/ && !/=>/ { print $1, $2 }' $module/go.mod | sort -u -k1,1) |
			awk -v module=$module '$3 != "v0.0.0" && $2 != $3 { print module "/go.mod has " $1 " " $3 ", and go.mod " $2; different = 1 } END { exit different }' || ok=1
	done
	return $ok
}

# A machine without a way to the vulnerability database cannot check, which is no finding; anything else is one. GOVULNDB names
# another copy of the database, such as a mirror.
vulnerabilities() {
	local output code=0 database=${GOVULNDB:-https://vuln.go.dev}
	output=$("${tool[@]}" govulncheck -db="$database" ./... 2>&1) || code=$?
	if ((code == 1)) && grep -q 'fetching vulnerabilities' <<<"$output"; then
		echo "govulncheck SKIPPED: $database cannot be reached from here, so known vulnerabilities were not looked for" |
			tee -a "$work/skipped"
		return 0
	fi
	printf '%s\n' "$output"
	return $code
}

# Compiled together first: checks that start at once would each compile what their tools have in common.
for module in hack/tools hack/tools/helm; do
	with_progress "compiling the tools of $module" go list -modfile=$module/go.mod -export -deps tool || exit 1
done

start_ticker print_unended
# The long ones begin. go vet is one of the linters.
check 'golangci-lint' "${tool[@]}" golangci-lint run
check 'golangci-lint of the cluster' lint_module hack/cluster
check 'golangci-lint of the release' lint_module hack/release
check 'golangci-lint of the library' lint_module sdk/go
check 'generated files' up_to_date
check 'govulncheck' vulnerabilities
check 'chart' make --no-print-directory chart
check 'go mod tidy' tidy
check 'shell scripts' scripts
check 'imports' imports
check 'platforms' platforms
check 'same versions' same_versions
check 'language' language
check 'pages' pages
check 'install names' install_names
check 'gofmt' format
while ((${#running[@]} > 0)); do
	print_ended
done
end_ticker

echo
if ((${#failed[@]} > 0)); then
	echo "verify FAILED: $(IFS=,; echo "${failed[*]}")"
elif [[ -s $work/skipped ]]; then
	echo 'verify: all good, but not everything was checked:'
	cat "$work/skipped"
else
	echo 'verify: all good'
fi
print_time 'make verify' '3 min, warm'
exit $((${#failed[@]} > 0))
