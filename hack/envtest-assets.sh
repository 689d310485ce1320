#!/usr/bin/env bash
# Builds the Kubernetes that the tests run against, from Go modules alone, into bin/kube.
# A stamp makes the second run free: the sources of hack/kube, this script and the Go version decide the result.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/bin/kube
components=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)

stamp=$(
	{
		git hash-object --no-filters "$root"/hack/kube/go.* "$root"/hack/kube/*.go "$root/hack/envtest-assets.sh"
		go env GOVERSION GOOS GOARCH
	} | git hash-object --stdin
)

fresh() {
	[[ -x $out/kubernetes && -f $out/.stamp && $(<"$out/.stamp") == "$stamp" ]]
}

if fresh; then
	exit 0
fi

mkdir -p "$out"
# Two builds at once would each take twice as long: the second one waits and then finds the first one's result.
if command -v flock >/dev/null; then
	exec 9>"$out/.lock"
	flock 9
	if fresh; then
		exit 0
	fi
fi

cd "$root/hack/kube"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"

# Components compare their versions with each other's, and clients with the server's: they must be the true ones.
ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	ldflags+=" -X $package.gitTreeState=clean"
done

echo "building Kubernetes $version from Go modules; about 6 minutes on 2 cores, once" >&2
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$ldflags" -o "$out/kubernetes.new" .
mv "$out/kubernetes.new" "$out/kubernetes"
for name in "${components[@]}"; do
	ln -sf kubernetes "$out/$name"
done
printf '%s\n' "$stamp" >"$out/.stamp"
