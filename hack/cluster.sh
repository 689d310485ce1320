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
# CLUSTER=local (the default) runs our build of Kubernetes and the distribution's containerd: Linux and root, no Docker, no registry.
# CLUSTER=kind runs kind, if Docker is installed; it was not tried here. The choice made by `up` holds until `down`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source hack/lib.sh

kind_version=v0.33.0
out=bin/cluster
kube=bin/kube # where hack/envtest-assets.sh leaves Kubernetes
packages=(containerd runc containernetworking-plugins iptables conntrack iproute2)

fail() {
	printf 'cluster: %s\n' "$*" >&2
	exit 1
}

# refuse says why this machine cannot, and what may work instead.
refuse() {
	fail "$* With Docker this may work instead, which was not tried here: make cluster-up CLUSTER=kind"
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
	[[ $(uname -s) == Linux ]] || refuse "a cluster of its own processes needs Linux, and this is $(uname -s)."
	((EUID == 0)) || refuse 'containers and network interfaces need root; run it with sudo --preserve-env=PATH.'
}

install_missing() {
	local absent
	absent=$(missing)
	[[ -n $absent ]] || return 0
	with_progress "installing ${packages[*]}" install_packages "${packages[@]}" ||
		refuse "these are missing, and apt-get could not install them:" $absent.
	absent=$(missing)
	[[ -z $absent ]] || refuse "after installing ${packages[*]}, these are still missing:" $absent.
}

# download fetches the modules of what is compiled later; go list loads what a program needs, and no more.
download() {
	go -C hack/kube list -deps tool && go -C hack/coredns list -deps . && go list -deps ./cmd/phoneproof && go -C hack/release list -deps ./image
} >/dev/null

# compile builds a program as the Makefile does, so that what they have in common is compiled once. Arguments: MODULE FILE PACKAGE.
compile() {
	with_progress "compiling $2" env CGO_ENABLED=0 go -C "$1" build -v -trimpath -buildvcs=false -ldflags '-s -w' \
		-gcflags='k8s.io/api/...=-l' -o "$PWD/$2" "$3"
}

compile_tool() { compile hack/cluster $out/cluster .; }

# compile_coredns replaces the program as a whole, because `cluster up` may start it meanwhile.
compile_coredns() {
	[[ ! -x $out/coredns || -n $(find hack/coredns -newer $out/coredns) ]] || return 0
	compile hack/coredns $out/coredns.new .
	mv $out/coredns.new $out/coredns
}

# programs compiles what a cluster consists of, which needs neither root nor packages.
programs() {
	compile_tool
	hack/envtest-assets.sh cluster
	compile_coredns
}

pack_pause() {
	local platform
	[[ ! $out/pause.tar -nt hack/cluster/pause/main.go ]] || return 0
	platform=linux/$(go env GOHOSTARCH)
	compile hack/cluster $out/pause/pause ./pause
	IN_IMAGE=pause with_progress 'packing the pause image' hack/image.sh localhost/phoneproof-pause:1 $out/pause.tar 1 "$platform=$out/pause/pause"
}

# up installs and downloads while the first program is compiled: what this machine cannot have is known before the long part. Without
# CoreDNS yet, everything else starts while that is compiled, and the second `cluster up` starts the rest.
up() {
	trap 'end_groups 20 || true' EXIT
	start_group install_missing
	[[ -x $out/coredns ]] || start_group download
	compile_tool
	wait "${groups[0]}"
	hack/envtest-assets.sh cluster
	pack_pause
	rm -f $out/kind
	[[ -x $out/coredns ]] || start_group $out/cluster up
	compile_coredns
	wait
	groups=()
	$out/cluster up
}

kind() {
	go run "sigs.k8s.io/kind@$kind_version" "$@"
}

# image packs a binary under a name that changes with its content, so that a changed one is rolled out, and loads it.
image() {
	local binary=$1 platform=$2 name
	name=ghcr.io/phoneproof/phoneproof:$(sha256sum "$binary" | cut -c 1-12)
	if [[ ! -e $out/image.tar || ! -e $out/image || $(<"$out/image") != "$name" ]]; then
		with_progress 'packing the image' hack/image.sh "$name" $out/image.tar "${name##*:}" "$platform=$binary"
		echo "$name" >$out/image
	fi
	load $out/image.tar
}

load() {
	if [[ $mode == kind ]]; then
		with_progress 'loading the image' kind load image-archive "$1" --name phoneproof
	else
		$out/cluster load "$1"
	fi
}

kind_up() {
	docker info >/dev/null 2>&1 || fail 'kind needs a running Docker, and `docker info` fails here'
	mkdir -p $out
	touch $out/kind
	with_progress 'compiling kind' kind version
	if kind get clusters 2>/dev/null | grep -qx phoneproof; then
		kind export kubeconfig --name phoneproof --kubeconfig $out/kubeconfig
	else
		with_progress 'creating the cluster' kind create cluster --name phoneproof --kubeconfig $out/kubeconfig --wait 5m
	fi
	[[ -x $kube/kubectl ]] || hack/envtest-assets.sh # for its kubectl, like everywhere else
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
	up
	;;
local:down)
	((EUID == 0)) || fail 'root started it, and root ends it'
	compile_tool
	$out/cluster down
	;;
*:load) load "$2" ;;
*:image) shift && image "$@" ;;
local:restart | local:status) $out/cluster "$@" ;;
kind:up) kind_up ;;
kind:down) with_progress 'removing the cluster' kind delete cluster --name phoneproof && rm -f $out/kind $out/kubeconfig ;;
kind:status) kind get clusters ;;
kind:restart) fail 'kind runs its components in a container; restarting one of them is not offered' ;;
*) fail 'usage: [CLUSTER=local|kind] hack/cluster.sh programs | up | down | load ARCHIVE | image BINARY PLATFORM | restart NAME | status' ;;
esac
