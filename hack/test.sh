#!/usr/bin/env bash
# Runs the tests of PACKAGES and prints their number on the last line:
#
#	hack/test.sh          all, without the race detector; of the store contract in PgBouncer's query mode a part
#	hack/test.sh race     the packages of the product that need no API server, with the race detector, which needs a C compiler
#	hack/test.sh slow     the other packages, all specs of test/integration, and what needs a server of packages that race runs, with
#	                      the race detector; of PostgreSQL all specs, with the whole contract in that mode too (PHONEPROOF_TEST_SLOW)
#
# What starts no goroutine and shares nothing has nothing to race, and is left out of both. With AFTER_RACE=1 the first leaves out what the
# second runs: CI runs both.
#
# The specs of test/integration mostly wait for processes: PROCS of them run at once, beside the tests of everything else. With
# -run or -bench in TEST_FLAGS they are left out.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source hack/lib.sh
trap 'end_groups 60' EXIT

mode=${1:-all}
name="make test${1:+-$1}"
out=bin/test$([[ $mode == all ]] || echo "-$mode")
# Many packages wait for servers: with one more than there are processors, and the specs beside them, these were idle for a third of the
# time.
packages_at_once=$(($(nproc) + 2))
module=$(go list -m)
integration=$module/test/integration
tool=(go tool -modfile=hack/tools/test/go.mod)
timeout=${TEST_TIMEOUT:-60m}
read -ra flags <<<"${TEST_FLAGS-}"
# Each package is linked anew: without what debuggers read that takes a third less.
link=-ldflags=-w
# The time for an Eventually without a timeout of its own: not the second that Gomega assumes, which a busy machine needs.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=30s

# What uses an API server in these packages is a small part of them.
mostly_without_server='/internal/(leader|operator|server|webhook)$'
small_part='^(TestLease|TestObject|TestRun_namespaceThatCannotBeRead|TestSend_apiServer)$'
# What the race detector makes impossible, and says so by a skip.
not_raced='^(TestAllocations|TestCosts)'
race=()
case $mode in
all) budget='8 min, warm' ;;
race) budget='3 min, warm' ;;
slow) budget=none ;;
*)
	echo 'usage: hack/test.sh [race | slow]' >&2
	exit 2
	;;
esac
if [[ $mode != all ]]; then
	export CGO_ENABLED=1
	$(go env CC) -include stdlib.h -x c -E /dev/null >/dev/null || {
		echo "$name: the race detector needs a C compiler and the headers of the C library; on Debian: apt-get install gcc libc6-dev" >&2
		exit 1
	}
	race=(-race)
fi
[[ $mode != race ]] || flags=("-skip=$small_part" "${flags[@]}")

read -ra patterns <<<"${PACKAGES:-./...}"
# select_packages prints the packages of this run, and whether the race detector runs each. Those that use an API server import one of
# two packages.
select_packages() {
	go list -e -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}} ' "${patterns[@]}" |
		awk -v mode="$mode" -v mostly="$mostly_without_server" \
			'{ other = $1 ~ /\/(hack|test)(\/|$)/ || / [^ ]*\/test\/(controlplane|system) / && $1 !~ mostly }
			mode == "all" || other == (mode == "slow") { print $1, other }'
}

# What takes longest begins first, so that it is not left to run alone at the end.
longest=() long=() short=() small=() specs=
while read -r package other; do
	if grep -qsE '^\s*go [a-z]|"sync|x/sync' ".${package#"$module"}"/*.go; then
		[[ -z ${AFTER_RACE-} || $mode != all || $other == 1 ]] || continue
	else
		[[ $mode == all ]] || continue
	fi
	case $package in
	"$integration") specs=yes ;;
	*/controllers/project | */store/postgres | */store/kubernetes | */api/v1alpha1 | */phoneproof/app) longest+=("$package") ;;
	*/plugin/doctor | */httpapi | */kubectl-phoneproof | */test/adversary | */test/chart | */project/apply | */test/docs) long+=("$package") ;;
	*) short+=("$package") ;;
	esac
