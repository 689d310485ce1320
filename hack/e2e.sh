#!/usr/bin/env bash
# The end-to-end tests, on a cluster that is made for them and taken away after them. KEEP=1 leaves it to look at;
# E2E_FLAGS are further flags of go test, such as -ginkgo.focus=upgrades. RELEASE_BASE is the release to upgrade from
# (hack/upgrade-base.sh).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

began=$SECONDS
finish() {
	[[ -n ${KEEP:-} ]] || hack/cluster.sh down || echo 'e2e: the cluster could not be taken away; see make cluster-down' >&2
	echo "e2e: $((SECONDS - began)) s in all" >&2
}

hack/cluster.sh down # what an earlier run left
trap finish EXIT
hack/cluster.sh up
# What is compiled is printed, by package.
GOFLAGS="${GOFLAGS:+$GOFLAGS }-v" with_progress 'e2e: compiling the program, the plugin and Helm 3' \
	make --no-print-directory cluster-image plugin bin/helm3 postgres-assets
hack/upgrade-base.sh build "linux/$(go env GOHOSTARCH)"
hack/cluster.sh load bin/base/image.tar
# Before a spec has to wait for that.
with_progress 'e2e: compiling Helm 4' go tool -modfile=hack/tools/helm/go.mod helm.sh/helm/v4/cmd/helm version --short
echo "e2e: cluster and image took $((SECONDS - began)) s; the specs take about eight minutes" >&2
rm -f bin/cluster/findings bin/cluster/e2e.json
result=0
with_progress 'e2e: the specs' go tool -modfile=hack/tools/test/go.mod gotestsum --format=standard-verbose --hide-summary=skipped --jsonfile=bin/cluster/e2e.json -- \
	-tags e2e -count=1 -timeout 60m ./test/e2e ${E2E_FLAGS:-} || result=$?
[[ ! -e bin/cluster/findings ]] || sed 's/^/e2e: /' bin/cluster/findings >&2
awk -f hack/events.awk -f hack/failed.awk bin/cluster/e2e.json
awk -f hack/events.awk -f hack/testcount.awk bin/cluster/e2e.json || result=1
exit $result
