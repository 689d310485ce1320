#!/usr/bin/env bash
# Checks the chart: lint with both supported versions of Helm, which must have nothing to recommend, every template with
# every file of values in ci/, the unit tests, and the alerts. What the templates and samples make, a real API server checks, in
# test/chart and api/v1alpha1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

source hack/lib.sh
trap 'end_groups 10' EXIT
start_ticker print_time_of chart 0

chart=charts/phoneproof
helm_tool=(go tool -modfile=hack/tools/helm/go.mod)

for version in v3 v4; do
	helm="${helm_tool[*]} helm.sh/helm/$version/cmd/helm"
	$helm version --short
	for values in "$chart"/ci/*.yaml; do
		lint=$($helm lint --strict --kube-version 1.32.0 "$chart" --values "$values") || { echo "$lint"; exit 1; }
		! grep '^\[' <<<"$lint" || { echo "helm lint of $chart with $values has remarks, see above"; exit 1; }
		$helm template phoneproof "$chart" --kube-version 1.32.0 --namespace phoneproof-system --values "$values" >/dev/null
	done
done

"${helm_tool[@]}" helm-unittest --strict --file 'tests/*_test.yaml' "$chart"

# Not from Go's cache, which does not know that the test reads the chart.
go -C test/alerts test -count=1 ./...