done < <(select_packages)
[[ $mode != slow ]] || mapfile -t small < <(go list "${patterns[@]}" | grep -E "$mostly_without_server|/internal/store/postgres\$")
if [[ -n ${AFTER_RACE-} && $mode == all ]]; then
	mapfile -t small < <(go list "${patterns[@]}" | grep -E "$mostly_without_server|/internal/(httpapi|boundedhttp)\$")
	small_part="$small_part|$not_raced"
fi
if [[ " ${flags[*]} " =~ " "--?(test\.)?(run|bench)[=\ ] ]]; then
	specs= small=()
fi
packages=("${longest[@]}" "${long[@]}" "${short[@]}")
case "${packages[*]} ${small[*]} $specs" in
*/test/controlplane* | */plugin/doctor* | */internal/operator* | *yes) hack/envtest-assets.sh controllers || exit 1 ;;
esac

rm -rf $out
mkdir -p $out
touch $out/go.json $out/integration.txt

# run_specs prints what the ginkgo command prints, and as an event for testcount.awk whether it failed.
run_specs() {
	local result=pass
	"${tool[@]}" ginkgo run -procs="${PROCS:-$((2 * $(nproc)))}" "${race[@]}" -vet=off $link -timeout="$timeout" --randomize-all --fail-on-empty \
		./test/integration </dev/null || result=fail
	printf '{"Action":"%s"}\n' $result
}

# run_small runs the tests of a part of packages that the race detector's run leaves out, and prints as an event if they failed.
run_small() {
	[[ $mode == all ]] || export PHONEPROOF_TEST_SLOW=1 small_part="$small_part|^TestPostgres\$"
	"${tool[@]}" gotestsum --format=pkgname --hide-summary=skipped --jsonfile=$out/small.json -- -vet=off $link \
		-timeout="$timeout" "${race[@]}" -run="$small_part" "${small[@]}" </dev/null || echo '{"Action":"fail","Package":"small"}' >>$out/small.json
	if grep -F '[no tests to run]' $out/small.json; then
		echo "$name: small_part in hack/test.sh names no test of these packages"
		echo '{"Action":"fail","Package":"small"}' >>$out/small.json
	fi
}

# print_running prints the package whose tests printed last.
print_running() {
	local package
	package=$(tail -qc 4096 $out/*.json | sed -nE 's/.*"Package":"([^"]+)".*/\1/p' | tail -n 1)
	printf '%s: %d s: %s\n' "$name" $SECONDS "${package:-compiling}" >&2
}

status=0
start_ticker print_running
if [[ -n $specs ]]; then
	# Compiled alone first: two go commands that need the same packages at the same time both compile them.
	go list "${race[@]}" -export -deps -test ./test/integration >/dev/null 2>&1
	start_group run_specs >$out/integration.txt 2>&1
fi
((${#small[@]} == 0)) || start_group run_small >$out/small.txt 2>&1
if ((${#packages[@]} > 0)); then
	start_group "${tool[@]}" gotestsum --format=pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile=$out/go.json -- \
		-vet=off $link -p="$packages_at_once" -shuffle=on -timeout="$timeout" "${race[@]}" "${flags[@]}" "${packages[@]}" </dev/null
	wait $! || status=1
fi
if [[ -n $specs && $mode == all ]]; then
	# Modules of their own.
	for module in hack/cluster hack/release sdk/go; do
		(cd $module && go tool -modfile=../../hack/tools/test/go.mod gotestsum --format=pkgname --format-hide-empty-pkg --hide-summary=skipped \
			--jsonfile=../../$out/${module//\//-}.json -- -vet=off -timeout="$timeout" ./... </dev/null) || status=1
	done
fi
for group in "${groups[@]}"; do
	wait "$group"
done
groups=()
end_ticker
cat $out/small.txt 2>/dev/null
if [[ -n $specs ]]; then
	echo
	echo '=== specs of test/integration'
	sed '$d' $out/integration.txt
fi

echo
print_time "$name" "$budget"
cat $out/*.json $out/integration.txt | awk -f hack/events.awk -f hack/skipped.awk || status=1
cat $out/*.json $out/integration.txt | awk -f hack/events.awk -f hack/failed.awk
cat $out/*.json $out/integration.txt | awk -f hack/events.awk -f hack/testcount.awk || status=1
exit $status
