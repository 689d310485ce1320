#!/usr/bin/env bash
# Runs every fuzz target in the repository for FUZZTIME. go test takes one target at a time, and stops at its first
# finding; here the other targets still get their turn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-30s}
targets=0
failed=()
while IFS=: read -r file line; do
	target=${line#func }
	target=${target%%(*}
	package=./$(dirname "$file")
	targets=$((targets + 1))
	echo "--- $package $target"
	go test -run='^$' -fuzz="^$target\$" -fuzztime="$fuzztime" "$package" </dev/null || failed+=("$package $target")
done < <(git grep --untracked -E '^func Fuzz[A-Z_][A-Za-z0-9_]*\(' -- '*_test.go')

echo
if ((targets == 0)); then
	echo "there is no fuzz target yet"
elif ((${#failed[@]} > 0)); then
	echo "$targets fuzz targets, ${#failed[@]} with findings (the inputs are in testdata/fuzz, commit them with the mend):"
	printf '  %s\n' "${failed[@]}"
	exit 1
else
	echo "$targets fuzz targets, $fuzztime each, no finding"
fi
