#!/usr/bin/env bash
# Runs the tests of PACKAGES and prints their number on the last line. Without an argument all but the slow ones run; with
# the argument "slow" the specs of test/integration, those labelled "slow" too, and with the race detector. The specs there mostly wait
# for processes: PROCS of them run at once, beside the tests of everything else. With -run or -bench in TEST_FLAGS they are left out.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
source hack/lib.sh
trap 'end_groups 60' EXIT

out=bin/test
# Many packages wait for servers: with one for each processor, the processors were idle for a quarter of the time. With one more, and
# the specs beside them, they are always busy.
packages_at_once=$(($(nproc) + 1))
integration=$(go list -m)/test/integration
tool=(go tool -modfile=hack/tools/go.mod)
timeout=${TEST_TIMEOUT:-60m}
read -ra race <<<"${RACE-}"
read -ra flags <<<"${TEST_FLAGS-}"
# Each package is linked anew: without what debuggers read that takes a third less.
link=-ldflags=-w
# The time for an Eventually without a timeout of its own: not the second that Gomega assumes, which a busy machine needs.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=30s

case ${1:-} in
'')
	# The race detector doubles what the specs take; the tests of packages have it.
	name='make test' budget='8 min, warm' labels='!slow' specs_race=()
	read -ra patterns <<<"${PACKAGES:-./...}"
	;;
slow)
	name='make test-slow' budget='none' labels='' specs_race=("${race[@]}")
	patterns=(./test/integration)
	;;
*)
	echo 'usage: hack/test.sh [slow]' >&2
	exit 2
	;;
esac

# What takes longest begins first, so that it is not left to run alone at the end.
long=() short=() specs=
while read -r package; do
	case $package in
	"$integration") specs=yes ;;
	*/controllers/project | */store/kubernetes | */store/postgres | */phoneproof/app | */api/v1alpha1 | */httpapi | */test/docs) long+=("$package") ;;
	*) short+=("$package") ;;
	esac
done < <(go list -e "${patterns[@]}")
if [[ " ${flags[*]} " =~ " "--?(test\.)?(run|bench)[=\ ] ]]; then
	specs=
fi
packages=("${long[@]}" "${short[@]}")

rm -rf $out
mkdir -p $out
touch $out/go.json $out/integration.txt

# run_specs prints what the ginkgo command prints, and as an event for testcount.awk whether it failed.
run_specs() {
	local result=pass
	"${tool[@]}" ginkgo run -procs="${PROCS:-$((2 * $(nproc)))}" "${specs_race[@]}" -vet=off $link -timeout="$timeout" --randomize-all --fail-on-empty \
		--label-filter="$labels" ./test/integration </dev/null || result=fail
	printf '{"Action":"%s"}\n' $result
}

status=0
if [[ -n $specs ]]; then
	if [[ ${specs_race[*]} == "${race[*]}" ]]; then
		# Compiled alone first: two go commands that need the same packages at the same time both compile them.
		go list "${specs_race[@]}" -export -deps -test ./test/integration >/dev/null 2>&1
	fi
	start_group run_specs >$out/integration.txt 2>&1
fi
if ((${#packages[@]} > 0)); then
	start_group "${tool[@]}" gotestsum --format=pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile=$out/go.json -- \
		-vet=off $link -p="$packages_at_once" -shuffle=on -timeout="$timeout" "${race[@]}" "${flags[@]}" "${packages[@]}" </dev/null
	wait $! || status=1
fi
wait
groups=()
if [[ -n $specs && -n ${race[*]} && -z ${1:-} ]]; then
	# What the race detector would falsify: it keeps memory of its own, and empties pools.
	"${tool[@]}" gotestsum --format=pkgname --format-hide-empty-pkg --hide-summary=skipped --jsonfile=$out/measured.json -- \
		-vet=off $link -timeout="$timeout" -run='^Test(Costs|Allocations)' ./internal/boundedhttp ./internal/httpapi </dev/null || status=1
fi
if [[ -n $specs && -z ${1:-} ]]; then
	# Modules of their own, without anything to race.
	for module in cluster release; do
		(cd hack/$module && go tool -modfile=../tools/go.mod gotestsum --format=pkgname --format-hide-empty-pkg --hide-summary=skipped \
			--jsonfile=../../$out/$module.json -- -vet=off -timeout="$timeout" ./... </dev/null) || status=1
	done
fi
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
