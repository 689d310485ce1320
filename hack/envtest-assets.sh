#!/usr/bin/env bash
# Puts the Kubernetes for the tests into bin/kube: links to programs that are kept outside the checkout, so that a new clone
# finds them.
#
#	hack/envtest-assets.sh               etcd, kube-apiserver and kubectl: prebuilt if possible, else built from Go modules
#	hack/envtest-assets.sh controllers   kube-controller-manager too, which is always built
#	hack/envtest-assets.sh cluster       and what else a cluster consists of
#
# KUBE=download and KUBE=source leave one way only. ENVTEST_INDEX is the URL of another index, such as a mirror's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

fail() {
	printf 'envtest-assets: %s\n' "$*" >&2
	exit 1
}

programs=(etcd kube-apiserver kubectl)
case ${1-} in
'') more=() ;;
controllers) more=(kube-controller-manager) ;;
cluster) more=(kube-controller-manager kube-scheduler kubelet kube-proxy) ;;
*) fail 'usage: [KUBE=download|source] hack/envtest-assets.sh [controllers | cluster]' ;;
esac

version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' hack/kube/go.mod)
IFS=. read -r major minor _ <<<"${version#v}"
# Components compare their versions with each other's, and clients with the server's: they must be the true ones.
ldflags='-s -w'
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	ldflags+=" -X $package.gitVersion=$version -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean"
done
# The flags of `make build`, so that what Kubernetes and the product have in common is compiled once.
flags=(-trimpath -buildvcs=false -gcflags='k8s.io/api/...=-l' -ldflags="$ldflags")

os=$(go env GOOS) arch=$(go env GOARCH)
archive=envtest-$version-$os-$arch.tar.gz
sum=$(awk -v archive="$archive" '$2 == archive { print $1 }' hack/envtest/SHA512SUMS)

# A machine without a home, or with one that cannot be written, keeps them in the checkout.
mkdir -p bin/kube
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
cache+=/phoneproof/kube
[[ $cache == /?*/phoneproof/kube ]] && mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || cache=$PWD/bin/kube
stamp=$({
	git hash-object --no-filters hack/kube/go.mod hack/kube/go.sum
	printf '%s\n' "${flags[@]}" "$(go -C hack/kube env GOVERSION)" "$os" "$arch"
} | git hash-object --stdin)
built=$cache/built-${stamp:0:12}
downloaded=$cache/downloaded-$version-$os-$arch-${sum:0:12}

case ${KUBE-} in
'') folders=("$built" "$downloaded") ;;
download) folders=("$downloaded") ;;
source) folders=("$built") ;;
*) fail "KUBE is $KUBE: not download or source" ;;
esac

# have reports whether a folder has these programs.
have() {
	local folder=$1 name
	for name in "${@:2}"; do
		[[ -x $folder/$name ]] || return 1
	done
}

# choose_folder sets `folder` to the first one that has the three programs.
choose_folder() {
	for folder in "${folders[@]}"; do
		! have "$folder" "${programs[@]}" || return 0
	done
	return 1
}

is_complete() { choose_folder && have "$built" "${more[@]}"; }

explain() {
	printf 'envtest-assets: %s\n' "$*" >&2
	return 1
}

# download fails, after saying why, if the three programs cannot be had prebuilt.
#
# setup-envtest compares an archive with a checksum from the index, which an attacker could change together with the archive. It prints
# that checksum, and nothing leaves the working folder unless it is the one in hack/envtest/SHA512SUMS.
download() {
	local setup unpacked=$work/k8s/${version#v}-$os-$arch listed code=0
	local at=(--bin-dir "$work" --os "$os" --arch "$arch" ${ENVTEST_INDEX:+--index "$ENVTEST_INDEX"})
	[[ -n $sum ]] || explain "hack/envtest/SHA512SUMS has no $archive" || return
	with_progress 'building setup-envtest' prepare || return
	listed=$(timeout --foreground 5 "$setup" list "${at[@]}" "${version#v}" 2>&1) || code=$?
	((code != 124)) || explain 'the index did not answer within 5 s' || return
	((code == 0)) || explain "$listed" || return
	[[ $listed == *'(available)'* ]] || explain "the index has no Kubernetes $version for $os/$arch" || return
	with_progress "downloading Kubernetes $version for the tests" unpack || return
	grep -qx "sha512: $sum" "$work/overview" || explain "$archive has another checksum than in hack/envtest/SHA512SUMS" || return
	have "$unpacked" "${programs[@]}" || explain "$archive lacks a program" || return
	chmod u+w "$unpacked" && mkdir -p "$downloaded" && mv "${programs[@]/#/$unpacked/}" "$downloaded"
}

prepare() { setup=$(CGO_ENABLED=0 go -C hack/envtest tool -n setup-envtest); }

# unpack downloads the archive into the working folder. After 10 minutes building is quicker.
unpack() {
	TMPDIR=$work timeout --foreground 600 "$setup" use --print overview "${at[@]}" "${version#v}" >"$work/overview"
}

# build builds those of the named programs that were not built before.
build() {
	local name packages=()
	for name; do
		have "$built" "$name" || packages+=("k8s.io/kubernetes/cmd/$name")
	done
	((${#packages[@]} > 0)) || return 0
	CGO_ENABLED=0 with_progress "building Kubernetes $version: minutes, once" \
		go -C hack/kube build -v "${flags[@]}" -o "$work/" "${packages[@]/%*\/etcd/go.etcd.io/etcd/server/v3}"
	mkdir -p "$built"
	[[ ! -e $work/server ]] || mv "$work/server" "$work/etcd"
	for name in "${packages[@]##*/}"; do
		mv "$work/$name" "$built"
	done
}

# Of two that build at once, the second waits and then finds what the first has built.
lock() {
	command -v flock >/dev/null || return 0
	exec 9>"$cache/.lock"
	flock -n 9 || with_progress 'waiting for another build of Kubernetes' flock 9
}

obtain() {
	work=$(mktemp -d "$cache/new.XXXXXX")
	trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
	if ! choose_folder; then
		folder=$built
		if [[ ${KUBE-} != source ]] && download; then
			folder=$downloaded
		elif [[ ${KUBE-} == download ]]; then
			fail 'KUBE=download failed'
		else
			more=("${programs[@]}" "${more[@]}") # at once, so that each processor has something to link
		fi
	fi
	build "${more[@]}"
}

# link makes bin/kube name what there is, and nothing of another version.
link() {
	local name target
	for name in "${programs[@]}" kube-controller-manager kube-scheduler kubelet kube-proxy; do
		target=$built/$name
		[[ " ${programs[*]} " != *" $name "* ]] || target=$folder/$name
		if [[ ! -e $target ]]; then
			rm -f "bin/kube/$name"
		elif [[ ! bin/kube/$name -ef $target ]]; then
			ln -sf "$target" "bin/kube/$name"
		fi
	done
}

if ! is_complete; then
	lock
	is_complete || obtain
fi
link
# What no checkout has used for 30 days goes.
touch -c "$folder" "$built" || true
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec chmod -R u+w {} + -exec rm -rf {} + || true
