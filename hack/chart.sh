#!/usr/bin/env bash
# Checks the chart: lint with both supported versions of Helm, every template with every file of values in ci/, the unit
# tests, and the samples against the schemas of the CRDs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chart=charts/phoneproof
tool=(go tool -modfile=hack/tools/go.mod)

for version in v3 v4; do
	helm="${tool[*]} helm.sh/helm/$version/cmd/helm"
	$helm version --short
	for values in "$chart"/ci/*.yaml; do
		$helm lint --strict --quiet --kube-version 1.32.0 "$chart" --values "$values"
		$helm template phoneproof "$chart" --kube-version 1.32.0 --namespace phoneproof-system --values "$values" >/dev/null
	done
done

"${tool[@]}" helm-unittest --strict --file 'tests/*_test.yaml' "$chart"

go run ./hack/crdschemas bin/schemas config/crd/bases/*.yaml
# The kinds of Kubernetes itself are checked by a real API server, in test/chart.
"${tool[@]}" kubeconform -strict -summary -skip Secret,Kustomization \
	-schema-location 'bin/schemas/{{ .ResourceKind }}-{{ .Group }}-{{ .ResourceAPIVersion }}.json' config/samples
