#!/usr/bin/env bash
# Runs every fuzz target in the repository for FUZZTIME each. go test takes one target at a time, and stops at its first
# finding; here the other targets still get their turn. A finding is an input in testdata/fuzz, and a test from then on.
#
# Go keeps what it has found of interest in its build cache, and begins there the next time. Variables:
#
#	FUZZTIME    time for each target, or a number of runs as in 1000x; 30s by default
#	FUZZTARGETS a regular expression for the targets' names; all by default
#	FUZZRESUME  true to leave out the targets that have finished since the last run without it
#	FUZZKEEP    how many inputs of interest to keep in testdata/fuzz for each target, the smallest first and none over
#	            1 KiB; 0 by default. What is kept can be committed: it is where a machine without a cache begins
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

fuzztime=${FUZZTIME:-30s}
keep=${FUZZKEEP:-0}
finished=bin/fuzz/finished
cache=$(go env GOCACHE)/fuzz
targets=0
failed=()

# keep_inputs copies inputs that a target's runs have found. Their names are made of their content.
keep_inputs() {
	local package=$1 target=$2 from into
	from=$cache/$(go list "$package")/$target
	into=$package/testdata/fuzz/$target
	((keep > 0)) && [[ -d $from ]] || return 0
	mkdir -p "$into"
	find "$from" -type f -size -1025c -printf '%s %p\n' | sort -n | sed -n "1,${keep}s/^[0-9]* //p" | xargs -r cp -t "$into"
}

mkdir -p bin/fuzz
[[ ${FUZZRESUME:-} == true ]] || : >"$finished"
touch "$finished"
while IFS=: read -r file line; do
	target=${line#func }
	target=${target%%(*}
	package=./$(dirname "$file")
	[[ $target =~ ${FUZZTARGETS:-.} ]] || continue
	targets=$((targets + 1))
	if grep -qxF "$package $target" "$finished"; then
		echo "--- $package $target finished before"
		continue
	fi
	echo "--- $package $target"
	if with_clock "$target" go test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" "$package" </dev/null; then
		echo "$package $target" >>"$finished"
	else
		failed+=("$package $target")
	fi
	keep_inputs "$package" "$target"
done < <(git grep --untracked -E '^func Fuzz[A-Z_][A-Za-z0-9_]*\(' -- '*_test.go')

echo
if ((targets == 0)); then
	echo "there is no such fuzz target"
elif ((${#failed[@]} > 0)); then
	echo "$targets fuzz targets, ${#failed[@]} with findings (the inputs are in testdata/fuzz, commit them with the fix):"
	printf '  %s\n' "${failed[@]}"
	exit 1
else
	echo "$targets fuzz targets, $fuzztime each, no finding"
fi
