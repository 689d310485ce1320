#!/usr/bin/env bash
# A Kubernetes with running pods on this machine, for the demo and the end-to-end tests.
#
#	hack/cluster.sh programs         compile what it takes, and no more
#	hack/cluster.sh up               build what it takes, start it or repair it, write bin/cluster/kubeconfig
#	hack/cluster.sh down             end it and remove everything it made
#	hack/cluster.sh load ARCHIVE     give pods an image that hack/image.sh made
#	hack/cluster.sh image BINARY PLATFORM   pack a binary, load it, and write its name to bin/cluster/image
#	hack/cluster.sh restart NAME     end one component and start it again (not with kind)
#	hack/cluster.sh status
#
# CLUSTER=local (the default) runs bin/kube and the distribution's containerd: Linux and root, no Docker, no registry.
# CLUSTER=kind runs kind, where Docker is. The choice made by `up` holds until `down`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

kind_version=v0.33.0
out=bin/cluster
packages=(containerd runc containernetworking-plugins iptables conntrack iproute2)

fail() {
	printf 'cluster: %s\n' "$*" >&2
	exit 1
}

# refuse says why this machine cannot, and what may work instead.
refuse() {
	fail "$* Where Docker runs, this works instead: make cluster-up CLUSTER=kind"
}

have() {
	PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null
}

missing() {
	local plugins
	for plugins in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
		[[ ! -x $plugins/bridge ]] || break
	done
	[[ -x $plugins/bridge ]] || echo containernetworking-plugins
	local program
	for program in containerd ctr runc iptables iptables-save ip6tables-save conntrack ip; do
		have $program || echo $program
	done
}

check_machine() {
	local absent
	[[ $(uname -s) == Linux ]] || refuse "a cluster of its own processes needs Linux, and this is $(uname -s)."
	((EUID == 0)) || refuse 'containers and network interfaces need root; run it with sudo --preserve-env=PATH.'
	absent=$(missing)
	[[ -n $absent ]] || return 0
	install_packages "${packages[@]}" || refuse "these are missing, and apt-get could not install them:" $absent.
	absent=$(missing)
	[[ -z $absent ]] || refuse "after installing ${packages[*]}, these are still missing:" $absent.
}

# compile builds a program as the Makefile does, so that what they have in common is compiled once.
compile() {
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -gcflags='k8s.io/api/...=-l' -o "$@"
}

tool() {
	mkdir -p $out
	(cd hack/cluster && compile ../../$out/cluster .)
}

# programs compiles what a cluster consists of, which needs neither root nor packages.
programs() {
	tool
	hack/envtest-assets.sh cluster
	[[ -x $out/coredns ]] || echo 'cluster: building CoreDNS; about a minute, once' >&2
	(cd hack/coredns && compile ../../$out/coredns .)
}

build() {
	local arch
	arch=$(go env GOHOSTARCH)
	programs
	if [[ ! $out/pause.tar -nt hack/cluster/pause/main.go ]]; then
		(cd hack/cluster && compile ../../$out/pause/pause ./pause)
		IN_IMAGE=pause hack/image.sh localhost/phoneproof-pause:1 $out/pause.tar 1 "linux/$arch=$out/pause/pause"
	fi
}

kind() {
	go run "sigs.k8s.io/kind@$kind_version" "$@"
}

# image packs a binary under a name that changes with its content, so that a changed one is rolled out, and loads it.
image() {
	local binary=$1 platform=$2 name
	name=ghcr.io/phoneproof/phoneproof:$(sha256sum "$binary" | cut -c 1-12)
	if [[ ! -e $out/image.tar || ! -e $out/image || $(<"$out/image") != "$name" ]]; then
		hack/image.sh "$name" $out/image.tar "${name##*:}" "$platform=$binary"
		echo "$name" >$out/image
	fi
	load $out/image.tar
}

load() {
	if [[ $mode == kind ]]; then
		kind load image-archive "$1" --name phoneproof
	else
		$out/cluster load "$1"
	fi
}

kind_up() {
	docker info >/dev/null 2>&1 || fail 'kind needs a running Docker, and `docker info` fails here'
	mkdir -p $out
	touch $out/kind
	if kind get clusters 2>/dev/null | grep -qx phoneproof; then
		kind export kubeconfig --name phoneproof --kubeconfig $out/kubeconfig
	else
		kind create cluster --name phoneproof --kubeconfig $out/kubeconfig --wait 5m
	fi
	[[ -x bin/kube/kubectl ]] || hack/envtest-assets.sh # for its kubectl, like everywhere else
}

# The choice of `up` decides, whatever the environment says later.
mode=${CLUSTER:-local}
if [[ -e $out/kind && ${1:-} != up ]]; then
	mode=kind
fi
case $mode:${1:-} in
local:programs) programs ;;
kind:programs) ;; # kind brings its own
local:up)
	check_machine
	build
	rm -f $out/kind
	$out/cluster up
	;;
local:down)
	((EUID == 0)) || fail 'root started it, and root ends it'
	tool
	$out/cluster down
	;;
*:load) load "$2" ;;
*:image) shift && image "$@" ;;
local:restart | local:status) $out/cluster "$@" ;;
kind:up) kind_up ;;
kind:down) kind delete cluster --name phoneproof && rm -f $out/kind $out/kubeconfig ;;
kind:status) kind get clusters ;;
kind:restart) fail 'kind runs its components in a container; restarting one of them is not offered' ;;
*) fail 'usage: [CLUSTER=local|kind] hack/cluster.sh programs | up | down | load ARCHIVE | image BINARY PLATFORM | restart NAME | status' ;;
esac
