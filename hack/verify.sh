#!/usr/bin/env bash
# Runs every check but the tests. All of them run, whatever the first ones find, so that one run shows all there is to
# mend; the exit code is 1 when any of them failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# What generators write, and nobody edits.
generated=(
	'api/*/zz_generated.*'
	'api/*/applyconfiguration/'
	config/crd/bases/
	config/rbac/role.yaml
	config/rbac/server_kubernetes_role.yaml
	config/rbac/server_postgresql_role.yaml
	docs/reference/api.md
	charts/phoneproof/files/admission/
	charts/phoneproof/files/crds/
	charts/phoneproof/files/rbac/
)
tool=(go tool -modfile=hack/tools/go.mod)
failed=()

# check runs a step, with its time, and remembers its failure.
check() {
	local name=$1 start=$SECONDS
	shift
	echo "--- $name"
	if ! "$@"; then
		failed+=("$name")
		echo "--- $name: FAILED after $((SECONDS - start)) s"
	elif ((SECONDS - start > 1)); then
		echo "--- $name: $((SECONDS - start)) s"
	fi
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
		[[ -x $file ]] || { echo "$file is not executable"; ok=1; }
	done < <(files '*.sh' .ci/run)
	return $ok
}

format() {
	local unformatted
	unformatted=$(files '*.go' | xargs -r gofmt -s -l) || return 1
	[[ -z $unformatted ]] || { printf 'run make fmt for\n%s\n' "$unformatted"; return 1; }
}

up_to_date() {
	local untracked
	make --no-print-directory generate manifests docs || return 1
	git --no-pager diff --exit-code -- "${generated[@]}" || { echo 'run make generate manifests docs, and commit'; return 1; }
	untracked=$(git ls-files --others --exclude-standard -- "${generated[@]}")
	[[ -z $untracked ]] || { printf 'generated, but not committed:\n%s\n' "$untracked"; return 1; }
}

tidy() {
	local module ok=0
	for module in . hack/coredns hack/kube hack/tools; do
		(cd "$module" && go mod tidy -diff) || { echo "run go mod tidy in $module"; ok=1; }
	done
	return $ok
}

# A machine without a way to the vulnerability database cannot check, which is no finding; anything else is one.
vulnerabilities() {
	local output code=0
	output=$("${tool[@]}" govulncheck ./... 2>&1) || code=$?
	if ((code == 1)) && grep -q 'fetching vulnerabilities' <<<"$output"; then
		echo "govulncheck skipped: its database cannot be reached from here"
		return 0
	fi
	printf '%s\n' "$output"
	return $code
}

check 'shell scripts' scripts
check 'generated files' up_to_date
check 'gofmt' format
check 'go mod tidy' tidy
check 'go vet' go vet ./...
check 'golangci-lint' "${tool[@]}" golangci-lint run
check 'chart' make --no-print-directory chart
check 'govulncheck' vulnerabilities

if ((${#failed[@]} > 0)); then
	printf '\nverify FAILED: %s\n' "$(IFS=,; echo "${failed[*]}")"
	exit 1
fi
printf '\nverify: all good\n'
